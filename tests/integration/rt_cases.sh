#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that check themselves, with each source of ticks, while experiments come and go:
# processes, threads, signals, limits. Arguments: the programs, whose cases are in matrix.list.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

run_cases() {
	local program=$1 backend name profile what row rows
	# not a loop that reads: the programs look at which descriptors are open
	mapfile -t rows < <(grep "^$program " "$source_dir/tests/integration/matrix.list")
	for row in "${rows[@]}"; do
		read -r _ name profile _ <<<"$row"
		for backend in "${backends[@]}"; do
			what="$program $name with $backend"
			profile -b "$backend" -B MAIN -s 0,50,90 -- "$apps/$program" "$name" </dev/null
			check "$what: exit status" 0 "$status"
			explain 0
			check "$what: output" "$name: good" "$(grep "^$name: " out)"
			at_least "$what: visits" 1 "$(total visits)"
			[[ $profile == any ]] || was "$profile" "$what"
		done
	done
}

find_backends
for program; do
	run_cases "$program"
done
finish
