#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The victims by several compilers, optimisations and kinds of frames, each patched in a library.
set -u

[ -z "${CA_SANITIZER:-}" ] || { echo "skipped: a sanitizer is on"; exit 77; }
src=$CA_TOP_SRCDIR run=$CA_TOP_BUILDDIR/tests/patch/run
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0 done=0

one() { # CC CXX FLAGS...
	local cc=$1 cxx=$2 lib=$dir/victims.so
	shift 2
	if ! { "$cc" "$@" -g -w -fPIC -D_GNU_SOURCE -I"$src" -c "$src/tests/patch/victims.c" -o "$dir/v.o" &&
		"$cxx" "$@" -g -w -fPIC -D_GNU_SOURCE -I"$src" -c "$src/tests/patch/victims_cxx.cc" -o "$dir/x.o" &&
		"$cxx" "$@" -shared -Wl,-Bsymbolic -o "$lib" "$dir/v.o" "$dir/x.o"; } 2>"$dir/log"; then
		echo "skipped: $cc $*: $(head -n 1 "$dir/log")"
		return
	fi
	done=$((done + 1))
	if timeout 100 "$run" "$lib" >"$dir/log" 2>&1; then
		echo "ok: $cc $*: $(grep -E 'functions,|at once' "$dir/log" | tr '\n' ';')"
	else
		failed=$((failed + 1))
		echo "FAILED: $cc $*"
		cat "$dir/log"
	fi
}

for level in -O0 -O1 -O2 -O3 -Os; do
	one "${CC:-cc}" "${CXX:-c++}" $level
done
one "${CC:-cc}" "${CXX:-c++}" -O2 -fcf-protection
one "${CC:-cc}" "${CXX:-c++}" -O2 -fno-omit-frame-pointer
one "${CC:-cc}" "${CXX:-c++}" -O2 -mavx2
one "${CC:-cc}" "${CXX:-c++}" -O2 -fno-plt -Wl,-z,now
one "${CC:-cc}" "${CXX:-c++}" -O2 -flto
if command -v clang >/dev/null && command -v clang++ >/dev/null; then
	for level in -O0 -O2 -O3; do
		one clang clang++ $level
	done
	one clang clang++ -O2 -fcf-protection -fno-omit-frame-pointer
else
	echo "skipped: no clang"
fi
[ $done -gt 0 ] || { echo "nothing could be compiled"; exit 99; }
exit $((failed > 0))
