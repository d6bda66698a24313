#!/bin/bash
# SPDX-License-Identifier: MIT
# Every way to end gives the output and the exit status that it gives alone. And faults that a program
# handles, in code that is patched.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

find_backends
for backend in "${backends[@]}"; do
	for how in return exit _exit quick_exit abort segv kill term trap blocked_trap stkflt handler; do
		"$apps/exits" "$how" >alone 2>/dev/null
		expected=$?
		profile -b "$backend" -B MAIN -s 0,50 -- "$apps/exits" "$how"
		check "$how with $backend: exit status" "$expected" "$status"
		check "$how with $backend: output" "$(cat alone)" "$(cat out)"
		check "$how with $backend: recorded exit status" "$expected" "$(total exit_status)"
		was profiled "$how with $backend"
	done 2>/dev/null
	profile -b "$backend" -B MAIN -P reads -s 0,50 -- "$apps/hosts" faults
	check "faults with $backend: exit status" 0 "$status"
	explain 0
	at_least "faults with $backend: visits" 100 "$(total visits)"
done
finish
