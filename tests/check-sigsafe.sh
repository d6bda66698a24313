#!/usr/bin/env bash
# The objects of core that run inside the host may call nothing but what is listed here: plain
# system calls and memory functions, no malloc, no stdio, no lock.
set -euo pipefail

build=${CA_TOP_BUILDDIR:-.}
allowed='open|close|fstat|mmap|munmap|write|clock_gettime|memcpy|memmove|memset|memcmp|strlen|strcmp'
allowed="$allowed|__errno_location|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
read -ra nm <<< "${NM:-nm}" # may bring an option along

shopt -s nullglob
objects=("$build"/core/.libs/libcausal_core_rt_la-*.o)
shopt -u nullglob
if [ "${#objects[@]}" -eq 0 ]; then
	echo "no object found in $build/core/.libs"
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
