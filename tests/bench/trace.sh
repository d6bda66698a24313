#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What events cost, from the place where they are raised to the sinks: the figures of doc/SINKS.md and
# doc/API.md, with the bars that some of them have. make bench-trace; it takes two minutes.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# say WHAT NS [BAR]
say() {
	local kept
	kept=${3:+, bar $3: $(awk "BEGIN { print ($2 <= $3 ? \"kept\" : \"MISSED\") }")}
	printf '%-60s %8.2f ns%s\n' "$1" "$2" "$kept"
}
# each N COMMAND...: ns of CPU time, of N that it does
each() { bash -c '"${@:2}" >&2; times' - "$@" 2>/dev/null | awk -F '[ms ]' "END { print 1e9 * (\$2 + \$5) / $1 }"; }
traced() { ./driver/causal trace -o "$work" --sinks statistics=/dev/null "$@" 2>/dev/null; }

${CC:-cc} -O2 -I"$source_dir/include" -pthread -o "$work/events" "$source_dir/tests/apps/code_events.c"
say "causal_trace.h: a pair of events, alone" "$("$work/events" cost 10000000)"
say "... traced" "$(traced -- "$work/events" cost 1000000)" 50
# a pair is two events
say "... traced, but for its key" "$(traced --events user,-:pair -- "$work/events" cost 100000000)" 4

# compare WHAT N COMMAND...: CPU time of the program for each of N things, alone, and by what is raised of them
compare() {
	local events alone ns
	alone=$(each "$2" "${@:3}")
	say "$1, alone" "$alone"
	for events in none user developer; do
		# shellcheck disable=SC2016 # the inner shell's
		ns=$(traced --events "$events" -- bash -c '"$@" >&2; times' - "${@:3}" 2>/dev/null |
			awk -F '[ms ]' "END { print 1e9 * (\$2 + \$5) / $2 }")
		say "... --events $events ($(awk "BEGIN { printf \"%.2f\", $ns / $alone }") times)" "$ns"
	done
}
compare "a visit of a progress point" 5000000 ./tests/apps/traced many 1 5000000
compare "a byte through a pipe" 500000 ./tests/apps/traced pipe 500000
compare "a thread that visits a point once" 10000 ./tests/apps/traced crowd 10000

# a sweep: experiments, who comes into S, hits, debts and payments, A B A B A B
${CC:-cc} -g -O2 -I"$source_dir/include" -pthread -o "$work/frames" "$source_dir/examples/frames.c"
sweep() {
	each 1000 ./driver/causal -n 1 -s 50 -F '^simulate_frame$' -o "$work/sweep" "$@" -- "$work/frames" 1000
}
for _ in 1 2 3; do
	sweep >>"$work/without"
	sweep --trace >>"$work/with"
done
median() { sort -n "$1" | sed -n 2p; }
say "a frame of examples/frames.c in a sweep, of program and causal" "$(median "$work/without")"
say "... with --trace ($(median "$work/with" | awk "{ printf \"%.2f\", \$1 / $(median "$work/without") }") times)" \
	"$(median "$work/with")"

for sink in dot statistics binary perfetto print json paraver; do
	say "$sink: CPU time of an event" "$(each 2000000 ./tests/trace/feed "$sink=$work/$sink" many 2000000)"
done
./tests/bench/bench_trace
