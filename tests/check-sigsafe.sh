#!/usr/bin/env bash
# The objects that run inside the host and in its signal handlers, core's and the look-up in an
# index, may call nothing but what is listed here: what POSIX calls async-signal-safe; no malloc,
# no stdio, no lock. (The handler itself is tested where it runs.)
set -euo pipefail

build=${CA_TOP_BUILDDIR:-.}
allowed='open|close|fstat|mmap|munmap|unlink|write|sysconf|clock_gettime'
allowed="$allowed|memcpy|memmove|memset|memcmp|strlen|strnlen|strcmp"
allowed="$allowed|__errno_location|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
read -ra nm <<< "${NM:-nm}" # may bring an option along

shopt -s nullglob
objects=("$build"/{core,binary/index}/.libs/libruntime_la-*.o)
shopt -u nullglob
if [ "${#objects[@]}" -eq 0 ]; then
	echo "no object of the runtime found below $build"
	exit 99
fi
# What they call of each other is fine.
own=$("${nm[@]}" --defined-only -g "${objects[@]}" | awk 'NF == 3 { print $3 }')
if ! grep -qx ca_ring_push <<< "$own"; then
	echo "${nm[*]} does not see ca_ring_push: this test would prove nothing"
	exit 99
fi
failed=0
for object in "${objects[@]}"; do
	while read -r symbol; do
		if ! grep -qxE -- "$allowed" <<< "$symbol" && ! grep -qxF -- "$symbol" <<< "$own"; then
			echo "$object calls $symbol, which is not on the list of what handlers may call"
			failed=1
		fi
	done < <("${nm[@]}" -u "$object" | awk '{ sub(/@.*/, "", $NF); print $NF }')
done
echo "${#objects[@]} objects looked at"
exit "$failed"
