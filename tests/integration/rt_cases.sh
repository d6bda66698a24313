#!/bin/bash
# Programs that check themselves, with each source of ticks, while experiments come and go:
# processes, threads, signals, limits. Arguments of each row: the program, its cases.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

run_cases() {
	local program=$1 backend name
	shift
	for backend in $sources; do
		for name in "$@"; do
			DAEMON_FILE=$work/daemon.txt profile -b "$backend" -s 0,50,90 -- "$apps/$program" "$name"
			is "$program $name with $backend: exit status" 0 "$status"
			explain 0
			is "$program $name with $backend: output" "$name: good" "$(grep "^$name: " out)"
			at_least "$program $name with $backend: visits" 1 "$(total visits)"
		done
	done
}

sources=$(backends)
run_cases "$@"
finish
