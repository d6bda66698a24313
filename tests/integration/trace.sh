#!/bin/bash
# SPDX-License-Identifier: MIT
# causal trace, and the timeline of a sweep: what is raised, in which order, and that nothing is lost,
# however the program ends.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# trace [OPTIONS] -- COMMAND...: events as lines of the print sink in events
trace() {
	rm -f events out err
	timeout -k 5 120 "$causal" trace --sinks=print=events "$@" >out 2>err
	status=$?
}
# The threads of events, in the order in which they began
threads() { awk '!seen[$2]++ { print $2 }' events; }
# what a thread has raised: kind, key, and the value's name
sequence() { awk -v t="$1" '$2 == t' events | sed -E 's/^[^ ]+ [^ ]+ //; s/(thread|process|wake|visit) [0-9]+/\1/; s/(state|wait) [0-9]+ /\1 /'; }
visits() { grep -c ' point visit ' events; }
# Within a thread time does not run back?
is_monotonic() { awk '$1 + 0 < last[$2] { bad = 1 } { last[$2] = $1 + 0 } END { exit bad }' events; }

# ---- the exact sequence; whether somebody already waits when the thread ends is up to the scheduler
trace -- "$apps/traced" one
check "one: exit status" 0 "$status"
mapfile -t ids < <(threads)
check "one: threads" 2 "${#ids[@]}"
check "one: the first thread" "burst-begin process
burst-begin thread
state-begin state \"running\"
ptp-begin wake
state-begin state \"waiting for a thread to end\"
state-end state \"waiting for a thread to end\"
state-end state \"running\"
burst-end thread
burst-end process" "$(sequence "${ids[0]}" | grep -v -e 'ptp-end' -e 'point wait')"
check "one: the second thread" "burst-begin thread
state-begin state \"running\"
ptp-end wake
point visit \"step\"
point visit \"step\"
state-end state \"running\"
burst-end thread" "$(sequence "${ids[1]}" | grep -v 'ptp-begin')"
contains "one: the result" "events of 2 threads in 1 process, none missing" "$(cat err)"
contains "one: the file" "causal: events" "$(cat err)"

# ---- who wakes whom
trace -- "$apps/traced" lock
mapfile -t ids < <(threads)
check "lock: the waiter's states" "running
waiting for a lock" "$(sequence "${ids[1]}" | sed -n 's/^state-begin state "\(.*\)"/\1/p')"
pair=$(awk -v t="${ids[1]}" '$2 == t && $3 == "ptp-end" { n = $5 } END { print n }' events)
check "lock: the waiter was woken by the other" "${ids[0]}" \
	"$(awk -v n="$pair" '$3 == "ptp-begin" && $5 == n { print $2 }' events)"
check "lock: by one of ours" 1 "$(sequence "${ids[1]}" | grep -c 'point wait "one of ours"')"

# A word by a futex, and a descriptor among others, too; which of them it was, tells who has written to it.
for how in read poll select epoll futex semaphore; do
	trace -- "$apps/traced" child "$how"
	check "$how: exit status" 0 "$status"
	mapfile -t ids < <(awk '$4 == "process" { print $2 }' events | uniq)
	pair=$(awk -v t="${ids[1]}" '$2 == t && $3 == "ptp-end" { n = $5 } END { print n }' events)
	check "$how: the child was woken by its parent" "${ids[0]}" \
		"$(awk -v n="$pair" '$3 == "ptp-begin" && $5 == n { print $2 }' events | uniq)"
	check "$how: and not only born of it" 2 "$(sequence "${ids[1]}" | grep -c ptp-end)"
	[[ $how == read ]] || continue
	check "$how: what it waits for" 'state-begin state "input or output"
substate-begin channel 4 "a pipe"
ptp-end wake
substate-end channel 4 "a pipe"
state-end state "input or output"' "$(sequence "${ids[1]}" | grep -A 4 'state-begin state "input')"
done

trace -- "$apps/traced" children 1
mapfile -t ids < <(awk '$4 == "process" { print $2 }' events | uniq)
for from in 0 1; do # fork, and the end of the child
	pair=$(awk -v t="${ids[1 - from]}" '$2 == t && $3 == "ptp-end" { print $5; exit }' events)
	check "children: a pair from ${ids[from]}" "${ids[from]}" \
		"$(awk -v n="$pair" '$3 == "ptp-begin" && $5 == n { print $2 }' events)"
done

# ---- choosing events
trace --events user -- "$apps/traced" one
check "user: visits alone" "2 2" "$(visits) $(wc -l <events)"
trace --events user -- "$apps/known" 0.1 requests
check "user: where a request begins, and where it ends" 'visit "request (begin)" visit "request (end)" ' \
	"$(awk '$3 == "point" && $4 == "visit" { print $4, $6, $7 }' events | sort -u | tr '\n' ' ')"
trace --events none,+thread -- "$apps/traced" one
check "threads alone" "4 4" "$(grep -c ' thread ' events) $(wc -l <events)"
trace -v 1 --events user,-task -- "$apps/traced" one
check "which were on" "causal: events that were on: dropped, visit, mutex" "$(grep 'were on' err)"
contains "which were off" "causal: events that were off: sample, frame, experiment, " "$(grep 'were off' err)"
trace --events none -- "$apps/traced" one
check "no events: exit status" 0 "$status"
check "no events" 0 "$(wc -l <events)"

# ---- nothing is lost
trace --events user -- "$apps/traced" many 4 50000
check "many: all visits" 200000 "$(visits)"
check "many: time does not run back" yes "$(is_monotonic && echo yes)"
trace --events user,+thread -- "$apps/traced" crowd 5000
check "crowd: all visits" 5000 "$(visits)"
check "crowd: all threads, and main" 5001 "$(grep -c 'burst-end thread' events)"
contains "crowd: counted" "events of 5001 threads in 1 process, none missing" "$(cat err)"
"$apps/traced" once 5000
if (($? == 77)); then
	skip "5,000 threads at once: the machine does not allow them"
elif (($(df --output=avail -k /dev/shm | tail -n 1) < 300000)); then
	skip "5,000 threads at once: /dev/shm has no room for them"
else
	trace --events user,+thread -- "$apps/traced" once 5000
	check "once: exit status" 0 "$status"
	check "once: all visits" 5000 "$(visits)"
	check "once: all threads" 5001 "$(grep -c 'burst-end thread' events)"
	contains "once: counted" "none missing" "$(cat err)"
fi
trace --events user -- "$apps/traced" children 30
check "children: all visits" 30 "$(visits)"
contains "children: counted" "in 31 processes, none missing" "$(cat err)"
for how in return _exit abort kill exec; do
	"$apps/traced" die "$how" 10 2>alone
	expected=$?
	trace --events user -- "$apps/traced" die "$how" 5000
	check "$how: exit status" "$expected" "$status"
	check "$how: all visits" 5000 "$(visits)"
done 2>/dev/null

# ---- what finds no room is counted
trace --events user --trace-ring 8 --trace-policy ring -- "$apps/traced" many 1 5000
kept=$(visits)
at_least "ring: what is kept" 100 "$kept"
at_least "ring: what is not" 4600 $((5000 - kept))
contains "ring: the others are counted" "$((5000 - kept)) events are missing: newer ones" "$(cat err)"
contains "ring: said at the end, too" "causal: $kept events of 1 thread" "$(cat err)"

"$causal" trace --sinks json=/dev/full -- "$apps/traced" one >out 2>err
check "a full disk: the program runs on" 0 $?
contains "a full disk: said" "events are missing; what is there can be read" "$(<err)"
check "a full disk: and nothing else" "" "$(grep "none missing" err)"

# ---- little address space: the rings give way
for kib in 200000 100000; do
	(ulimit -v $kib && trace --events user -- "$apps/traced" many 2 1000 && exit "$status")
	check "$kib KiB of addresses: exit status" 0 $?
	check "... traced all the same" 2000 "$(visits)"
done
trace --events user -- bash -c "ulimit -v 200000 && exec '$apps/traced' many 2 1000"
check "less for the program: exit status" 0 "$status"
check "... traced all the same" 2000 "$(visits)"
trace --events user -- bash -c "ulimit -v 30000 && exec '$apps/traced' die return 10"
check "far less: exit status" 0 "$status"
check "... it is said that it is not traced" 1 "$(grep -c 'is not traced: its address space (ulimit -v)' err)"
trace -- "$apps/hosts" address_space
check "less while it runs: exit status" 0 "$status"
check "... and what it does" "address_space: good" "$(cat out)"
contains "... traced all the same" "none missing" "$(cat err)"

# ---- mistakes
for mistake in '--events +nothing' '--events sometimes' '--sinks nothing' '--trace-policy never' '-n 3' '-s 0' \
	'-o /proc/nowhere'; do
	# shellcheck disable=SC2086 # words are meant
	"$causal" trace $mistake -- "$apps/traced" one >out 2>err
	check "$mistake: exit status" 2 $?
	check "$mistake: one line" 1 "$(wc -l <err)"
done
check "a program that is not there" 127 "$("$causal" trace -- ./nothing 2>/dev/null; echo $?)"

# ---- without a word where to
mkdir -p here && cd here || exit 99
"$causal" trace -o a/there -- "$apps/traced" one >out 2>err
check "no sink named: exit status, with a folder whose parent is missing" 0 $?
check "no sink named: said where it is" "$(sed -n 's|^causal: \(a/there[^:]*\): .*|\1|p' err)" "$(echo a/there/*)"
cd .. || exit 99

# ---- the timeline of a sweep
profile --trace --sinks print=events -s 50 -F burn -- "$apps/traced" work 1500
check "a sweep: exit status" 0 "$status"
check "a sweep: each experiment begins and ends" "$(grep -c 'burst-begin experiment' events)" \
	"$(grep -c 'burst-end experiment' events)"
check "a sweep: the same experiments as in the run file" "$(records experiment)" \
	"$(grep -c 'burst-end experiment' events)"
at_least "a sweep: experiments" 1 "$(records experiment)"
contains "a sweep: the region has its name" '"burn"' "$(grep ' point selection ' events)"
contains "a sweep: who is in it" '"burn"' "$(grep ' in S ' events)"
check "a sweep: and never without its name" 0 "$(grep ' in S ' events | grep -c -v '"burn"')"
if ! grep -q '"delayed by an experiment"' events && starving; then
	skip "a sweep: who is delayed: other programs take the CPUs"
else
	contains "a sweep: who is delayed" '"delayed by an experiment"' "$(grep ' state-begin ' events)"
fi
check "a sweep: all visits" 1500 "$(visits)"
profile --trace -s 50 -F burn -- "$apps/traced" work 10
check "a sweep: a file beside the results" 1 "$(find results -name 'run-0001.*' ! -name '*.jsonl' | wc -l)"
# A name too few, and the program would be gone.
cp "$apps/traced" spared
"$causal" trace --sinks print=spared -- ./spared >/dev/null 2>err </dev/null
check "a sink that would write over the program" 2 $?
contains "... it is said" "spared is a program, and the print sink would write over it" "$(<err)"
check "... it is still there" "$(cksum <"$apps/traced")" "$(cksum <spared)"
finish
