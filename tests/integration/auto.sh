#!/bin/bash
# Progress points that causal chooses: that a choice is made, kept, used by all later runs, can be
# named by the user, and is not made where it is not wanted. Which one is best is a question for
# tests/accuracy; here it must only be one of those that go with the work (tests/apps/auto.c).
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
apps=$here/../apps
build=${CA_TOP_BUILDDIR:-$PWD}
causal=$build/driver/causal
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
for name in $(compgen -e | grep -E '^(CAUSAL|COZ)_') LD_PRELOAD; do
	unset "$name"
done
read -ra cc <<<"${CC:-cc}"
passed=0 failed=0 skipped=0

check() {
	if [[ $2 == "$3" ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL: %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
	fi
}
contains() {
	if [[ $3 == *"$2"* ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL: %s\n  expected somewhere: %s\n  got: %s\n' "$1" "$2" "$3"
	fi
}
lacks() {
	if [[ $3 != *"$2"* ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL: %s\n  expected nowhere: %s\n  got: %s\n' "$1" "$2" "$3"
	fi
}
skip() {
	skipped=$((skipped + 1))
	echo "SKIP: $1"
}
exists() { [[ -e $1 ]] && echo yes || echo no; }
# the first name in a choice
first() { sed -n 's/.*"name": *"\(.*\)",*$/\1/p' "$1/progress.json" 2>/dev/null | head -1; }
# run OPTION... -- COMMAND: what the driver says goes to the file `said`
run() { "$causal" -s 0,50 "$@" >/dev/null 2>said; }
# Did other programs take the CPUs from the last run in DIR? auto.c keeps two of them busy, or one.
busy=0
starved() {
	local cpus want
	cpus=$(nproc)
	want=$((cpus > 1 ? 170 : 85)) # percent of a CPU
	grep -h '"type":"end"' "$1"/run-*.jsonl | tail -1 |
		sed 's/.*"runtime":\([0-9]*\).*"cpu_ns":\([0-9]*\).*/\1 \2/' |
		awk -v want="$want" '{ exit !(100 * $2 < want * $1) }'
}
# good NAME: does it go with the units?
good() {
	case $1 in
	first_half | second_half | first_half+0x* | second_half+0x* | work+0x* | sub_*) echo yes ;;
	auto.c:*) sed -n "${1#auto.c:}p" "$apps/auto.c" | grep -qE 'while \(until|_half\(\);' && echo yes ;;
	*) echo "$1" ;;
	esac
}

[[ $("${cc[@]}" -dumpmachine) == x86_64* ]] || { echo "x86-64 only"; exit 77; }
"${cc[@]}" -g -O2 -pthread -o auto "$apps/auto.c" || exit 1

# ---- a choice, and what becomes of it
run -n 2 -o out -- ./auto 0 6
check "exit status" 0 $?
contains "it is told" "causal: progress point $(first out), chosen here" "$(cat said)"
check "it goes with the work" yes "$(good "$(first out)")"
check "it is told once" 1 "$(grep -c 'chosen here' said)"
lacks "the poller is not it" poll_for_news "$(first out)"
contains "the first run has experiments with it" "\"point\":\"$(first out)\"" "$(tr -d ' ' <out/run-0001.jsonl)"
contains "and the second" "\"point\":\"$(first out)\"" "$(tr -d ' ' <out/run-0002.jsonl)"
contains "and the profile" "$(first out)" "$(cat out/profile.json)"
cp out/progress.json kept
run -o out -- ./auto 0 2
check "a later sweep does not choose again" "" "$(grep 'chosen here' said)"
check "... and leaves the file alone" "" "$(diff out/progress.json kept)"
contains "... but uses it" "\"point\":\"$(first out)\"" "$(tr -d ' ' <out/run-0003.jsonl)"
run -o named -P "$(first out)" -- ./auto 0 2
contains "it can be named" "\"point\":\"$(first out)\"" "$(tr -d ' ' <named/run-0001.jsonl)"
check "... and then nothing is stored" no "$(exists named/progress.json)"
run -r -o out --progress=none -- ./auto 0 1
check "--reset forgets it" no "$(exists out/progress.json)"

# valid FILE: does it hold to the schema?
valid() {
	python3 - "$here/../../doc/progress.schema.json" "$1" <<'PY' 2>&1
import json, sys
from jsonschema import Draft7Validator
schema, choice = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
errors = list(Draft7Validator(schema).iter_errors(choice))
assert list(Draft7Validator(schema).iter_errors(dict(choice, version=2)))
print("no" if errors else "yes", *errors)
PY
}
if python3 -c 'import jsonschema' 2>/dev/null; then
	check "progress.json holds to its schema" yes "$(valid kept)"
else
	skip "the schema (no python3-jsonschema)"
fi

# ---- not wanted
run -o none --progress=none -- ./auto 0 2
check "none: nothing is chosen" no "$(exists none/progress.json)"
run -e -o end -- ./auto 2000
check "-e: nothing is chosen" no "$(exists end/progress.json)"
run -o wrong -P auto -P work -- ./auto 0 1
check "auto stands alone" 2 $?
"${cc[@]}" -g -O2 -I"$here/../.." -pthread -o macros -xc - <<'C' || exit 1
#include "causal/causal.h"
#include <time.h>
__attribute__((noinline)) static void work(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}
int main(void)
{
	for (time_t end = time(NULL) + 3; time(NULL) < end;) {
		work();
		CAUSAL_PROGRESS_NAMED("mine");
	}
}
C
run -o macros.out -- ./macros
check "macros: nothing is chosen" no "$(exists macros.out/progress.json)"
contains "... they are used" '"point":"mine"' "$(tr -d ' ' <macros.out/run-0001.jsonl)"

# ---- stripped: by addresses that --progress takes
strip -o stripped auto
run -o bare -- ./stripped 0 5
check "stripped: a choice" yes "$(good "$(first bare)")"
run -o bare.named -P "$(first bare)" -- ./stripped 0 2
contains "stripped: it can be named" "\"point\":\"$(first bare)\"" "$(tr -d ' ' <bare.named/run-0001.jsonl)"

# ---- in the program's own process
run --single -o single -- ./auto 0 5
for ((i = 0; i < 50; i++)); do
	[[ -e single/profile.json ]] && break
	sleep 0.1
done
check "--single: a choice" yes "$(good "$(first single)")"

# ---- too short to choose: end to end
run -n 3 -o short -- true
contains "too short: it is told" "measured end to end" "$(cat said)"
contains "... with what to do" "causal -P FILE:LINE -- true" "$(cat said)"
contains "too short: stored" '"how":"end-to-end"' "$(tr -d ' ' <short/progress.json)"
contains "too short: the second run is an experiment" '"end_to_end":true' "$(tr -d ' ' <short/run-0002.jsonl)"
check "too short: told once" 1 "$(grep -c 'measured end to end' said)"

# ---- fixed work: visits per run stay the same, nothing is dropped
run -n 4 -o fixed -- ./auto 100000
lacks "fixed work: nothing is dropped" dropped "$(cat said fixed/progress.json)"

# ---- asking
run -o asked --progress=ask -- ./auto 0 5 </dev/null
check "ask, no terminal: a choice all the same" yes "$(good "$(first asked)")"
if command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	rm -rf asked
	{
		echo 2
		sleep 8
	} | script -qec "$causal -s 0,50 -o asked --progress=ask -- ./auto 0 6" /dev/null >said
	second=$(tr -d '\r' <said | sed -n 's/^.*causal:   2[ *] \([^ ]*\): .*/\1/p' | head -1)
	contains "ask: a list" "causal:   1" "$(cat said)"
	check "ask: the answer is stored" "$second" "$(first asked)"
	contains "... as the user's" '"how":"user"' "$(tr -d ' ' <asked/progress.json)"
else
	skip "asking (no script(1) that gives a terminal)"
fi

# ---- a breakpoint that is hit too often
"${cc[@]}" -g -O2 -o trapped -xc - <<'C' || exit 1
#include <stdio.h>
#include <time.h>
/* The instruction at `spot` has one byte, what follows is jumped to, and read as the distance of a
 * jump leads into the program itself: no room for a jump of any form. */
__asm__(".text\n.type spot, @function\nspot: nop\n1: nopl (%rax)\n add %al, %al\n dec %edi\n jnz 1b\n ret\n"
	".size spot, . - spot\n");
void spot(int n);
static char room[1 << 20];
int main(void)
{
	for (time_t end = time(NULL) + 3; time(NULL) < end;)
		spot(3);
	return room[0];
}
C
run -v 1 -o trap -P spot -- ./trapped
if grep -q 'no room for a jump' said; then
	contains "a hot breakpoint is told of" "'spot'" "$(grep 'no room for a jump' said)"
	check "... once" 1 "$(grep -c 'no room for a jump' said)"
else
	skip "a hot breakpoint (here it is a jump after all): $(tail -3 said)"
fi

# A choice needs windows in which the program runs: with next to no CPU there is none, rightly.
for dir in out bare single asked fixed; do
	[[ -d $dir ]] && starved "$dir" && busy=1
done
echo "$passed passed, $failed failed, $skipped skipped"
if ((failed && busy)); then
	echo "SKIP: other programs took the CPUs meanwhile: what failed says nothing"
	exit 77
fi
((failed == 0))
