#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libcausal.so: components, bundles and counters, alone and under `causal trace`.
# shellcheck source=tests/integration/check.bash
. "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash"

if [[ -n ${CA_SANITIZER:-} ]]; then
	echo "the library is for programs without $CA_SANITIZER"
	exit 77
fi
link=("-I$source_dir/include" -D_GNU_SOURCE -O1 -g "-L$build/.libs" -lcausal "-Wl,-rpath,$build/.libs" -pthread)
examples=$build/examples

# ---- components and bundles
"$examples/components" >said 2>errors
check "the demonstration" "A/spam B/foo,bar C/foo D/spam" "$(head -1 said)"
check "a component's own value" "demo: bar 10  in 1 laps, the last 10" "$(sed -n 2p said)"
check "without a choice there is the time" "work: wall" "$(sed -n 3p said | cut -d' ' -f1-2)"
check "... and no complaint" "" "$(<errors)"
all=wall,cpu,process-cpu,user,system,peak-rss,rss,minor-faults,major-faults,switches,read,written
all+=,storage-read,storage-written,perf:page-faults+task-clock
CAUSAL_COMPONENTS=$all "$examples/components" >said 2>errors
check "all ready ones" "${all//perf:page-faults+task-clock/page-faults task-clock}" \
	"$(sed -n '3,$p' said | cut -d' ' -f2 | paste -sd' ' | sed 's/ /,/g; s/page-faults,/page-faults /')"
check "... each in three laps" 16 "$(grep -c 'work: .* in 3 laps' said)"
at_least "page faults of 64 pages" 64 "$(sed -n 's/^work: page-faults \([0-9]*\) .*/\1/p' said)"
at_least "... and by the other way" 64 "$(sed -n 's/^work: minor-faults \([0-9]*\) .*/\1/p' said)"
at_least "memory at most, in MiB" 1 "$(sed -n 's/^work: peak-rss \([0-9]*\).*/\1/p' said)"
CAUSAL_COMPONENTS=rss,peak-rss "$causal" trace --events user --sinks print=events -- "$examples/components" >said 2>errors
read -r resident peak _ < <(sed -n 's/.* point work: \(peak-\)*rss //p' events | paste -sd' ')
at_least "an event has bytes" 200000 "${resident:-}"
at_least "... of the peak as well, which is no less" "${resident:-0}" "${peak:-}"
CAUSAL_COMPONENTS=wall,nonsense "$examples/components" >said 2>errors
check "what is unknown is left out, ..." 3 "$(wc -l <said)"
contains "... with what there is" "there is no component 'nonsense'; choose from: wall, cpu, " "$(<errors)"

# ---- counters
for flags in '' -DCAUSAL_DISABLE; do
	# shellcheck disable=SC2086 # no word where it is empty
	"${cc[@]}" -std=gnu17 -Wall -Wextra -Wpedantic -Werror $flags "$source_dir/tests/apps/measured.c" "${link[@]}" -o measured ||
		bad "measured.c with '$flags' does not compile"
done
"${cxx[@]}" -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "-I$source_dir/include" - <<<'#include <causal_measure.h>' ||
	bad "the header is not for C++"
if ! "$examples/counters" >said 2>errors; then
	skip "counters: $(<errors)"
else
	at_least "page faults between two places" 100 "$(sed -n 's/^page-faults //p' said)"
	contains "how they are read is said" "a reading, by r" "$(<said)"
	for what in fork threads; do
		./measured "$what" >said 2>&1 || bad "$what: $(<said)"
	done
	"$causal" trace --events user --sinks print=events -- "$examples/counters" >said 2>errors
	grep -c 'point page-faults ' events >count
	check "events of counters" 4 "$(<count)"
	mapfile -t value < <(sed -n 's/.* point page-faults //p' events)
	check "... 0 at first" 0 "${value[0]}"
	for i in 1 2 3; do
		at_least "... then what came in between" 100 "${value[i]}"
		at_least "... and not what was before" "${value[i]}" 199
	done
	check "... each of the set" 4 "$(grep -c 'point task-clock ' events)"
	"$causal" trace --events user --sinks print=events -- "$examples/components" >/dev/null 2>errors
	check "laps of bundles are events" 3 "$(grep -c 'point work: wall ' events)"
fi
./measured forks >said 2>&1 || bad "a child of a busy program hangs: $(<said)"
./measured odd >said 2>&1 || bad "odd: $(<said)"
contains "an unknown counter" "counter 'nonsense' is not known; choose from: cpu-cycles, instructions, " "$(<said)"
contains "too many" "there are more than 4 in one set" "$(<said)"
contains "what cannot be opened" "'picky:x' is left out of 'odd': No such device" "$(<said)"
for name in instructions syscall:madvise; do
	"$causal" trace --events user --sinks print=/dev/null -- "$examples/counters" "$name" >said 2>errors
	if grep -q 'a reading' said; then
		at_least "$name are counted" 1 "$(sed -n "s/^$name //p" said)"
	else
		check "$name: one line says why not" 1 "$(grep -c "counter $name" errors)"
	fi
done
# shellcheck disable=SC2016 # for the shell in the namespace
tracefs=(unshare -m sh -c 'mount -t tracefs none /sys/kernel/tracing && "$@"' sh)
if "${tracefs[@]}" "$examples/counters" syscall:read,page-faults >said 2>/dev/null; then
	check "entries into a system call: that of the reading itself" 1 "$(sed -n 's/^syscall:read //p' said)"
	at_least "... beside another counter" 100 "$(sed -n 's/^page-faults //p' said)"
	"${tracefs[@]}" "$examples/counters" syscall:nonsense >said 2>errors
	contains "there is no such call" "'syscall:nonsense': there is no system call of that name" "$(<errors)"
else
	skip "system calls: tracepoints are not allowed here"
fi
# without any right, in a namespace of one's own: seccomp of a container would do the same
printf '%s\n' '#include <linux/seccomp.h>' '#include <linux/filter.h>' '#include <stddef.h>' '#include <sys/prctl.h>' \
	'#include <sys/syscall.h>' '#include <errno.h>' '#include <unistd.h>' 'int main(int n, char **v) { (void)n;' \
	'struct sock_filter f[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),' \
	'BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),' \
	'BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };' \
	'struct sock_fprog p = { 4, f }; prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);' \
	'prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p); execv(v[1], v + 1); return 1; }' >forbid.c
if "${cc[@]}" -o forbid forbid.c; then
	CAUSAL_COMPONENTS=wall,perf:page-faults,perf:task-clock ./forbid "$examples/components" >said 2>errors
	check "without the right, the rest is measured" 3 "$(wc -l <said)"
	check "... and one line says so" 1 "$(grep -c 'is not allowed' errors)"
fi

# ---- PAPI
if "${cc[@]}" -std=gnu17 -Wall -Wextra "$source_dir/examples/papi.c" "${link[@]}" -lsde -o papi 2>errors; then
	./papi >said 2>errors
	if [[ -s errors ]]; then
		skip "PAPI: $(head -1 errors)"
	else
		check "PAPI: the example" "table: sde:::example::rows 3000  in 3 laps, the last 1000" "$(<said)"
	fi
fi
if "${cc[@]}" -DHAVE_SDE "$source_dir/tests/apps/measured.c" "${link[@]}" -lsde -o sde 2>errors; then
	./sde sde >said 2>errors
	status=$?
	if ((status == 77)); then
		skip "PAPI: $(grep -m1 papi errors)"
	else
		check "counters that the program gives to PAPI: $(<errors)" 0 "$status"
		contains "... are read" "sde: sde:::measured::made 6  in 3 laps, the last 3" "$(<said)"
		contains "an event that PAPI does not know" "papi: NONSENSE: " "$(<errors)"
		contains "no event" "papi: name events" "$(<errors)"
		contains "an overflow does not change the count" "overflow: counted 100" "$(<said)"
		# libsde looks for PAPI once, when the program makes its counters: it has to be there by then
		if "${cc[@]}" -DHAVE_SDE "$source_dir/tests/apps/measured.c" "${link[@]}" -Wl,--no-as-needed -lpapi \
			-lsde -o sde 2>errors; then
			"$causal" trace --events user --sinks print=events -- ./sde sde >said 2>errors
			found=$(grep -c 'point sde:::measured::made@10 ' events)
			check "100 of 10 each overflow 9 or 10 times, not $found: $(<errors)" 1 "$((found >= 9 && found <= 10))"
		else
			skip "PAPI: there is no libpapi to link"
		fi
	fi
else
	skip "PAPI: there is no libsde to test it with"
fi
finish
