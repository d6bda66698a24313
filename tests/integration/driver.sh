#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # what stands in single quotes is for inner shells
# The driver's behaviour that no golden file shows: processes, signals, exit status, results
# added and reset, runs in place, what is generated. Rows of FEATURES F1 in brackets.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
needs_runtime

# compile NAME [FLAGS]: NAME.c to ./NAME
compile() { check "$1.c compiles" "" "$("${cc[@]}" -g -o "$1" "${@:2}" "$1.c" 2>&1 || echo "status $?")"; }
runs_in() { find "$1" -name 'run-*.jsonl' | wc -l; }
# until_true SECONDS COMMAND...: waits for something that will come true
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

# [1] what is the command
check "options end at --" "a -n 3" "$("$causal" -n 1 -o o1 -- echo a -n 3 2>/dev/null)"
check "the first word begins the command" "-n 3 --help" "$("$causal" echo -n 3 --help 2>/dev/null |
	sed 's/^3/-n 3/')"
contains "default output directory" "causal-out/echo-" "$(echo causal-out/*)"
check "standard output is the program's" "$(printf 'x\0y' | od -c)" \
	"$("$causal" -n 1 -o o1 -- printf 'x\0y' 2>/dev/null | od -c)"
check "standard input is the program's" "typed" "$(echo typed | "$causal" -o o1 -- cat 2>/dev/null)"
printf 'one\ntwo\n' >typed
check "each run reads a file from where the first did" "two two two " \
	"$( (read -r _; "$causal" -n 3 -o oi -- cat 2>/dev/null) <typed | tr '\n' ' ')"
check "a pipe is read once" "typed" "$(echo typed | "$causal" -n 3 -o op -- cat 2>errp)"
check "... and there is no second run" 1 "$(runs_in op)"
contains "... which says what to do" "causal ... -- cat ... < FILE" "$(cat errp)"
check "an input that nobody reads does no harm" 3 "$(echo typed | "$causal" -n 3 -o ol -- true 2>/dev/null; runs_in ol)"

# [2] iterations
"$causal" -n 20 -o o2 -- true 2>err2
check "-n 20 makes 20 runs" 20 "$(runs_in o2)"
check "... and 20 starts in the Coz profile" 20 "$(grep -c '^startup' o2/profile.coz)"
check "... the first three and the last have a line" "1 2 3 20" \
	"$(sed -n 's|^causal: run \([0-9]*\)/20: .* to go.*|\1|p' err2 | sed -n '1,3p;$p' | tr '\n' ' ' | sed 's/ $//')"
check "... others only every few seconds" yes "$(awk '/: run /{n++} END{print (n < 15 ? "yes" : n)}' err2)"
contains "... the last has no time to go" ", 0 s to go" "$(tail -n 20 err2)"

# [7] one child per variant, in order
cat >order.sh <<'SH'
echo "$$ $PPID begin"
sleep 0.1
echo "$$ $PPID end"
SH
"$causal" -n 3 -o o7 -- sh order.sh >out7 2>/dev/null
check "three children" 3 "$(cut -d' ' -f1 out7 | sort -u | wc -l)"
check "of one parent" 1 "$(cut -d' ' -f2 out7 | sort -u | wc -l)"
check "one after the other" "begin end begin end begin end" \
	"$(cut -d' ' -f3 out7 | tr '\n' ' ' | sed 's/ $//')"

# [8] in place
"$causal" --single -o o8 -- sh -c 'echo $$' >out8 2>err8 &
pid=$!
wait "$pid"
check "--single keeps the process" "$pid" "$(cat out8)"
check "--single: the status is the program's" 5 \
	"$("$causal" --single -o o8 -- sh -c 'exit 5' 2>/dev/null; echo $?)"
check "--single=2 takes variant 2" "CAUSAL_FIXED_SPEEDUP=20" \
	"$("$causal" --single=2 -o o8 -s 0 10 20 -- env 2>/dev/null | grep FIXED_SPEEDUP)"
until_true 5 grep -q 'results are in' err8
contains "--single shows the results afterwards" "results are in o8" "$(cat err8)"
# A program that waits for all of its children must not find the conductor among them.
cat >wait.c <<'C'
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
int main(void)
{
	return wait(NULL) == -1 && errno == ECHILD ? 0 : 1;
}
C
compile wait
"$causal" --single -o o8 -- ./wait 2>/dev/null
check "--single leaves no child to the program" 0 $?
check "--single reports a command that is gone" 127 \
	"$("$causal" --single -o o8 -- ./gone 2>/dev/null; echo $?)"
if command -v gdb >/dev/null; then
	printf 'int main(void)\n{\n\treturn 0;\n}\n' >toy.c
	compile toy
	contains "gdb stops in the program's main" "toy.c:3" \
		"$(gdb -batch -nx -ex 'set breakpoint pending on' -ex 'set startup-with-shell off' \
			-ex 'break toy.c:3' -ex run --args "$causal" --single -o o8 -- ./toy 2>&1)"
else
	skip "gdb on --single (no gdb)"
fi

# [9] launcher: only the program itself has the runtime
cat >who.sh <<'SH'
if [ -n "$LD_PRELOAD" ]; then echo "$1 with"; else echo "$1 without"; fi
shift
[ $# = 0 ] || exec "$@"
SH
(echo '#!/bin/sh' && cat who.sh) >inner.sh
chmod +x inner.sh
"$causal" -l 'inner' -n 2 -o o9 -- sh who.sh outer env A=1 ./inner.sh program >out9 2>/dev/null
check "launcher: only the match has the runtime, each time" \
	"outer without program with outer without program with" "$(tr '\n' ' ' <out9 | sed 's/ $//')"
check "launcher: the outer driver records the runs" 2 "$(runs_in o9)"
printf 'int in_program(int n)\n{\n\treturn n;\n}\nint main(void)\n{\n\treturn in_program(0);\n}\n' >launched.c
compile launched
check "launcher: -P list shows the program's points" in_program \
	"$("$causal" -l launched -P list:in_program -- env A=1 ./launched 2>/dev/null)"

# [14] signals
for pair in INT:130 TERM:143 QUIT:131; do
	signal=${pair%:*}
	rm -rf o14
	cat >ready.sh <<'SH'
: >ready
exec sleep 30
SH
	rm -f ready
	# Python would do as well; bash ignores INT and QUIT in background jobs.
	(
		trap - INT QUIT
		exec env --default-signal=INT,QUIT "$causal" -n 5 -o o14 -- sh ready.sh
	) >/dev/null 2>err14 &
	pid=$!
	until_true 10 test -e ready
	child=$(cat "/proc/$pid/task/$pid/children")
	kill -s "$signal" "$pid"
	wait "$pid" 2>/dev/null
	check "$signal: the driver dies of it" "${pair#*:}" $?
	check "$signal: no second run" 1 "$(runs_in o14)"
	check "$signal: the child is gone" "" "$(ps -o pid= -p "${child% }")"
	contains "$signal: what is there is shown" "results are in o14" "$(cat err14)"
	check "$signal: the run is closed" 1 "$(grep -c '"end"\|"summary"\|exit' o14/run-0001.jsonl)"
done
cat >patient.sh <<'SH'
trap 'echo caught; exit 7' TERM
: >ready
while :; do sleep 0.05; done
SH
rm -f ready
"$causal" -o o14 -- bash patient.sh >out14 2>/dev/null &
pid=$!
until_true 10 test -e ready
kill "$pid"
wait "$pid" 2>/dev/null
check "a program may handle the signal" "143 caught" "$? $(cat out14)"

# [15] exit status
status() {
	"$causal" -o o15 "$@" >/dev/null 2>&1
	echo $?
}
printf 'text' >plain
check "the program's own" 3 "$(status -- sh -c 'exit 3')"
check "not found" 127 "$(status -- ./missing)"
check "not found in PATH" 127 "$(status -- no-such-command)"
mkdir -m 0 closed
check "... nor in a folder of it that may not be searched" 127 "$(PATH=$PWD/closed:$PATH status -- no-such-command)"
check "not executable" 126 "$(status -- ./plain)"
check "a folder" 126 "$(status -- ./)"
printf '\177ELFdamaged' >damaged
chmod +x damaged
check "a damaged program" 126 "$(status -- ./damaged)"
check "... with --single" 126 "$(status --single -- ./damaged)"
check "killed" 137 "$(status -- sh -c 'kill -9 $$')"
ends() { "$causal" -o o15 "$@" 2>&1 >/dev/null | grep '^causal: the program .*ended .* in run 1'; }
contains "... which is told" "was ended by signal 11 (Segmentation fault) in run 1; causal stops there." \
	"$(ends -n 2 -- sh -c 'kill -SEGV $$')"
lacks "... nothing stops after the last run" "stops" "$(ends -n 1 -- sh -c 'kill -SEGV $$')"
contains "an exit status that stops a sweep is told" "with exit status 3 in run 1; causal stops there." \
	"$(ends -n 2 -- sh -c 'exit 3')"
check "... which the only run's does not" "" "$(ends -n 1 -- sh -c 'exit 3')"
check "... nor one that is to be ignored" "" "$(ends -n 2 --keep-going -- sh -c 'exit 3')"
printf '#!/no/such/interpreter\n' >orphan
chmod +x orphan
check "an interpreter that is not there" 127 "$(status -- ./orphan)"
printf 'exit 9\n' >bare
chmod +x bare
check "a script without #!" 9 "$(status -- ./bare)"
rm -rf o15
check "a failed run ends the sweep" "3 1" "$(status -n 4 -- sh -c 'exit 3') $(runs_in o15)"
rm -rf o15
check "--keep-going does not" "3 4" "$(status --keep-going -n 4 -- sh -c 'exit 3') $(runs_in o15)"
rm -rf o15
printf 'echo x >>count; test "$(wc -l <count)" -ne 2 || exit 4\n' >second.sh
check "... and the first failure is told" 4 "$(status --keep-going -n 3 -- sh second.sh)"
check "nothing is left when no run was made" "2 no" \
	"$("$causal" -o o15x -s 0-x -- true 2>/dev/null; echo $?) $([[ -e o15x ]] && echo yes || echo no)"

# [16] added and reset
"$causal" -n 2 -o o16 -- true 2>/dev/null
"$causal" -n 3 -o o16 -- true 2>/dev/null
check "a second sweep adds" "run-0001.jsonl run-0002.jsonl run-0003.jsonl run-0004.jsonl run-0005.jsonl" \
	"$(cd o16 && echo run-*)"
echo mine >o16/notes
"$causal" -r -n 2 -o o16 -- true 2>/dev/null
check "-r keeps the last sweep only" "run-0001.jsonl run-0002.jsonl" "$(cd o16 && echo run-*)"
check "-r leaves other files alone" mine "$(cat o16/notes)"
printf 'int work(int n)\n{\n\treturn n + 1;\n}\nint main(void)\n{\n\treturn work(-1);\n}\n' >kept.c
compile kept
before=$(cd o16 && md5sum ./*)
"$causal" -r -F nosuchfunction -o o16 -- ./kept 2>/dev/null
check "-r with a mistake that is found late: exit status" 2 $?
check "... removes nothing" "$before" "$(cd o16 && md5sum ./*)"
"$causal" -r --single -F nosuchfunction -o o16 -- ./kept 2>/dev/null
check "... nor with --single" "$before" "$(cd o16 && md5sum ./*)"
"$causal" -r --single -o o16 -- ./kept >/dev/null 2>&1 | cat
check "... which removes them otherwise" "run-0001.jsonl" "$(cd o16 && echo run-*)"
"$causal" --time-output -o o16t -- true 2>/dev/null
check "--time-output makes a folder" 1 "$(find o16t -mindepth 1 -maxdepth 1 -type d | wc -l)"

if unshare -rm true 2>/dev/null; then
	mkdir full
	contains "a full file system" "no space left; free some space, or give another directory with -o" \
		"$(unshare -rm sh -c 'mount -t tmpfs -o size=8k none full && "$1" -o full/x -- true' \
			sh "$causal" 2>&1)"
else
	skip "a full file system (no user name spaces)"
fi

# the progress line on a terminal
if command -v script >/dev/null; then
	script -qec "$causal -n 3 -o o18 -- sleep 0.3" /dev/null </dev/null >out18
	contains "a terminal has one line that is rewritten" $'\r\e[Krun 2/3, ' "$(cat out18)"
	check "... and no line per run" 0 "$(grep -c '^causal: run ' out18)"
else
	skip "the progress line on a terminal (no script)"
fi
if [[ -n ${CA_PYTHON3-$(command -v python3)} ]]; then
	cat >key.py <<'PY'
import os, pty, signal, sys, time
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in what a shell started with &
    os.execv(sys.argv[1], [sys.argv[1], "-n", "3", "-o", "o19", "--", "sh", "count.sh"])
while not os.path.exists("ready"):
    time.sleep(0.02)
os.write(terminal, b"\x03")
while True:
    try:
        if not os.read(terminal, 4096):
            break
    except OSError:
        break
print(os.WTERMSIG(os.waitpid(pid, 0)[1]))
PY
	# dash takes the signal only once its child has ended: each arrives as one trap.
	printf 'trap "echo int >>ints" INT\n: >ready\nfor i in 1 2 3 4; do sleep 0.1; done\nexit 0\n' >count.sh
	rm -f ready ints
	check "Ctrl-C ends the sweep" 2 "$("${CA_PYTHON3:-python3}" key.py "$causal")"
	check "Ctrl-C reaches the program once" 1 "$(wc -l <ints)"
	check "Ctrl-C: no second run" 1 "$(runs_in o19)"
else
	skip "Ctrl-C on a terminal (no Python)"
fi

# [seed] an unseeded sweep records the seed that it took; with that one, the choices come again
cat >five.c <<'C'
#include <causal.h>
#define WORK(name) __attribute__((noinline)) void name(void) { for (volatile int i = 0; i < 40000; i++) ; }
WORK(one) WORK(two) WORK(three) WORK(four) WORK(five)
int main(void)
{
	for (int i = 0; i < 14000; i++) {
		one(), two(), three(), four(), five();
		CAUSAL_PROGRESS_NAMED("round");
	}
	return 0;
}
C
# sweep DIR [OPTIONS]: a line per experiment, its region and speedup
sweep() {
	local dir=$1
	shift
	CAUSAL_DELAY=0.3 CAUSAL_EXPERIMENT_MIN=0.05 CAUSAL_WARM_UP=5 CAUSAL_COOL_OFF=1 "$causal" -n 2 -s 0,20,40,60,80 \
		-F '^(one|two|three|four|five)$' -o "$dir" "$@" -- ./five 2>/dev/null
	sed -n 's/.*"experiment".*"region":{"name":"\([a-z]*\)".*"speedup":\([0-9.]*\),.*/\1 \2/p' "$dir"/run-*
}
seeds() { sed -n 's/.*"type":"run".*"seed":\([0-9]*\).*/\1/p' "$@" | sort -u; }
compile five -O1 -I"$source_dir" -I"$source_dir/include"
sweep o20 >first
seed=$(seeds o20/run-*)
check "all runs of a sweep have one seed, not 0" 1 "$(grep -c '^[1-9][0-9]*$' <<<"$seed")"
sweep o21 --seed="$seed" >again
check "it is recorded when given" "$seed" "$(seeds o21/run-*)"
sweep o22 >other
check "another sweep has another seed" yes "$([[ $(seeds o22/run-*) != "$seed" ]] && echo yes)"
both=$(paste -d' ' first again | awk 'NF == 4' | wc -l)
check "experiments to compare: 6 or more" "" "$( ((both >= 6)) || echo "$both")"
check "the same seed, the same speedups" "$(head -n "$both" first | cut -d' ' -f2)" \
	"$(head -n "$both" again | cut -d' ' -f2)"
# shares of samples vary, most of all in the beginning, which --delay lets pass, and what the first
# experiments say decides about later ones; by chance 1 in 5
alike=$(paste -d' ' first again | head -n 6 | awk 'NF == 4 && $1 == $3' | wc -l)
check "... and mostly the same regions at first" "" "$( ((alike >= 3)) || paste first again)"
check "profile.json has it, too" "\"seed\":$seed" "$(grep -o '"seed":[0-9]*' o20/profile.json)"

# a remedy that is a command is told as one; here on what a sweep would leave that made none at 0 %, by
# a causal that did not record what would tell without
mkdir o23
for run in o20/run-*; do
	sed -e '/"type":"experiment".*"speedup":0[.0]*,/d' -e 's/"flags":\[[^]]*\]/"flags":[]/' \
		-e 's/"paying":[0-9]*,//' -e 's/"speedups":"[^"]*"/"speedups":"50"/' "$run" >"o23/${run#*/}"
done
contains "the command to run next" \
	"causal: run this: causal -o o23 -s 0,50 -n 10 -- true 'a b'" \
	"$("$causal" -s 20 -o o23 -- true "a b" 2>&1)"

# colours: on a terminal, unless one does not want them
if command -v script >/dev/null; then
	# colours [OPTIONS]: what is marked in the table of the sweep by seed
	colours() {
		script -qec "TERM=${terminal-xterm} $causal -o o20 $* -- true" /dev/null </dev/null |
			grep -oE $'\e\\[1m     (code|if this code)|\e\\[(1;32|2|33)m(worth it|does not matter|not enough data|too few tries: [12]|little, if any|cannot tell here)\e\\[0m' |
			sed 's/.*code.*/code/; s/.*it$\|.*it.*\|.*data.*\|.*tries.*\|.*here.*/verdict/' | sort -u | tr '\n' ' '
	}
	check "headings and verdicts are marked" "code verdict " "$(colours)"
	check "... not with NO_COLOR" "" "$(NO_COLOR=1 colours)"
	check "... unless asked for" "code verdict " "$(NO_COLOR=1 colours --no-monochrome)"
	check "... not with --monochrome" "" "$(colours --monochrome)"
	check "... not on a dumb terminal" "" "$(terminal=dumb colours)"
	check "... not in a file" 0 "$("$causal" --no-monochrome -o o20 -- true 2>&1 | grep -c $'\e')"
else
	skip "colours on a terminal (no script)"
fi

# variables of the child
check "LD_PRELOAD is appended to" "libz-not-there.so:$(readlink -f "$build/.libs/libcausal-rt.so")" \
	"$(LD_PRELOAD=libz-not-there.so "$causal" -o o17 -- sh -c 'echo "$LD_PRELOAD"' 2>/dev/null)"
check "Coz's names" "^.*/x\\.c\$" \
	"$(COZ_SOURCE_SCOPE='%/x.c' "$causal" -o o17 -- sh -c 'echo "$CAUSAL_SOURCE_SCOPE"' 2>/dev/null)"

# [backend] the files say where samples came from, and the user hears why it is not perf
limits=$build/tests/apps/limits
backends() { sed -n "s/.*\"type\":\"$1\".*\"backend\":\"\([a-z]*\)\".*/\1/p" "$2"/run-* | tr '\n' ' '; }
"$limits" seccomp_then "$causal" -b perf -n 3 -o o30 -- true 2>err30
check "-b perf without perf: exit status" 2 $?
check "... one line says why" 1 "$(grep -c '^causal: -b perf: perf_event_open is not allowed here (.*): .*, or use -b timer$' err30)"
check "... and no more is said" 1 "$(wc -l <err30)"
check "... nothing was run" no "$([[ -e o30 ]] && echo yes || echo no)"
"$limits" seccomp_then "$causal" -n 3 -o o31 -- true 2>err31
check "auto without perf: exit status" 0 $?
check "... one line for the sweep says why" 1 "$(grep -c 'timers give the samples, .*perf_event_open is not allowed here (Operation not permitted' err31)"
check "... and the files say timer" "timer timer timer " "$(backends run o31)"
"$limits" seccomp_then "$causal" -b timer -o o31 -- true 2>err31
check "-b timer has nothing to tell" 0 "$(grep -c perf err31)"
"$limits" seccomp_then "$causal" -o o32 -- "$limits" deep >/dev/null 2>&1
check "samples came from timers" "timer " "$(backends end o32)"
"$causal" -b timer -o o33 -- "$limits" deep >/dev/null 2>&1
check "... and when asked to" "timer timer " "$(backends run o33)$(backends end o33)"
"$causal" -o o34 -- true >/dev/null 2>&1
if [[ $(backends run o34) == "perf " ]]; then
	"$causal" -n 2 -o o35 -- "$limits" deep >/dev/null 2>&1
	check "samples came from perf" "perf perf " "$(backends end o35)"
	"$causal" -n 2 -o o35 -- "$limits" seccomp_then "$limits" deep >/dev/null 2>err35
	check "perf and timers, each in a process" "perf perf mixed mixed " "$(backends end o35)"
	check "... one line for the sweep tells of it" 1 "$(grep -c 'some threads got no perf events' err35)"
	contains "... and the profile" '"backend":"mixed"' "$(cat o35/profile.json)"
else
	skip "samples from perf (not allowed here)"
fi

# a home directory that is not there is not made
(
	unset XDG_CACHE_HOME
	HOME=$work/nowhere "$causal" -o o41 -- true 2>err41
	HOME=$work/nowhere "$causal" -v 1 -o o41 -- true 2>err42
)
check "HOME is not made" no "$([[ -e nowhere ]] && echo yes || echo no)"
check "... where else the cache is, is told once, with -v only" "0 1" \
	"$(grep -c 'indexes are kept' err41) $(grep -c "indexes are kept in /tmp/causal-$(id -u), not in the home directory $work/nowhere" err42)"

# --debug reaches the runtime
says() { "$causal" "$@" -o o40 -- true 2>&1 | grep -c '^causal: process [0-9]* takes part in \|^causal: thread [0-9]*: ticks from '; }
check "--debug: the runtime tells what it does" 2 "$(says --debug)"
check "... CAUSAL_DEBUG, too" 2 "$(CAUSAL_DEBUG=1 says)"
check "... and no more without" 0 "$(says -v 4)"

# selftest: a real one, whatever this machine is like now; and one that cannot but say no
started=$SECONDS
"$causal" selftest >out60 2>&1
case $? in
0) verdict="Predictions can be trusted here" cases="good" ;;
1) verdict="Predictions cannot be trusted here\|Cannot tell whether predictions can be trusted here" cases="BAD" ;;
*) verdict="a verdict" cases="a case" ;;
esac
check "selftest: ends within 40 s" "" "$( ((SECONDS - started <= 40)) || echo "$((SECONDS - started)) s")"
check "... the verdict goes with the exit status" 1 "$(tail -n 1 out60 | grep -c "^\($verdict\)")"
contains "... and with its programs" "  $cases " "$(grep -E '^  .* (serial|barrier) +(perf|timer) ' out60)"
check "... of which each has a line with the timer" "barrier serial" \
	"$(grep -oE '^  (good|BAD) +(serial|barrier) +timer .*: (50 % less time must give [23]0 %, predicted|no prediction \(.+\)$)' out60 |
		awk '{ print $2 }' | sort -u | tr '\n' ' ' | sed 's/ $//')"
for item in "perf events" "room for threads" "timer ticks" clock sleeps "code patching" cores "other programs" \
	"noise meanwhile"; do
	check "... names $item" 1 "$(grep -cE "^  (good|doubt|BAD) +$item  *[^ ]" out60)"
done
if grep -q '^  good   perf events ' out60; then
	check "... and the error to be expected" 1 \
		"$(grep -cE '^Predictions here: (about \+-[0-9]+ points|cannot tell) with perf, (about \+-[0-9]+ points|cannot tell) with the timer$' out60)"
else
	check "... and the error to be expected" 1 \
		"$(grep -cE '^Predictions here: (about \+-[0-9]+ points|cannot tell) with the timer$' out60)"
fi
CAUSAL_RUNTIME=missing.so "$limits" seccomp_then "$causal" selftest >out60
check "selftest: no prediction, no trust" 1 $?
check "... says why, for each program" 2 \
	"$(grep -cE "^  BAD +(serial|barrier) +timer .*no prediction \\(causal: runtime 'missing.so' cannot be used" out60)"
contains "... and what follows" "Cannot tell whether predictions can be trusted here, since there was no prediction" \
	"$(tail -n 1 out60)"
contains "... where perf is missing, what to do" "To do: perf_event_open is not allowed here (Operation not permitted" \
	"$(grep -A1 '^  doubt  perf events ' out60)"
contains "--help names it" "  selftest" "$("$causal" --help)"
check "selftest with arguments" 2 "$("$causal" selftest now >/dev/null 2>&1; echo $?)"
mkdir bin
printf '#!/bin/sh\necho mine\n' >bin/selftest
chmod +x bin/selftest
check "a program of that name" mine "$(PATH=$PWD/bin:$PATH "$causal" -o o50 -- selftest 2>/dev/null)"

# subcommands
check "sweep is what causal does without a subcommand" "$("$causal" --dry-run -s 0 5-15 -- true)" \
	"$("$causal" sweep --dry-run -s 0 5-15 -- true)"
check "... the first word after it begins the command, too" "a -n 3" \
	"$("$causal" sweep echo a -n 3 2>/dev/null)"
check "... it shows the same help" "$("$causal" --help)" "$("$causal" sweep --help)"
for name in selftest avail ctl report export convert compare diff verify merge resume what-if; do
	contains "... what $name is for" "Usage: causal $name " "$("$causal" "$name" --help 2>&1)"
	check "... $name --help: exit status" 0 "$("$causal" "$name" --help >/dev/null 2>&1; echo $?)"
done
mv bin/selftest bin/sweep
check "... a program of that name" mine "$(PATH=$PWD/bin:$PATH "$causal" -o o50 -- sweep 2>/dev/null)"
check "... the subcommand's name is no part of its command" 2 \
	"$(PATH=$PWD/bin:$PATH "$causal" sweep >/dev/null 2>&1; echo $?)"

# what is generated
"$causal" --help=config | sed 's/^#CAUSAL/CAUSAL/' >all.cfg
check "the sample configuration reads back" "0: iteration=1" \
	"$("$causal" --dry-run -c all.cfg -- true 2>&1 | sed 's/ CAUSAL.*//')"
if command -v groff >/dev/null; then
	"$causal" --help=man >causal.1
	check "the manual page has no faults" "" "$(groff -man -Tutf8 -ww causal.1 2>&1 >/dev/null)"
else
	skip "the manual page (no groff)"
fi
"$causal" --help=bash >completion
complete_words() {
	bash -c 'source ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _causal
		printf "%s " "${COMPREPLY[@]}"' complete "$@"
}
contains "completion of switches that are on" "--no-exact " "$(complete_words causal --no-e)"
contains "completion of options" "--speedups " "$(complete_words causal --sp)"
check "completion of options of causal sample" "--suggest " "$(complete_words causal sample --sug)"
check "... of causal-sample" "--suggest " "$(complete_words causal-sample --sug)"
check "... of causal trace" "--sinks " "$(complete_words causal trace --sin)"
for word in --seed --speedups --source-scope; do
	check "... which has no $word, and makes no experiments" " " "$(complete_words causal trace "$word")"
done
contains "... it is for both" "causal causal-sample" "$(tail -n 1 completion)"
for words in 'export --format' 'verify --region' 'verify --speedup' 'compare --fail-if-slower' 'avail --category' \
	'avail --dump-config' 'report --source' 'diff --of' 'ctl pause' 'ctl resume' 'ctl finish' 'avail sinks' \
	'what-if --what-if' 'resume --speedups'; do
	contains "completion of causal $words" "${words#* } " "$(complete_words causal "${words% *}" "${words#* }")"
done
check "... of folders, too" "o16 o16t " "$(complete_words causal report o16 | tr ' ' '\n' | sort | tr -s '\n' ' ' | sed 's/^ //')"
check "... of a command behind --" "" "$(complete_words causal verify o16 -- tru --sp | tr -d ' ')"
check "completion of choices" "auto perf timer " "$(complete_words causal -b '')"
check "... after a long option" "function line " "$(complete_words causal --mode '')"
check "... of sinks" "print " "$(complete_words causal --sinks pr)"
check "completion of all names of an option" "--speedup-divisions --speedups " \
	"$(complete_words causal --sp | tr ' ' '\n' | sort | tr -s '\n' ' ' | sed 's/^ //')"
check "... the further ones, too" "--random-seed " "$(complete_words causal --ra)"
check "... after which nothing is known" " " "$(complete_words causal --random-seed '')"
contains "completion of selftest" " selftest " " $(complete_words causal self)"
check "... only as the first word" 0 "$(complete_words causal -n 3 -- self | grep -c selftest)"
contains "completion of sweep" " sweep " " $(complete_words causal swe)"
contains "... and of its options" "--speedups " "$(complete_words causal sweep --sp)"
contains "... and of its command" "true " "$(complete_words causal sweep -n 3 -- tru)"
check "completion of a folder" "o16/ o16t/ " "$(complete_words causal -o o16 | tr ' ' '\n' | sort | sed 's|$|/|' | tr '\n' ' ')"
contains "completion of the command" "true " "$(complete_words causal -n 3 -- tru)"

finish
