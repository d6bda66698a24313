#!/bin/bash
# A daemon that closes everything and outlives the run; processes that start later; full and
# absent shared memory; Coz's macros.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

find_backends
for backend in "${backends[@]}"; do
	rm -f daemon.txt
	DAEMON_FILE=$work/daemon.txt profile -b "$backend" -s 0,50 -- "$apps/processes" daemon
	check "daemon, $backend: exit status" 0 "$status"
	explain 0
	at_least "daemon, $backend: its visits" 200 "$(total visits)"
	end=$((SECONDS + 10))
	until grep -q end daemon.txt 2>/dev/null || ((SECONDS > end)); do sleep 0.05; done
	check "daemon, $backend: nobody else writes to its files" "end" "$(cat daemon.txt)"

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
		check "... no samples" 0 "$(total samples)"
	else
		was profiled "calls forbidden from the start, $backend"
	fi
done

(ulimit -l 0 && profile -b auto -s 0,50 -- "$apps/limits" many_threads && exit "$status")
check "no locked memory: exit status" 0 $?
sampled
check "... and samples all the same" 0 $?

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
else
	skip "no mount namespaces here: full and absent /dev/shm"
fi

# the kernel's own code in a process, which no file has: who called it is known
cat >vdso.c <<'C'
#include <stdio.h>
#include <time.h>
__attribute__((noinline)) static void asks(struct timespec *now)
{
	for (int i = 0; i < 1000; i++)
		clock_gettime(CLOCK_MONOTONIC, now);
}
int main(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		asks(&now);
	while (now.tv_sec - begin.tv_sec < 1 || now.tv_nsec < begin.tv_nsec);
	puts("asked");
	return 0;
}
C
"${cc[@]}" -g -O2 vdso.c -o vdso || bad "cannot build vdso.c"
profile -e -s 50 -F '^asks$' -- ./vdso
check "time asked for all the time: output" asked "$(cat out)"
at_least "... samples in the caller, in percent" 70 \
	$((100 * $(total in_scope) / ($(total samples) + $(total no_module) + 1)))

# a main thread that may be cancelled anywhere, but is not (redis-server's), is seen like others
profile -s 0 -- "$apps/threads" cancel_main
at_least "cancellable main thread: samples for each that was dropped" 4 $(($(total samples) / ($(total reentry) + 1)))

# Coz's own header
if echo '#include <coz.h>' | "${cc[@]}" -E - >/dev/null 2>&1; then
	cat >coz.c <<'C'
#include <coz.h>
__attribute__((noinline)) static void request(void)
{
	for (volatile int k = 0; k < 60000; k++)
		;
}
int main(void)
{
	for (int i = 0; i < 20000; i++) {
		COZ_BEGIN("request");
		request();
		COZ_END("request");
		COZ_PROGRESS_NAMED("coz point");
	}
	return 0;
}
C
	"${cc[@]}" -g -O2 coz.c -o coz -ldl || bad "cannot build coz.c"
	profile -w 1000 -- ./coz # without experiments all visits are in the sum
	check "coz: exit status" 0 "$status"
	at_least "coz: visits" 20000 "$(total visits)"
	profile -s 0 -- ./coz
	at_least "coz: point in the records" 1 "$(grep -c 'coz point' results/run-0001.jsonl)"
	at_least "coz: latency in the records" 1 "$(grep -c '"point":"request","kind":"latency"' results/run-0001.jsonl)"
else
	skip "Coz's macros: there is no coz.h (Debian: coz-profiler)"
fi
finish
