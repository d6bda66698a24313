#!/bin/bash
# Every way to end gives the output and the exit status that it gives alone.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

for backend in $(backends); do
	for how in return exit _exit quick_exit abort segv kill term trap stkflt handler; do
		"$apps/exits" "$how" >alone 2>/dev/null
		expected=$?
		profile -b "$backend" -s 0,50 -- "$apps/exits" "$how"
		is "$how with $backend: exit status" "$expected" "$status"
		is "$how with $backend: output" "$(cat alone)" "$(cat out)"
		is "$how with $backend: recorded exit status" "$expected" "$(total exit_status)"
	done 2>/dev/null
done
finish
