#!/bin/bash
# SPDX-License-Identifier: MIT
# How long the runtime takes to start, for a program whose index is in the cache: of 20 runs the
# quickest, whatever else the machine does. The bound is wide: the number is what matters.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

cached() { ls -l --time-style=full-iso "$XDG_CACHE_HOME/causal"; }

"$apps/processes" start_times >alone
profile -e -s 0 -- "$apps/processes" start_times # into the cache
cached >before
profile -e -s 0 -- "$apps/processes" start_times
check "the cache: nothing is read anew" "$(cat before)" "$(cached)"
at_least "... files in it" 2 "$(grep -c '\.idx$' before)"
check "each of the 20 had the runtime" 20 "$(total visits)"
alone=$(sed -n 's/^least \([0-9]*\) us$/\1/p' alone)
with=$(sed -n 's/^least \([0-9]*\) us$/\1/p' out)
printf 'start-up: %s us alone, %s us with the runtime\n' "$alone" "$with"
at_least "a time" 1 "$alone"
at_least "start-up in us, of the 20000 allowed, that are left" 1 $((20000 - (with - alone)))
finish
