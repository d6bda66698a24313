#!/bin/bash
# SPDX-License-Identifier: MIT
# What surrounds the program: a daemon that outlives the run, processes that start later, forbidden
# system calls, no locked memory, full and absent shared memory.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

find_backends
for backend in "${backends[@]}"; do
	rm -f daemon.txt
	DAEMON_FILE=$work/daemon.txt profile -b "$backend" -s 0,50 -- "$apps/processes" daemon
	check "daemon, $backend: exit status" 0 "$status"
	explain 0
	end=$((SECONDS + 10))
	until grep -q end daemon.txt 2>/dev/null || ((SECONDS > end)); do sleep 0.05; done
	works=$(head -n 1 daemon.txt)
	at_least "daemon, $backend: it works" 20 "$works"
	at_least "daemon, $backend: its visits" $((works / 2)) "$(total visits)"
	check "daemon, $backend: nobody else writes to its files" "$works end" "$(tr '\n' ' ' <daemon.txt | sed 's/ $//')"

	XDG_CACHE_HOME=/proc/none profile -b "$backend" -B MAIN -s 0,50 -- "$apps/hosts" lock_all
	check "no cache, all memory locked, $backend" "0 lock_all: good" "$status $(cat out)"

	profile -b "$backend" -B processes -s 0,50 -- sh -c "'$apps/processes' work | cat; sleep 0.2; '$apps/processes' work"
	check "started later, $backend: output" "work: good work: good" "$(tr '\n' ' ' <out | sed 's/ $//')"
	at_least "started later, $backend: visits" 100 "$(total visits)"
	was profiled "started later, $backend"

	profile -b "$backend" -B MAIN -s 0,50 -- "$apps/limits" seccomp_then "$apps/limits" deep
	check "calls forbidden from the start, $backend: exit status" 0 "$status"
	check "calls forbidden from the start, $backend: output" "deep: good" "$(cat out)"
	at_least "calls forbidden from the start, $backend: visits" 100 "$(total visits)"
	if [[ $backend == perf ]]; then
		contains "... switched off, and why" "switched off: perf_event_open is not allowed" "$(cat err)"
		# but for the few ms before they are forbidden
		check "... no samples" 1 "$(($(total samples) < 10))"
	else
		was profiled "calls forbidden from the start, $backend"
	fi
done

# what cannot be prevented is said
"$apps/limits" seccomp_unseen >out
check "a filter past libc, alone" "0 seccomp_unseen: good" "$? $(cat out)"
profile -b timer -s 0 -- "$apps/limits" seccomp_unseen
check "a filter past libc: exit status" 159 "$status"
contains "... and why" "a filter of its own (seccomp) forbids" "$(cat err)"

(ulimit -l 0 && profile -b auto -s 0,50 -- "$apps/limits" many_threads && exit "$status")
check "no locked memory: exit status" 0 $?
sampled
check "... and samples all the same" 0 $?

# little address space: what we set aside must not take it
(ulimit -v 150000 && profile -B MAIN -s 0,50 -- "$apps/hosts" main_leaves && exit "$status")
check "150 MB of address space: exit status" 0 $?
check "... and its visits" 1 "$(($(total visits) > 0))"

# its numbers of processes are others than the driver's; the threads that are left go on without the first
if unshare -pf true 2>/dev/null; then
	for program in "$apps/hosts main_leaves" "$apps/processes work"; do
		# shellcheck disable=SC2086 # two words
		profile -B MAIN -s 0,50 -- unshare -pf $program
		check "in a pid namespace, $program: exit status" 0 "$status"
		explain 0
		was profiled "in a pid namespace, $program"
	done
else
	skip "no pid namespaces here"
fi

# private mounts, where that is allowed
if unshare -rm true 2>/dev/null; then
	for how in "mount -t tmpfs -o size=64k none /dev/shm" "mount -t tmpfs -o ro none /dev/shm"; do
		rm -rf results
		unshare -rm bash -c "$how && exec '$causal' -o results -s 0,50 -- '$apps/processes' work" >out 2>err
		status=$?
		check "$how: exit status" 0 "$status"
		explain 0
		at_least "$how: visits" 100 "$(total visits)"
	done
	for how in true false; do
		profile -B threads -s 0,50 -- unshare -rm bash -c "mount -t tmpfs none /proc && '$apps/threads' exit && $how"
		check "no /proc, $how: exit status" "$([[ $how == true ]] && echo 0 || echo 1)" "$status"
		check "... one line" 1 "$(grep -c 'switched off: /proc does not tell' err)"
		check "... and the profile says it, too" 1 "$(grep -c '^No result: the runtime switched itself off' err)"
	done
else
	skip "no mount namespaces here: full and absent /dev/shm, no /proc"
fi
finish
