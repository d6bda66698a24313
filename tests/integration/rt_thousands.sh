#!/bin/bash
# SPDX-License-Identifier: MIT
# Five thousand threads at once and twenty thousand short ones (tests/apps/threads.c, thousands): each is counted,
# and what they do has its share of the samples, although hardly any of them lives until a tick. And each of
# thousands, alive at once or short, is delayed (turns).
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# count FUNCTION: of the samples
count() {
	grep '"type":"samples".*"name":"'"$1"'"' results/run-0001.jsonl | grep -o '"count":[0-9]*' | cut -d: -f2
}

thousands() {
	local what="thousands with $1"
	profile -b "$1" -B MAIN -n 1 -e -s 0 -- "$apps/threads" thousands
	check "$what: exit status" 0 "$status"
	explain 0
	check "$what: output" 'thousands: good' "$(cat out)"
	# with the end of the program
	check "$what: visits" 40001 "$(total visits)"
	check "$what: left out" 0 "$(grep -c 'were not seen' err)"
	# the short ones make twice as many turns as the others
	if (($(count other_work) > $(count piece_of_work) / 2 && $(count other_work) < 8 * $(count piece_of_work))); then
		good
	else
		bad "$what: $(count other_work) samples of short threads, $(count piece_of_work) of long ones"
	fi
	# and with delays
	profile -b "$1" -B MAIN -n 1 -s 50 -F piece_of_work -P other_work -- "$apps/threads" thousands
	check "$what, delayed: exit status" 0 "$status"
	explain 0
	check "$what, delayed: output" 'thousands: good' "$(cat out)"
	at_least "$what: experiments" 1 "$(records experiment)"
	check "$what: flags" 0 "$(grep -c '"flags":\[[^]]*unplaced' results/run-0001.jsonl)"
	# each by as much as it owes: in an experiment at 0 % that would be true of 2 to 6 of 100; of 99 on a quiet
	# machine, of 75 to 96 on one whose host takes its CPUs away for milliseconds
	profile -b "$1" -B MAIN -n 1 -e -s 50 -F stays_in_s --clock real -- "$apps/threads" turns
	check "$what, turns: exit status" 0 "$status"
	explain 0
	read -r delayed _ owed <<<"$(grep ' of ' out)"
	if ((owed < 300)); then
		skip "$what, the delay of each: other programs take the CPUs"
	else
		at_least "$what, of $owed threads are delayed" $((owed * 60 / 100)) "$delayed"
	fi
}

if ! "$apps/threads" thousands >/dev/null || (($(df --output=avail /dev/shm | tail -n 1) < 250000)); then
	echo "5,000 threads, or 250 MB in /dev/shm, cannot be had here"
	exit 77
fi
limit=150 # other programs may take the CPUs
find_backends
for backend in "${backends[@]}"; do
	thousands "$backend"
done
finish
