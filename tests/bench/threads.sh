#!/bin/bash
# SPDX-License-Identifier: MIT
# What creating and joining a thread costs, in us: alone and under causal in turns, the least of all rounds.
# threads.sh [ALIVE [TURNS]]: with ALIVE other threads that wait. Run it in the build folder.
set -eu
build=${CA_TOP_BUILDDIR:-$PWD}
alive=${1:-0} turns=${2:-5}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for ((i = 0; i < turns; i++)); do
	"$build/tests/bench/bench_threads" "$alive" >>"$dir/alone"
	for ticks in perf timer; do
		"$build/driver/causal" -o "$dir/out" -b $ticks -e -n 1 -s 0 -- \
			"$build/tests/bench/bench_threads" "$alive" >>"$dir/$ticks" 2>"$dir/said"
	done
done
least() { sort -g "$dir/$1" | head -n 1; }
alone=$(least alone)
echo "alone $alone us"
for ticks in perf timer; do
	awk -v t="$(least $ticks)" -v a="$alone" -v n=$ticks \
		'BEGIN { printf "%s %s us: %.1f more, %.2f times as long\n", n, t, t - a, t / a }'
done
