#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What events cost, from the place where they are raised to the sinks: the figures of doc/SINKS.md and
# doc/API.md. Run it in the build directory, after make check-build; it takes 40 s.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '%-60s %8.2f ns\n' "$1" "$2"; }
# each N COMMAND...: ns of CPU time, of N that it does
each() { bash -c '"${@:2}" >&2; times' - "$@" 2>/dev/null | awk -F '[ms ]' "END { print 1e9 * (\$2 + \$5) / $1 }"; }
traced() { ./driver/causal trace -o "$work" --sinks statistics=/dev/null "$@" 2>/dev/null; }

${CC:-cc} -O2 -I"$source_dir/include" -pthread -o "$work/events" "$source_dir/tests/apps/code_events.c"
say "causal_trace.h: a pair of events, alone" "$("$work/events" cost 10000000)"
say "... traced" "$(traced -- "$work/events" cost 1000000)"
say "... traced, but for its key" "$(traced --events user,-:pair -- "$work/events" cost 100000000)"
for events in none user; do
	# shellcheck disable=SC2016 # the inner shell's
	say "a visit of a progress point, --events $events" "$(traced --events "$events" -- bash -c \
		'./tests/apps/traced many 1 5000000; times' | awk -F '[ms ]' 'END { print 1e9 * ($2 + $5) / 5e6 }')"
done
for sink in dot statistics binary perfetto print json paraver; do
	say "$sink: CPU time of an event" "$(each 2000000 ./tests/trace/feed "$sink=$work/$sink" many 2000000)"
done
./tests/bench/bench_trace
