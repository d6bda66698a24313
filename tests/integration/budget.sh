#!/bin/bash
# SPDX-License-Identifier: MIT
# A sweep without a number of runs: when it ends, what it says, and what a running one can be told.
# Run by make, which says where the trees are.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
if [[ -n ${CA_SANITIZER-} ]]; then
	echo "SKIP: the runtime does not go with $CA_SANITIZER"
	exit 77
fi
unset CAUSAL_ITERATIONS

# Works for so many seconds, and leaves a file when it is through.
cat >work.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) void much(void) { for (int i = 0; i < 200000; i++) sink += (unsigned long)i; }
__attribute__((noinline)) void some(void) { for (int i = 0; i < 100000; i++) sink += (unsigned long)i; }
int main(int argc, char **argv)
{
	time_t end = time(NULL) + atoi(argv[1]);
	FILE *file;

	for (long n = 0; time(NULL) < end; n++) {
		much();
		some();
	}
	if (argc > 2 && (file = fopen(argv[2], "w")))
		fclose(file);
	return 7;
}
C
"${cc[@]}" -g -O1 -o work work.c || exit 1
runs_in() { find "$1" -name 'run-*.jsonl' | wc -l; }

# ---- when it ends
timeout 100 "$causal" --keep-going --max-runs 2 --budget 90 --until 0.01 -o most -- ./work 2 2>err
check "--max-runs" 2 "$(runs_in most)"
contains "... it says so" "stopped: that is all of --max-runs 2" "$(cat err)"

timeout 100 "$causal" --keep-going --budget 4 --until 0.01 -o spent -- ./work 1 2>err
check "a budget is spent by more than one run" yes "$( (($(runs_in spent) > 1)) && echo yes)"
contains "... it says so" "the budget of 4 s is spent; --budget 8 for more" "$(cat err)"

timeout 100 "$causal" --budget 0.01 -o one -- ./work 1 2>err
check "one run always ends; its status is the sweep's" "7 1" "$? $(runs_in one)"

timeout 100 "$causal" --budget 90 -o none -- true 2>err
check "a program without experiments ends the sweep" 10 "$(runs_in none)"
contains "... it says so" "stopped: no experiment could be made" "$(cat err)"

timeout 100 "$causal" -n 3 --keep-going --budget 0.01 -o three -- ./work 1 2>err
check "-n is a number of runs, whatever the budget" 3 "$(runs_in three)"
check "... it ends as it was asked to" 0 "$(grep -c stopped: err)"

timeout 100 "$causal" --until 100 --budget 60 --experiment-min 0.05 --warm-up 5 --keep-going -o decided -- ./work 3 2>err
if grep -q 'other programs took the CPU' err; then
	skip "rows can be decided: other programs take the CPUs"
else
	contains "rows can be decided" "stopped: the first" "$(cat err)"
fi

# ---- a program that runs longer than the budget
timeout 100 "$causal" --budget 1 --until 0.01 --experiment-min 0.05 -o long -- ./work 12 through 2>err &
sweep=$!
until grep -q "runs on undisturbed" err || ! kill -0 "$sweep" 2>/dev/null; do sleep 0.2; done
check "results are shown while it runs" no "$([[ -e through ]] && echo yes || echo no)"
check "... and are there" yes "$([[ -s long/profile.json ]] && echo yes)"
wait "$sweep"
check "it goes on to its end" "7 yes 1" "$? $([[ -e through ]] && echo yes) $(runs_in long)"
check "... and the table is shown once" 1 "$(grep -c '^Program speedup in %' err)"

# ---- ctl
experiments() { grep -cs '"type":"experiment"' "$1/run-0001.jsonl" || [[ -e $1/run-0001.jsonl ]] || echo 0; }
timeout 100 "$causal" --budget 0 --until 0.01 --experiment-min 0.05 --warm-up 5 -o told -- ./work 20 told-through 2>err &
sweep=$!
until (($(experiments told) > 2)) || ! kill -0 "$sweep" 2>/dev/null; do sleep 0.2; done
check "ctl pause" 0 "$("$causal" ctl pause told >/dev/null 2>&1; echo $?)"
sleep 0.5
before=$(experiments told)
sleep 1.5
check "no experiments meanwhile" "$before" "$(experiments told)"
check "ctl resume" 0 "$("$causal" ctl resume told >/dev/null 2>&1; echo $?)"
until (($(experiments told) > before)) || ! kill -0 "$sweep" 2>/dev/null; do sleep 0.2; done
check "they go on" yes "$( (($(experiments told) > before)) && echo yes)"
check "ctl finish" 0 "$("$causal" ctl finish told >/dev/null 2>&1; echo $?)"
wait "$sweep"
check "the program goes on to its end, and no other run begins" "7 yes 1" \
	"$? $([[ -e told-through ]] && echo yes) $(runs_in told)"
contains "... it says why" "stopped: it was asked for" "$(cat err)"
check "ctl without a sweep" 1 "$("$causal" ctl pause told >/dev/null 2>&1; echo $?)"
check "ctl of nowhere" 1 "$("$causal" ctl pause nowhere >/dev/null 2>&1; echo $?)"
check "ctl with another word" 2 "$("$causal" ctl stop told >/dev/null 2>&1; echo $?)"
check "ctl alone" 2 "$("$causal" ctl >/dev/null 2>&1; echo $?)"
check "nothing is left of it" "" "$(find told -name '.*' -type f)"

finish
