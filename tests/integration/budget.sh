#!/bin/bash
# SPDX-License-Identifier: MIT
# A sweep without a number of runs: when it ends, what it says, and what a running one can be told.
# Run by make, which says where the trees are.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
needs_runtime
unset CAUSAL_ITERATIONS

# Works for so many seconds, or until there is a file of that name; with an alternate stack as small as those that Rust
# gives its threads, and nothing below it.
cat >work.c <<'C'
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void much(void) { for (int i = 0; i < 200000; i++) sink += (unsigned long)i; }
__attribute__((noinline)) void some(void) { for (int i = 0; i < 100000; i++) sink += (unsigned long)i; }
int main(int argc, char **argv)
{
	double seconds = atof(argv[1]);
	struct timespec start, now;
	char *memory = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alternate = { .ss_sp = memory + 4096, .ss_size = 2 * 4096 };

	if (memory == MAP_FAILED || mprotect(memory, 4096, PROT_NONE) || sigaltstack(&alternate, NULL))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		much();
		some();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 < seconds &&
		 (argc < 3 || access(argv[2], F_OK)));
	return 7;
}
C
"${cc[@]}" -g -O1 -o work work.c || exit 1
runs() { kill -0 "$1" 2>/dev/null; }
runs_in() { find "$1" -name 'run-*.jsonl' | wc -l; }

# ---- when it ends
timeout 100 "$causal" --keep-going --max-runs 2 --budget 90 --until 0.01 -o most -- ./work 1 2>err
check "--max-runs" 2 "$(runs_in most)"
contains "... it says so" "stopped: that is all of --max-runs 2" "$(cat err)"

timeout 100 "$causal" --keep-going --budget 2 --until 0.01 -o spent -- ./work 0.4 2>err
check "a budget is spent by more than one run" yes "$( (($(runs_in spent) > 1)) && echo yes)"
contains "... it says so, or that a further run does not fit" "the budget of 2 s" "$(cat err)"
contains "... and what to do" "; --budget 4 for more" "$(cat err)"

timeout 100 "$causal" --budget 0.01 -o one -- ./work 0.3 2>err
check "one run always ends; its status is the sweep's" "7 1" "$? $(runs_in one)"

timeout 100 "$causal" --budget 90 -o none -- true 2>err
check "a program without experiments ends the sweep" 10 "$(runs_in none)"
contains "... it says so" "stopped: no experiment could be made" "$(cat err)"

timeout 100 "$causal" -n 3 --keep-going --budget 0.01 -o three -- ./work 0.3 2>err
check "-n is a number of runs, whatever the budget" 3 "$(runs_in three)"
check "... it ends as it was asked to" 0 "$(grep -c stopped: err)"

timeout 100 "$causal" --until 100 --budget 60 --experiment-min 0.05 --warm-up 5 --keep-going -o decided -- ./work 3 2>err
if grep -q 'other programs took the CPU' err; then
	skip "rows can be decided: other programs take the CPUs"
else
	contains "rows can be decided" "stopped: the first" "$(cat err)"
fi

timeout 100 "$causal" -s 0,50 --until 20 --budget 60 --keep-going -o dealt -- ./work 0.4 2>err
if grep -q 'other programs took the CPU' err; then
	skip "rows of whole runs can be decided: other programs take the CPUs"
else
	contains "rows of whole runs can be decided, with speedups that were asked for" "stopped: the first" "$(cat err)"
fi

# ---- a program that runs longer than the budget
timeout 100 "$causal" --budget 1 --until 0.01 --experiment-min 0.05 -o long -- ./work 60 stop 2>err &
sweep=$!
until_left_alone() { until grep -q "runs on undisturbed" err || ! runs "$sweep"; do sleep 0.1; done; }
until_left_alone
check "results are shown while it runs, and are there" "yes yes" \
	"$(runs "$sweep" && echo yes) $([[ -s long/profile.json ]] && echo yes)"
touch stop
wait "$sweep"
check "it goes on to its end" "7 1" "$? $(runs_in long)"
lacks "... of which nothing is said after the results" "to go" "$(sed '1,/runs on undisturbed/d' err)"
check "... and the table is shown once" 1 "$(grep -c '^Program speedup in %' err)"

# What was over before the experiments of its only run is none of their business.
cat >loads.c <<'C'
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static void spend(int n) { for (volatile int i = 0; i < n; i++); }
__attribute__((noinline)) void load(void) { spend(300000); }
__attribute__((noinline)) void much(void) { spend(200000); }
__attribute__((noinline)) void some(void) { spend(100000); }
static void *work(void *much_of_it) /* not in step */
{
	while (access("stop", F_OK)) {
		if (much_of_it)
			much();
		some();
	}
	return NULL;
}
int main(void)
{
	pthread_t thread;
	struct timespec from, now;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do { /* as long on each machine */
		load();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - from.tv_sec + (now.tv_nsec - from.tv_nsec) / 1e9 < 0.8);
	pthread_create(&thread, NULL, work, NULL);
	work(&thread);
	pthread_join(thread, NULL);
	return 0;
}
C
"${cc[@]}" -g -O1 -pthread -o loads loads.c || exit 1
rm -f stop
timeout 100 "$causal" --budget 6 --until 0.01 --experiment-min 0.05 -o loads-out -- ./loads 2>err &
sweep=$!
until_left_alone
touch stop
wait "$sweep"
if grep -q 'Unit of work: time itself' err; then
	skip "what was over before the experiments: other programs leave both threads one CPU"
else
	contains "what was over before the experiments is said" "before that load was at work for" "$(tr -s '\n ' ' ' <err)"
	lacks "... and has no verdict" "does not matter" "$(grep ' load (loads.c' err)"
fi

# ---- several variants, one budget
timeout 100 "$causal" --keep-going -s 0,25 -s 0,50 --budget 2 --until 0.01 --experiment-min 0.05 -o two -- ./work 4 2>err
check "each variant has a run" 2 "$(runs_in two)"
contains "... the first run's results are not the last" "variant 2 of 2 begins when it has ended" "$(cat err)"
contains "... all results are shown in the end" "2 runs, " "$(sed -n '/begins when/,$p' err)"
timeout 100 "$causal" --keep-going -e -s 0,25,50 --budget 1 --until 0.01 -o each -- ./work 1 2>err
check "end to end, each variant has a run as well" 3 "$(runs_in each)"
contains "... told before it takes longer than the budget" "each of the 3 variants runs once" "$(sed '/run 2: /,$d' err)"
contains "... with a true time to go" "run 1: 1 s, at most 2 s to go" "$(cat err)"
check "... and a budget for more than was spent" 1 "$(grep -c -E -e '--budget ([4-9]|[1-9][0-9]) for more' err)"

# ---- a run that would never end: at 100 % of a wait for a time, time stands still
cat >until.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
volatile unsigned long sink;
volatile int stop;
static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
__attribute__((noinline)) void wait_until(double time)
{
	for (double left; (left = time - now()) > 0;) {
		struct timespec t = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
		nanosleep(&t, NULL);
	}
}
__attribute__((noinline)) void much(void) { for (int i = 0; i < 200000; i++) sink += (unsigned long)i; }
static void *works(void *unused) { while (!stop) much(); return unused; }
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, works, NULL);
	for (int i = 0; i < 20; i++)
		wait_until(now() + 0.03);
	stop = 1;
	pthread_join(thread, NULL);
	return 7;
}
C
"${cc[@]}" -g -O1 -pthread -o until until.c || exit 1
timeout 60 "$causal" -n 1 --keep-going -e -s 100 -F '^wait_until$' -o until_out -- ./until 2>err
check "a run that would never end is given up" 7 "$?"
contains "... it says so, why, and what to do" "at 100 % of wait_until a run takes more than ten times as long" "$(cat err)"
check "... it ends as it would alone, and is no experiment" '"exit_status":7 "flags":["cut"' \
	"$(grep -o '"exit_status":7' until_out/run-0001.jsonl) $(grep -o '"flags":\["cut"' until_out/run-0001.jsonl)"

# ---- ctl
experiments() { grep -cs '"type":"experiment"' "$1/run-0001.jsonl" || [[ -e $1/run-0001.jsonl ]] || echo 0; }
timeout 100 "$causal" --budget 0 --until 0.01 --experiment-min 0.05 --warm-up 5 -o told -- ./work 60 told-stop 2>err &
sweep=$!
until (($(experiments told) > 2)) || ! runs "$sweep"; do sleep 0.1; done
check "ctl pause" 0 "$("$causal" ctl pause told >/dev/null 2>&1; echo $?)"
sleep 0.5
before=$(experiments told)
sleep 1.5
check "no experiments meanwhile" "$before" "$(experiments told)"
check "ctl resume" 0 "$("$causal" ctl resume told >/dev/null 2>&1; echo $?)"
until (($(experiments told) > before)) || ! runs "$sweep"; do sleep 0.1; done
check "they go on" yes "$( (($(experiments told) > before)) && echo yes)"
check "ctl finish" 0 "$("$causal" ctl finish told >/dev/null 2>&1; echo $?)"
until_left_alone
check "the program goes on" yes "$(runs "$sweep" && echo yes)"
touch told-stop
wait "$sweep"
check "... to its end, and no other run begins" "7 1" "$? $(runs_in told)"
contains "... it says why" "stopped: it was asked for" "$(cat err)"
check "ctl without a sweep" 1 "$("$causal" ctl pause told >/dev/null 2>&1; echo $?)"
check "ctl of nowhere" 1 "$("$causal" ctl pause nowhere >/dev/null 2>&1; echo $?)"
check "ctl with another word" 2 "$("$causal" ctl stop told >/dev/null 2>&1; echo $?)"
check "ctl alone" 2 "$("$causal" ctl >/dev/null 2>&1; echo $?)"
check "nothing is left of it" "" "$(find told -name '.*' -type f)"

# ---- left alone while most threads are between a look at the clock and a wait
timeout 60 "$causal" --budget 0 --experiment-min 0.05 -o left -- "$build/tests/apps/calls" left >out 2>err &
sweep=$!
until (($(experiments left) > 2)) || ! runs "$sweep"; do sleep 0.1; done
check "ctl finish of one that waits" 0 "$("$causal" ctl finish left >/dev/null 2>&1; echo $?)"
wait "$sweep"
check "... it goes on to its end" "0 left: good" "$? $(cat out)"

# ---- where no run can show more than the first
useless() { # NAME REASON OPTION... -- COMMAND
	local name=$1 reason=$2
	shift 2
	rm -rf useless
	"$causal" -o useless "$@" >/dev/null 2>err
	check "$name: one run" "0 1" "$? $(runs_in useless)"
	contains "$name: why" "No result: $reason" "$(cat err)"
	lacks "$name: nothing is promised" "further runs" "$(cat err)"
}
useless "a program that waits" "the program used hardly any CPU time" -- sleep 0.7
if echo 'int main(void) { for (volatile int i = 0; i < 300000000; i++) { } }' >static.c &&
	"${cc[@]}" -static -o static static.c 2>/dev/null; then
	useless "a static program" "the runtime could not be preloaded" -- ./static
fi
"${cc[@]}" -g -o in_main static.c || exit 1
useless "all in main" "nearly all samples are in main itself" -- ./in_main

finish
