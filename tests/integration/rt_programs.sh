#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what stands in single quotes is for inner interpreters
# Programs as they come: output and exit status are the same with and without causal.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

# same NAME COMMAND...
same() {
	local name=$1 expected
	shift
	"$@" >alone 2>/dev/null
	expected=$?
	profile -e -s 50 -F . -B 'MAIN;libpython;libperl' -- "$@" # where an interpreter's code may be
	check "$name: exit status" "$expected" "$status"
	explain "$expected"
	check "$name: output" "$(cksum <alone)" "$(cksum <out)"
}
# seen NAME: the program that ran last uses CPU time in its own code
seen() { at_least "$1: samples in scope" 3 "$(total in_scope)"; }
# needs NAME PROGRAM
needs() {
	command -v "$2" >/dev/null && return
	skip "$1: there is no $2"
	return 1
}

needs pipeline bash && same pipeline bash -c 'set -o pipefail
	for i in $(seq 400); do echo "$((i * 7919 % 1000))"; done | sort -n | uniq -c | awk "{ s += \$1 * \$2 } END { print s }"
	trap "echo trapped" USR1; kill -USR1 $$; (exit 3) & wait $!; echo "$?"; coproc cat; echo through >&"${COPROC[1]}"
	read -r line <&"${COPROC[0]}"; echo "$line"; exit 5'
same shell sh -c "'$apps/processes' work | cat"
needs perl perl && same perl perl -e 'use POSIX; $SIG{ALRM} = sub { print "alarm\n" }; alarm 1;
	my $n = 0; for my $i (1 .. 8000000) { $n += $i % 7 } select(undef, undef, undef, 1.2); print "$n\n";
	my $pid = fork(); if (!$pid) { exit 3 } waitpid($pid, 0); print $? >> 8, "\n"; print `echo sub`; exit 4' && seen perl
needs python "$python" && same python "$python" -c '
import threading, subprocess, signal, time, os, sys, queue
q = queue.Queue(); out = []
def work(i):
    s = 0
    for k in range(240000): s += k * i % 7
    q.put((i, s)); time.sleep(0.01)
ts = [threading.Thread(target=work, args=(i,)) for i in range(20)]
[t.start() for t in ts]; [t.join() for t in ts]
while not q.empty(): out.append(q.get())
print(sorted(out))
signal.signal(signal.SIGALRM, lambda *a: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2)
print(subprocess.run(["sh", "-c", "echo child; exit 6"], capture_output=True))
pid = os.fork()
if not pid: os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.exit(8)' && seen python
if needs gcc "${cc[0]}"; then
	same compiler "${cc[@]}" -std=gnu17 -D_GNU_SOURCE -O2 -I"$source_dir" -I"$source_dir/include" -S -o - "$source_dir/tests/apps/threads.c"
fi
if command -v java >/dev/null && command -v javac >/dev/null; then
	cat >Main.java <<'JAVA'
public class Main {
	static long sum;
	public static void main(String[] args) throws Exception {
		Thread[] threads = new Thread[4];
		for (int i = 0; i < 4; i++) {
			final int n = i;
			threads[i] = new Thread(() -> {
				long s = 0;
				for (int k = 0; k < 20000000; k++) s += k % (n + 3);
				synchronized (Main.class) { sum += s; }
			});
			threads[i].start();
		}
		for (Thread t : threads) t.join();
		Object o = null;
		try { o.hashCode(); } catch (NullPointerException e) { System.out.println("null"); }
		System.out.println(sum);
		System.exit(7);
	}
}
JAVA
	javac Main.java && limit=120 same java java -cp . Main
else
	skip "there is no java"
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

# a debugger stops for none of our signals, around us and within a run
if command -v gdb >/dev/null && gdb -q -batch -ex run --args true >gdb.out 2>&1 && grep -q 'exited normally' gdb.out; then
	rm -rf results
	timeout 60 gdb -q -batch -ex run --args "$causal" --single=0 -o results -B MAIN -s 0,50 -- \
		"$apps/threads" churn >out 2>err
	check "gdb --args causal --single: it ends by itself" 1 "$(grep -c 'exited normally' out)"
	lacks "gdb --args causal --single" "received signal" "$(cat out)"
	profile -B MAIN -s 0,50 -- gdb -q -batch -ex 'break case_churn' -ex run -ex continue --args "$apps/threads" churn
	contains "causal -- gdb: its breakpoint" "case_churn" "$(grep Breakpoint out)"
	check "causal -- gdb: it ends by itself" 1 "$(grep -c 'exited normally' out)"
	lacks "causal -- gdb" "received signal" "$(cat out)"
else
	skip "no gdb that can run programs here"
fi

# what traces or translates the program
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	profile -B MAIN -s 0,50 -- strace -f -o /dev/null "$apps/cells" work
	check "causal -- strace -f: exit status" 0 "$status"
	check "... output" "work: good" "$(cat out)"
	was profiled "causal -- strace -f"
	rm -rf results
	strace -f -o /dev/null "$causal" -o results -B MAIN -s 0,50 -- "$apps/cells" work >out 2>err
	check "strace -f causal: exit status" 0 $?
	check "... output" "work: good" "$(cat out)"
	at_least "... visits" 1 "$(total visits)"
else
	skip "no strace that can trace programs here"
fi
if command -v valgrind >/dev/null && valgrind -q true >/dev/null 2>&1; then
	profile -B MAIN -s 0,50 -- valgrind -q "$apps/cells" work
	check "causal -- valgrind: exit status" 0 "$status"
	check "... output" "work: good" "$(cat out)"
	check "... says why it cannot" 1 "$(grep -c 'switched off: valgrind translates the program' err)"
	check "... and so does the profile" 1 "$(grep -c '^No result: the runtime switched itself off' err)"
	check "... it reports nothing of ours" 0 "$(grep -c '^==' err)"
else
	skip "no valgrind"
fi

# Short programs of a shell, one after the other: S is known from the first instruction of the one that has it on, and
# over when that ends in the midst of it. A fifth of the time; 0 or 0.9 before.
short() { # NAME ROUNDS END
	echo "volatile int x; void exit(int);
__attribute__((noinline)) void $1_work(void) { for (int i = 0; i < $2; i++) x++; $3 }
int main(void) { $1_work(); return 0; }" >"$1.c"
	"${cc[@]}" -O1 -g -o "$1" "$1.c"
}
short early 300000000 'exit(0);' && short late 400000000 ''
profile -e -n 3 -s 0 -F early_work -- sh -c './early; ./late'
check "short programs: the share of S in the CPU time" "in 2: 0.1 to 0.5 in 3: 0.1 to 0.5 " "$(
	for run in 2 3; do
		sed -n 's/.*"type":"experiment".*"s_time":\([0-9]*\),.*"periods":\([0-9]*\),.*/\1 \2/p' \
			results/run-000$run.jsonl | awk -v run=$run '{ share = $1 / $2 / 1e6 # of CPU time, in ms
			printf "in %d: %s ", run, (share > 0.1 && share < 0.5 ? "0.1 to 0.5" : share) }'
	done)"

# sanitizers: in libraries of their own (gcc) or in the program (clang)
for compiler in gcc clang; do
	for sanitizer in address thread undefined; do
		if ! "$compiler" -std=gnu17 -D_GNU_SOURCE -g -O1 "-fsanitize=$sanitizer" -pthread -I"$source_dir" \
			-I"$source_dir/include" "$source_dir/tests/apps/processes.c" -o sanitized 2>/dev/null ||
			! ./sanitized work >/dev/null 2>&1; then
			skip "$compiler has no -fsanitize=$sanitizer here"
			continue
		fi
		profile -B MAIN -s 0,50 -- ./sanitized work
		check "$compiler -fsanitize=$sanitizer: exit status" 0 "$status"
		explain 0
		check "$compiler -fsanitize=$sanitizer: output" "work: good" "$(cat out)"
		was profiled "$compiler -fsanitize=$sanitizer"
	done
done
finish
