#!/bin/bash
# How long the runtime takes to start, for a program whose index is in the cache. Medians of 20
# runs within one program that starts them; the bound is wide: the number is what matters.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

profile -e -s 0 -- "$apps/exits" return # into the cache
for run in alone with; do
	if [[ $run == alone ]]; then
		"$apps/processes" start_times >$run
	else
		profile -e -s 0 -- "$apps/processes" start_times
		cp out $run
	fi
	is "$run: lines" 2 "$(wc -l <$run)"
done
alone=$(sed -n 's/^median \([0-9]*\) us$/\1/p' alone)
with=$(sed -n 's/^median \([0-9]*\) us$/\1/p' with)
printf 'start-up: %s us alone, %s us with the runtime\n' "$alone" "$with"
at_least "a median" 1 "$alone"
at_least "start-up in us, of the 20000 allowed, that are left" 1 $((20000 - (with - alone)))
finish
