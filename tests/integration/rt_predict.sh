#!/bin/bash
# SPDX-License-Identifier: MIT
# What is predicted for a program whose answers are known (tests/apps/known.c): halving what takes
# 3/5 of a round brings 30 %, 1/5 10 %, what runs beside nothing. With wide bounds that keep the
# order: how precise predictions are is the business of tests/accuracy.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
export CAUSAL_EXPERIMENT_MIN=0.1

# predicts REGION LEAST MOST OPTION...: percent; three tries
predicts() {
	local region=$1 least=$2 most=$3 effect try
	shift 3
	for try in 1 2 3; do
		profile "$@" -s 0,50 -F "^$region\$" -- "$apps/known" 2
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

find_backends
for backend in "${backends[@]}"; do
	# by perf with probes at entry and exit, by timer with samples
	options=(-b "$backend" -B MAIN)
	[[ $backend == perf ]] || options+=(--no-exact)
	predicts large 20 40 "${options[@]}"
	predicts small 3 17 "${options[@]}"
	predicts aside -7 7 "${options[@]}"
done
finish
