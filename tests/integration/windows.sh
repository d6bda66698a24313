#!/bin/bash
# SPDX-License-Identifier: MIT
# Time windows of samples, timelines, measurements of the machine and experiments: by clocks, by a signal, by
# causal ctl. What is asserted are the windows' own lengths, not how much the program did in them.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
unset CAUSAL_EXPERIMENT_MIN

number() { grep -o "\"$1\":[0-9]*" "$2" | head -n 1 | cut -d: -f2; }
# until COMMAND...: for at most 30 s
until_true() {
	local i
	for ((i = 0; i < 300; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}
# shellcheck disable=SC2317 # called by until_true
has() { grep -q -e "$1" "$2" 2>/dev/null; }

# ---- two windows of 0.1 s; the program takes more than a second
"$causal" sample -o samples --periods 'monotonic:0.1:0.1:2' -H --process-freq 200 -- "$apps/sampled" 1200 >out 2>err
check "sample: exit status" 0 $?
check "sample: from when on" 100000000 "$(number delay samples/sample.json)"
check "sample: as long as both" 200000000 "$(number runtime samples/sample.json)"
check "sample: both threads, as long" 400000000 "$(number lifetime samples/sample.json)"
# between them nothing is measured: 0.1 s without a line
check "host: as many windows" 2 "$(sed -n 's/.*"machine","time":\([0-9]*\).*/\1/p' samples/host.jsonl |
	awk 'NR == 1 || $1 > last + 9e7 { n++ } { last = $1 } END { print n }')"
at_least "host: the program's process" 1 "$(grep -c '"type":"process".*"name":"sampled".*"resident":[1-9]' samples/host.jsonl)"

# ---- a timeline: what is open begins and ends with the window
"$causal" trace --periods '0.1:0.1:3:monotonic' --sinks=print=events -- "$apps/sampled" 1200 >out 2>err
check "trace: exit status" 0 $?
check "trace: the process in each window" 3 "$(grep -c 'burst-begin process' events)"
check "trace: and its end" 3 "$(grep -c 'burst-end process' events)"
check "trace: begins and ends of a thread" "" "$(awk '{ k = $2 " " $4 }
	$3 ~ /-begin$/ && $3 !~ /^ptp/ { open[k]++ }
	$3 ~ /-end$/ && $3 !~ /^ptp/ && --open[k] < 0 { print "ends first: " $0 }
	END { for (k in open) if (open[k]) print "open: " k }' events)"
check "trace: no window is longer" "" "$(awk '$3 == "burst-begin" && $4 == "process" { from = $1 }
	$3 == "burst-end" && $4 == "process" && $1 - from > 0.1000001 { print $1 - from }' events)"

check "trace: counts what is in the file" "$(wc -l <events)" "$(sed -n 's/causal: \([0-9]*\) events of .* none missing; .*/\1/p' err)"
"$causal" trace --paused --sinks=print=none -- true >out 2>err
check "paused: nothing is in the file" "0 events" "$(sed -n 's/causal: \([0-9]* events\) of .* outside of the time windows left out/\1/p' err)"

"$causal" trace --paused --events user --sinks=callgraph=graph -- "$CA_TOP_BUILDDIR/examples/regions" >out 2>err
check "paused: nothing is in a call graph alone" 0 "$(grep -c simulate graph)"

# ---- of CPU time; the second group by another clock
"$causal" sample -o cpu --periods 'process_cputime:0.1:0.1:1 realtime:0.05:0.1:1' -- "$apps/sampled" 1200 >out 2>err
check "CPU time: exit status" 0 $?
# it is looked at each 10 ms, and threads may use some of it side by side
at_least "CPU time: 0.1 s of it take as long, then the other" 190000000 "$(number runtime cpu/sample.json)"
at_least "CPU time: after 0.1 s of it" 100000000 "$(number delay cpu/sample.json)"

# ---- by causal ctl: nothing until it is told, and then no more
"$causal" sample -o told --paused -- "$apps/sampled" 6000 >out 2>err &
pid=$!
until_true test -e told/.running
check "ctl resume" 0 "$("$causal" ctl resume told >/dev/null 2>&1; echo $?)"
check "ctl pause" 0 "$("$causal" ctl pause told >/dev/null 2>&1; echo $?)"
check "ctl finish" 0 "$("$causal" ctl finish told >/dev/null 2>&1; echo $?)"
until_true test -s told/sample.json
check "ctl: the profile is there while the program runs" 0 "$(kill -0 "$pid"; echo $?)"
kill "$pid"
wait "$pid"
check "ctl: it began paused" 1 "$(($(number delay told/sample.json) > 0))"
check "ctl: it was resumed" 1 "$(($(number runtime told/sample.json) > 0))"
contains "ctl: says so" "paused: nothing new until causal ctl resume told" "$(cat err)"

# ---- the same where nothing at the start has told that there will be windows
"$causal" trace -o gap --sinks=print=all -- "$apps/sampled" 6000 >out 2>err &
pid=$!
until_true has 'burst-begin process' all
"$causal" ctl pause gap
until_true has 'paused' err
"$causal" ctl resume gap
until_true has 'it goes on' err
kill -TERM "$pid"
wait "$pid"
check "ctl: a timeline with a gap" 2 "$(grep -c 'burst-begin process' all)"
"$causal" trace -o graphs --sinks=callgraph=/dev/null -- "$apps/sampled" 6000 >out 2>err &
pid=$!
until_true test -e graphs/.running
"$causal" ctl pause graphs
until_true has 'cannot be paused' err
kill -TERM "$pid"
wait "$pid"
contains "ctl: what is counted in the program" "cannot be paused" "$(cat err)"

# ---- by a signal
"$causal" trace -o signalled --paused --toggle-signal usr2 --sinks=print=all -- "$apps/sampled" 6000 >out 2>err &
pid=$!
until_true test -e signalled/.running
kill -USR2 "$pid"
until_true has 'it goes on' err
kill -USR2 "$pid"
until_true has 'paused' err
kill -TERM "$pid"
wait "$pid"
check "signal: one window" "1 1" "$(grep -c 'burst-begin process' all) $(grep -c 'burst-end process' all)"

# ---- experiments: none begins after the window, while the program goes on
profile -n 1 -P produce --periods 'monotonic:0.3:0.4:1' --experiment-min 0.05 --warm-up 10 -s 0 -F most -B MAIN \
	-- "$apps/sampled" 2000
check "sweep: exit status" 0 "$status"
if starving; then
	skip "other programs take the CPUs: experiments are late"
else
	at_least "sweep: experiments" 1 "$(records experiment)"
fi
check "sweep: no experiment begins after the window" "" "$(sed -n 's/.*"type":"experiment".*"start":\([0-9]*\).*/\1/p' \
	results/run-0001.jsonl | awk 'NR == 1 { first = $1 } $1 - first > 6e8 { print $1 - first }')"

# ---- a whole run: the code is faster in the window only, and the length of the run is what counts
profile -e -s 50 -n 1 -w 0.3 -d 0.3 -F most -B MAIN -- "$apps/sampled" 1500
check "whole run: exit status" 0 "$status"
experiment=$(grep '"type":"experiment"' results/run-0001.jsonl)
check "whole run: one experiment" 1 "$(records experiment)"
check "whole run: from its beginning to its end" 1 "$(awk "BEGIN {
	print ($(number end - <<<"$experiment") - $(number start - <<<"$experiment") >= 1.5e9) }")"
at_least "whole run: the code runs in the window" 1 "$(number s_time - <<<"$experiment")"
# the driver sees the end of the window when it has a CPU
at_least "whole run: and counts in it only" "$(number s_time - <<<"$experiment")" 600000000

# ---- mistakes: one line with the choices, and nothing is run
mistake() { # NAME PART OPTION...
	local name=$1 part=$2
	shift 2
	"$causal" sample -o mistaken "$@" -- touch ran >out 2>err
	check "$name: exit status" 2 $?
	check "$name: one line" 1 "$(wc -l <err)"
	contains "$name" "$part" "$(cat err)"
	check "$name: nothing was run" 1 "$(test -e ran; echo $?)"
}
mistake "clock of a group" "choose from: realtime monotonic process_cputime" --periods sundial:1:2:3
mistake "clock" "choose from: realtime monotonic process_cputime" --period-clock sundial
mistake "groups" "write DELAY:DURATION[:CYCLES[:CLOCK]] or CLOCK:DELAY:DURATION:CYCLES" --periods 1:2:3:monotonic:5
mistake "signal" "choose from: none usr1 usr2" --toggle-signal kill
mistake "CPUs" "write numbers and ranges, like 0,2-4" --cpus 3-1
mistake "no such CPU" "'0,9000': there are 0 to " --cpus 0,9000
mistake "frequency" "is not within 0.01..1000" --process-frequency 0
finish
