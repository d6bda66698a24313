#!/bin/bash
# SPDX-License-Identifier: MIT
# Progress points that causal chooses: that a choice is made, kept, used by all later runs, can be
# named by the user, and is not made where it is not wanted. Which one is best is a question for
# tests/accuracy; here it must only be one of those that go with the work (tests/apps/auto.c).
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
needs_runtime
apps=$source_dir/tests/apps

exists() { [[ -e $1 ]] && echo yes || echo no; }
# the first name in a choice
first() { sed -n 's/.*"name": *"\(.*\)",*$/\1/p' "$1/progress.json" 2>/dev/null | head -1; }
# run OPTION... -- COMMAND: what the driver says goes to the file `said`
run() { "$causal" -v 2 -s 0,50 "$@" >/dev/null 2>said; }
# fits NAME: does it go with the units?
fits() {
	case $1 in
	first_half | second_half | first_half+0x* | second_half+0x* | work+0x* | sub_*) echo yes ;;
	auto.c:*) sed -n "${1#auto.c:}p" "$apps/auto.c" | grep -qE 'while \(until|_half\(\);' && echo yes ;;
	*) echo "$1" ;;
	esac
}
# choose DIR OPTION... -- COMMAND: is a fitting choice made, and stored in DIR? False: what needs one
# cannot go on. A choice needs windows in which the program runs, so where other programs take the
# CPUs there are three tries, and what is skipped then had no candidate that was good.
choose() {
	local dir=$1 try
	shift
	for try in 1 2 3; do
		rm -rf "$dir"
		run -o "$dir" "$@"
		status=$?
		until_there "$dir/profile.json"
		[[ $(fits "$(first "$dir")") == yes ]] && break
		starved 200 "$dir" || break
	done
	if [[ $(fits "$(first "$dir")") != yes ]] && starved 200 "$dir" && ! grep -q ', good$' said; then
		skip "$dir: a choice: other programs took the CPUs, $try times"
		return 1
	fi
	check "$dir: the choice goes with the work" yes "$(fits "$(first "$dir")")"
	[[ -n $(first "$dir") ]]
}
# --single's conductor ends after the program
until_there() {
	local end=$((SECONDS + 10))
	until [[ -e $1 ]] || ((SECONDS > end)); do sleep 0.05; done
}

[[ $("${cc[@]}" -dumpmachine) == x86_64* ]] || { skip "x86-64 only"; finish; }
"${cc[@]}" -g -O2 -pthread -o auto "$apps/auto.c" || exit 1

# ---- a choice, and what becomes of it
if choose out -- ./auto 0 4.5; then
	check "exit status" 0 "$status"
	contains "it is told" "causal: progress point $(first out), chosen here" "$(cat said)"
	contains "the run has experiments with it" "\"point\":\"$(first out)\"" "$(tr -d ' ' <out/run-0001.jsonl)"
	contains "and the profile" "$(first out)" "$(cat out/profile.json)"
	cp out/progress.json kept
	run -o out -- ./auto 0 2
	check "a later sweep does not choose again" "" "$(grep 'chosen here' said)"
	check "... and leaves the file alone" "" "$(diff out/progress.json kept)"
	contains "... but uses it" "\"point\":\"$(first out)\"" "$(tr -d ' ' <out/run-0002.jsonl)"
	run -o named -P "$(first out)" -- ./auto 0 2
	contains "it can be named" "\"point\":\"$(first out)\"" "$(tr -d ' ' <named/run-0001.jsonl)"
	check "... and then nothing is stored" no "$(exists named/progress.json)"
	run -r -o out --progress=none -- ./auto 0 1
	check "--reset forgets it" no "$(exists out/progress.json)"
fi

python=${CA_PYTHON_JSONSCHEMA:-python3}
# valid FILE: does it hold to the schema?
valid() {
	"$python" - "$source_dir/doc/progress.schema.json" "$1" <<'PY' 2>&1
import json, sys
from jsonschema import Draft7Validator
schema, choice = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
errors = list(Draft7Validator(schema).iter_errors(choice))
assert list(Draft7Validator(schema).iter_errors(dict(choice, version=2)))
print("no" if errors else "yes", *errors)
PY
}
if [[ ! -e kept ]]; then
	skip "progress.json and its schema: there is none"
elif "$python" -c 'import jsonschema' 2>/dev/null; then
	check "progress.json holds to its schema" yes "$(valid kept)"
else
	skip "progress.json and its schema: no jsonschema (Debian: python3-jsonschema)"
fi

# ---- not wanted
run -o none --progress=none -- ./auto 0 2
check "none: nothing is chosen" no "$(exists none/progress.json)"
run -e -o end -- ./auto 2000
check "-e: nothing is chosen" no "$(exists end/progress.json)"
run -o wrong -P auto -P work -- ./auto 0 1
check "auto stands alone" 2 $?
"${cc[@]}" -g -O2 -I"$source_dir" -I"$source_dir/include" -pthread -o macros -xc - <<'C' || exit 1
#include <causal.h>
#include <time.h>
__attribute__((noinline)) static void work(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}
int main(void)
{
	for (time_t end = time(NULL) + 2; time(NULL) < end;) {
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
if choose bare -- ./stripped 0 3.5; then
	run -o bare.named -P "$(first bare)" -- ./stripped 0 2
	contains "stripped: it can be named" "\"point\":\"$(first bare)\"" "$(tr -d ' ' <bare.named/run-0001.jsonl)"
fi

# ---- in the program's own process
choose single --single -- ./auto 0 3.5

# ---- too short to choose: end to end
run -n 3 -o short -- true
contains "too short: it is told" "measured end to end" "$(cat said)"
contains "... with what to do" "causal -P FILE:LINE -- true" "$(cat said)"
contains "too short: stored" '"how":"end-to-end"' "$(tr -d ' ' <short/progress.json)"
contains "too short: the second run is an experiment" '"end_to_end":true' "$(tr -d ' ' <short/run-0002.jsonl)"
check "too short: told once" 1 "$(grep -c 'measured end to end' said)"

# ---- fixed work: visits per run stay the same, nothing is dropped
if choose fixed -n 3 -- ./auto 28000; then
	check "it is told once" 1 "$(grep -c 'chosen here' said)"
	contains "the second run has experiments with it" "\"point\":\"$(first fixed)\"" "$(tr -d ' ' <fixed/run-0002.jsonl)"
	lacks "fixed work: nothing is dropped" "$(first fixed) is dropped" "$(cat said)"
	lacks "... nor stored as dropped" '"dropped"' "$(cat fixed/progress.json)"
fi

# ---- asking
choose asked --progress=ask -- ./auto 0 3.5 </dev/null
if command -v script >/dev/null && script -qec true /dev/null </dev/null >/dev/null 2>&1; then
	for try in 1 2 3; do
		rm -rf asked
		{
			echo 2
			for ((i = 0; i < 80; i++)); do
				[[ -e asked/profile.json ]] && break
				sleep 0.1
			done
		} | script -qec "$causal -s 0,50 -o asked --progress=ask -- ./auto 0 6" /dev/null >said
		grep -q 'causal:   2' said && break
	done
	if ! grep -q 'causal:   2' said && starved 200 asked; then
		skip "asking: other programs took the CPUs, 3 times"
	else
		second=$(tr -d '\r' <said | sed -n 's/^.*causal:   2[ *] \([^ ]*\): .*/\1/p' | head -1)
		contains "ask: a list" "causal:   1" "$(cat said)"
		check "ask: the answer is stored" "${second:-none}" "$(first asked)"
		contains "... as the user's" '"how":"user"' "$(tr -d ' ' <asked/progress.json)"
	fi
else
	skip "asking: no script(1) that gives a terminal (Debian: bsdutils)"
fi

# ---- code that only waits for other threads
"${cc[@]}" -g -O2 -pthread -o turns -xc - <<'C' || exit 1
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
static _Atomic int turn, done;
static volatile long sum;
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) sum += i; }
__attribute__((noinline)) void await(int me)
{
	while (atomic_load_explicit(&turn, memory_order_acquire) != me)
		__builtin_ia32_pause();
}
static void *run(void *p)
{
	int me = p != 0;
	time_t end = time(0) + 4;
	do {
		await(me);
		work(me ? 20000 : 40000);
		if (!me && time(0) >= end)
			done = 1;
		atomic_store_explicit(&turn, !me, memory_order_release);
	} while (!done);
	return p;
}
int main(void)
{
	pthread_t other;
	if (pthread_create(&other, 0, run, &other))
		return 1;
	run(0);
	return pthread_join(other, 0);
}
C
run -o turns.out -n 1 -- ./turns
check "a wait is no row" no "$(grep -q '"name": *"await"' turns.out/profile.json && echo yes || echo no)"
check "what is waited for is one" yes "$(grep -q '"name": *"work"' turns.out/profile.json && echo yes || echo no)"
contains "and it is told" "threads spin, waiting for each other: await" "$(cat said)"

# ---- threads that wait for work by giving up the CPU, as those of OpenBLAS do: no row, and no progress point
"${cc[@]}" -g -O2 -pthread -o served -xc - <<'C' || exit 1
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
typedef void task(void);
static task *_Atomic queue;
static atomic_int done;
static volatile long sink;
__attribute__((noinline)) void work(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}
static void part(void)
{
	work(300000);
}
__attribute__((noinline)) void *serve(void *p)
{
	task *next;
	while (!atomic_load(&done)) {
		if (!(next = atomic_load(&queue))) {
			sched_yield();
			continue;
		}
		next();
		atomic_store(&queue, NULL);
	}
	return p;
}
int main(void)
{
	pthread_t other;
	if (pthread_create(&other, 0, serve, NULL))
		return 1;
	for (int i = 0; i < 1200; i++) {
		work(500000);
		atomic_store(&queue, part);
		work(200000);
		while (atomic_load(&queue))
			sched_yield();
	}
	atomic_store(&done, 1);
	return pthread_join(other, 0);
}
C
run -o served.out -n 2 -- ./served
check "who yields is no row" no "$(grep -q '"name": *"serve"' served.out/profile.json && echo yes || echo no)"
check "nor the unit of work" no "$(grep -q 'progress point serve' said && echo yes || echo no)"
check "its work is a row" yes "$(grep -q '"name": *"work"' served.out/profile.json && echo yes || echo no)"

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
	for (time_t end = time(NULL) + 2; time(NULL) < end;)
		spot(3);
	return room[0];
}
C
run -o trap -P spot -- ./trapped
if grep -q 'no jump fits' said; then
	contains "a hot breakpoint is told of" "'spot'" "$(grep 'no jump fits' said)"
	check "... once" 1 "$(grep -c 'no jump fits' said)"
else
	skip "a hot breakpoint (here it is a jump after all): $(tail -n 1 said)"
fi

finish
