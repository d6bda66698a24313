#!/bin/bash
# SPDX-License-Identifier: MIT
# Two functions sped up at once, where paper knows the answer: two threads that meet at a barrier each cycle,
# one with 1000 us of work, one with 800 (programs/barrier.c). A cycle takes the longer of both.
#   what_if.sh CAUSAL PROGRAM [SECONDS]
# Prints what came and what is right; exit status 1 if one is off by more than 3 points and its interval. Needs
# a quiet machine with two cores.
set -u
causal=$1 program=$2 seconds=${3:-10} off=0
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
printf '| slow | fast | what | right | came |\n|---|---|---|---|---|\n'
for percents in '50 20' '60 50' '20 50'; do
	read -r slow fast <<<"$percents"
	"$causal" what-if "region_slow=$slow,region_fast=$fast" -n 1 -o "$work/$slow-$fast" -- \
		"$program" --seconds "$seconds" >/dev/null 2>"$work/out" || exit 99
	if grep -q 'other programs took the CPU' "$work/out"; then
		echo "not judged: other programs took the CPU"
		exit 77
	fi
	awk -v slow="$slow" -v fast="$fast" '
		function longer(a, b) { return a > b ? a : b }
		function gain(s, f) { return 100 - longer(1000 * (100 - s), 800 * (100 - f)) / 1000 }
		function compare(what, right) {
			effect = $(at - 1); half = $(at + 1); away = effect - right
			printf "| %d | %d | %s | %.1f | %.1f ± %.1f |\n", slow, fast, what, right, effect, half
			off += (away < 0 ? -away : away) > 3 + half
		}
		{ at = 0; for (i = 1; i <= NF; i++) if ($i == "±") { at = i; break } }
		/^ *region_slow [0-9]+ % less/ { compare("slow alone", gain(slow, 0)); n++ }
		/^ *region_fast [0-9]+ % less/ { compare("fast alone", gain(0, fast)); n++ }
		/^ *all of them at once/ { compare("both", gain(slow, fast)); n++ }
		END { exit off || n != 3 }' "$work/out" || off=1
done
exit "$off"
