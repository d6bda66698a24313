#!/bin/bash
# SPDX-License-Identifier: MIT
# What is predicted for a program whose answers are known (tests/apps/known.c): halving what takes
# 3/5 of a round brings 30 %, 1/5 10 %, what runs beside nothing. With wide bounds that keep the
# order: how precise predictions are is the business of tests/accuracy. Of requests, every eighth of which
# goes on with rare() and then takes four times as long: halving that leaves the middle alone, and makes the
# slow ones 37.5 % faster.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
export CAUSAL_EXPERIMENT_MIN=0.1

known=("$apps/known" 2)
# predicts REGION LEAST MOST OPTION...: percent; three tries
predicts() {
	local region=$1 least=$2 most=$3 effect try
	shift 3
	for try in 1 2 3; do
		profile "$@" -s 0,50 -F "^$region\$" -- "${known[@]}"
		effect=$(tr -d ' \n' <results/profile.json | sed -n 's/.*"speedup":50,"effect":\([-0-9.]*\).*/\1/p')
		if awk -v e="${effect:-none}" "BEGIN { exit !(e != \"none\" && e >= $least && e <= $most) }"; then
			good
			return
		fi
		echo "try $try, $region, $*: ${effect:-no} %, $(($(total cpu_ns) * 100 / $(total runtime))) % CPU"
	done
	if starved 130 results; then
		skip "$region, $*: other programs take the CPUs"
	else
		bad "$region, $*: predicted ${effect:-no} %, not $least to $most"
	fi
}

# percentile N: the effect of half the time on it
percentile() {
	tr -d ' \n' <results/profile.json |
		sed -n "s/.*\"percentile\":$1,[^]]*\"speedup\":50,\"effect\":\([-0-9.]*\).*/\1/p"
}

# predicts_slow N...: these percentiles, from the third try on
predicts_slow() {
	local try wrong n
	for try in 1 2 3; do
		profile -B MAIN -s 0,50 -F '^rare$' -- "$apps/known" 3 requests
		wrong=
		for n in 50 "$@"; do
			awk -v n="$n" -v e="$(percentile "$n")" \
				'BEGIN { exit !(e != "" && (n == 50 ? e > -7 && e < 7 : e > 27 && e < 48)) }' ||
				wrong+=" p$n: $(percentile "$n") %"
		done
		if [[ ! $wrong ]]; then
			good
			return
		fi
		echo "try $try, percentiles $*:$wrong"
	done
	if starved 130 results; then
		skip "percentiles $*: other programs take the CPUs"
	else
		bad "percentiles $*:$wrong"
	fi
}

predicts_slow 95
predicts_slow 95 99
# samples are too coarse for single visits
profile -B MAIN --no-exact -s 0,50 -F '^rare$' -- "$apps/known" 2 requests
at_least "by samples there is the mean of a latency" 1 "$(grep -c '"kind":"latency"' results/run-0001.jsonl)"
check "... and no percentile" "" "$(percentile 95)"

find_backends
for backend in "${backends[@]}"; do
	# by perf with probes at entry and exit, by timer with samples
	options=(-b "$backend" -B MAIN)
	[[ $backend == perf ]] || options+=(--no-exact)
	predicts large 20 40 "${options[@]}"
	predicts small 3 17 "${options[@]}"
	predicts aside -7 7 "${options[@]}"
done
# A clock that is not the kernel's is the program's business: what is counted per time is not in its.
"${cc[@]}" -std=gnu17 -D_GNU_SOURCE -O2 -fPIC -shared "$source_dir/tests/apps/fast_clock.c" -o fast_clock.so ||
	bad "cannot build fast_clock.so"
known=(env LD_PRELOAD="$work/fast_clock.so" "$apps/known" 4)
predicts large 20 40 -B MAIN
# A chosen point is passed by what two threads do in 60 % of the run; before, one thread does load(), a third of the
# run, and then there is nothing to be counted: half of it is 17 %, and half of what both do half of the time 15 %.
"${cc[@]}" -std=gnu17 -g -O1 -pthread -o loads -xc - <<'C' || exit 1
#include <pthread.h>
static int next;
static inline __attribute__((always_inline)) void spend(long turns)
{
	unsigned long x = 1;
	for (long i = 0; i < turns; i++)
		__asm__ volatile("imul $3, %0, %0" : "+r"(x));
}
__attribute__((noinline)) static void load(void) { spend(300000); }
__attribute__((noinline)) static void item(void) { spend(300000); __asm__(""); }
__attribute__((noinline)) static void other(void) { spend(300000); __asm__("" ::"i"(1)); }
static void *work(void *arg)
{
	while (__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) < 4000) {
		item();
		other();
	}
	return arg;
}
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 2000; i++)
		load();
	pthread_create(&thread, 0, work, 0);
	work(0);
	pthread_join(thread, 0);
}
C
known=(./loads)
predicts load 13 21 -n 3
predicts item 11 20 -n 3
finish
