#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs of the system, patched all over while they run, must print what they always print.
# shellcheck disable=SC2016 # what stands in quotes is for the programs
set -u

[ -z "${CA_SANITIZER:-}" ] || { echo "skipped: a sanitizer is on"; exit 77; }
object=$CA_TOP_BUILDDIR/tests/patch/.libs/torture.so
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
failed=0 done=0
for _ in 1 2 3 4 5 6 7 8; do find "$CA_TOP_SRCDIR"/{binary,causal} -name "*.c" -exec cat {} +; done >"$dir/in"

one() { # MODULE COMMAND...
	local module=$1 want got rounds
	shift
	command -v "$1" >/dev/null || { echo "skipped: no $1"; return; }
	want=$("$@" <"$dir/in" 2>/dev/null | cksum)
	got=$(timeout 100 env TORTURE="$module" LD_PRELOAD="$object" "$@" <"$dir/in" 2>"$dir/log" | cksum)
	rounds=$(sed -n 's/.* \([0-9]*\) rounds.*/\1/p' "$dir/log" | tail -n 1)
	if [ "$want" != "$got" ]; then
		failed=$((failed + 1))
		echo "FAILED: $*: another output"
	elif [ "${rounds:-0}" = 0 ]; then
		echo "skipped: $1: nothing of $module was patched"
		return
	fi
	tail -n 1 "$dir/log"
	done=$((done + 1))
}

one bash bash -c 'for ((i = 0; i < 60000; i++)); do x=$((x + i % 7)); y=${x#1}; done; echo $x $y
	for i in 1 2 3; do (echo $i $(echo "$x" | cat)); done'
one perl perl -e 'my %h; for my $i (1 .. 300000) { $h{$i % 503} .= substr("abc$i", 1, 3);
	$h{$i % 503} = "" if length $h{$i % 503} > 200 } print map { "$_=$h{$_}" } sort keys %h'
one libz pigz -p 2 -c
one libbz2 bzip2 -c
one libsqlite3 sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x + 1 from c
	where x < 300000) select sum(x * x % 7), count(distinct x % 1013) from c'
python=/usr/bin/python3 # Debian's own, which is one large executable
[ -x "$python" ] || python=python3
one python "$python" -c 'print(sum(int(str(i)[::-1]) for i in range(200000)))'
[ $done -gt 0 ] || { echo "skipped: none of the programs is here with symbols"; exit 77; }
exit $((failed > 0))
