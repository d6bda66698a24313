#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that check themselves, with each source of ticks, while experiments come and go:
# processes, threads, signals, limits. Arguments: the program, its cases. Each is to be profiled; with
# ":early" behind its name only sampled, as its last part cannot be; with ":brief" nothing is
# asked, as most of its threads end before their first sample.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

run_cases() {
	local program=$1 backend name what
	shift
	for backend in "${backends[@]}"; do
		for name in "$@"; do
			what="$program ${name%:*} with $backend"
			profile -b "$backend" -B MAIN -s 0,50,90 -- "$apps/$program" "${name%:*}"
			check "$what: exit status" 0 "$status"
			explain 0
			check "$what: output" "${name%:*}: good" "$(grep "^${name%:*}: " out)"
			at_least "$what: visits" 1 "$(total visits)"
			case $name in
			*:brief) ;;
			*:early) was sampled "$what" ;;
			*) was profiled "$what" ;;
			esac
		done
	done
}

find_backends
run_cases "$@"
finish
