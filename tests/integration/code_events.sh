#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# causal_trace.h: by several compilers without a warning and without a library; what it refuses;
# and what `causal trace` makes of it.
# shellcheck source=tests/integration/check.bash
. "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash"

app=$source_dir/tests/apps/code_events.c
strict=(-Wall -Wextra -Wpedantic -Werror "-I$source_dir/include" -pthread)

notes() { readelf -n "$1" 2>/dev/null | grep -c '^ *causal '; }

# compiles NAME COMPILER FLAGS...: it has notes, and needs nothing
compiles() {
	local name=$1
	shift
	if "$@" "${strict[@]}" -o made "$app" 2>errors && ./made; then
		at_least "$name: notes" 20 "$(notes made)"
		check "$name: no symbol of causal's is needed" "" "$(nm -u made | grep ' U .*causal')"
	else
		bad "$name: $(head -5 errors)"
	fi
	if "$@" "${strict[@]}" -DCAUSAL_DISABLE -o made "$app" 2>errors && ./made; then
		check "$name: nothing is left with CAUSAL_DISABLE" 0 "$(notes made)"
	else
		bad "$name, disabled: $(head -5 errors)"
	fi
}
for flags in -O0 -O2 '-O2 -fPIC' '-Os -fno-pie -no-pie'; do
	read -ra list <<<"$flags"
	compiles "gcc $flags" gcc -std=gnu17 "${list[@]}"
	compiles "g++ $flags" g++ -x c++ -std=c++17 "${list[@]}"
	if command -v clang++ >/dev/null; then
		compiles "clang $flags" clang -std=gnu17 "${list[@]}"
		compiles "clang++ $flags" clang++ -x c++ -std=c++17 "${list[@]}"
	fi
done
command -v clang++ >/dev/null || skip "causal_trace.h with clang: there is none"

# refuses NAME TEXT CODE
refuses() {
	local compiler
	for compiler in "gcc -xc" "g++ -xc++"; do
		# shellcheck disable=SC2086 # a compiler with its option
		if printf '#include <causal_trace.h>\nint main(void) { %s; return 0; }\n' "$3" |
			$compiler -O1 "${strict[@]}" -o made - 2>errors; then
			bad "$1 is accepted by $compiler"
		else
			contains "$1, $compiler" "$2" "$(<errors)"
		fi
	done
}
refuses "a scope with value 0" "0 stands for the end" 'CAUSAL_TRACE_SCOPE(part, 0)'
refuses "an update to 0" "0 stands for the end" 'CAUSAL_TRACE_SCOPE(part, 2); CAUSAL_TRACE_SCOPE_UPDATE(part, 0, "x")'
refuses "a function's update to 1" "1 stands for the function" \
	'CAUSAL_TRACE_FUNCTION; CAUSAL_TRACE_FUNCTION_UPDATE(1, "x")'
refuses "an update without its scope" "causal_trace_scope_part" 'CAUSAL_TRACE_SCOPE_UPDATE(part, 2, "x")'
refuses "an update without its function" "causal_trace_function_" 'CAUSAL_TRACE_FUNCTION_UPDATE(2, "x")'
refuses "a state with value 0" "0 stands for the end" 'CAUSAL_TRACE_STATE_BEGIN("x", 0, "x")'
refuses "a key without its value" "a_value_is_missing" 'CAUSAL_TRACE_EVENTS("x", 1, "y")'
refuses "an id beyond the last" "1 to 32767" 'CAUSAL_TRACE_EVENT_ID(32768, "x", 1)'
refuses "a name that is no literal" "expected" 'const char *name = "x"; CAUSAL_TRACE_EVENT(name, 1)'

# What is raised, and when.
"${cc[@]}" -O2 "${strict[@]}" -o events "$app" || exit 1
# told FILE WORD...: lines without times, of these keys only
told() {
	local file=$1
	shift
	cut -d' ' -f3- "$file" | grep -E "^[a-z-]+ ($(IFS='|' && echo "$*"))( |\$)"
}
"$causal" trace --sinks print=all -- ./events 2>log || bad "causal trace: $(<log)"
check "each macro once" 'burst-begin early 1 "early"
burst-end early 1 "early"
burst-begin early 2 "the long way"
burst-end early 2 "the long way"
burst-begin early 1 "early"
burst-end early 1 "early"
burst-begin outer 3
burst-begin inner 1
burst-end inner 1
burst-begin inner 2
burst-end inner 2
burst-begin inner 100 "hundred"
burst-end outer 3
burst-begin outer 7 "seven"
burst-end inner 100 "hundred"
burst-end outer 7 "seven"
burst-begin region 1
point plain 42
point twelve 43
burst-end region 1
burst-begin mutex 1 "waiting"
burst-end mutex 1 "waiting"
burst-begin mutex 2 "mutex_2"
burst-end mutex 2 "mutex_2"
burst-begin mutex 2 "mutex_2"
burst-end mutex 2 "mutex_2"' "$(told all early outer inner region plain twelve mutex)"

"$causal" trace --events user,-:in,-mutex --sinks print=some -- ./events 2>log || bad "--events: $(<log)"
check "those that are not wanted" "" "$(told some inner mutex)"
check "those that are" 3 "$(told some early | grep -c begin)"

# The same choice later.
"$causal" trace --sinks binary=kept -- ./events 2>log || bad "binary: $(<log)"
"$causal" convert kept --events user,-:in,-mutex --sinks print=chosen 2>log || bad "convert --events: $(<log)"
check "a trace that is converted: those that are wanted" "$(told some early outer inner region mutex)" \
	"$(told chosen early outer inner region mutex)"

"$causal" trace --sinks print=many -- ./events threads 2>log || bad "threads: $(<log)"
check "bursts of four threads" 8000 "$(told many burst | grep -c begin)"
check "... as many ends" 8000 "$(told many burst | grep -c end)"

# A task takes its open bursts along.
"$causal" trace --sinks print=tasks,json=tasks.json -- ./events tasks 2>log || bad "tasks: $(<log)"
thread=$(sed -n 's/.* \([0-9]*\/[0-9]*\) burst-begin own .*/\1/p' tasks)
grep " $thread " tasks >second
grep -v " $thread " tasks >first
check "the thread that begins it" 'burst-begin task 5 "job 5"
burst-begin part 1
ptp-begin task 1
burst-end part 1
burst-end task 5 "job 5"' "$(told first task part)"
check "the one that goes on" 'burst-begin own 1
burst-begin task 5 "job 5"
ptp-end task 1
burst-begin part 1
burst-end part 1
burst-end task 5 "job 5"
burst-end own 1' "$(told second task part own)"
# ... and what others had for it meanwhile happens where it goes on.
"$causal" trace --sinks print=later -- ./events later 2>log || bad "later: $(<log)"
thread=$(sed -n 's/.* \([0-9]*\/[0-9]*\) point for .*/\1/p' later | uniq)
grep " $thread " later >second
check "events for other threads" 'burst-begin task 5 "job 5"
ptp-end task 1
burst-begin part 1
point for five 1
point for five 2
burst-end part 1
burst-end task 5 "job 5"
burst-begin task 6 "job 6"
point for six 3
burst-end task 6 "job 6"' "$(told second task part for | grep -v seven | head -n 10)"
check "... those for which there is room" 16 "$(told second for | grep -c seven)"
contains "... the others are counted" "4 events are missing: too many of them waited for tasks" "$(<log)"
# ... also where other threads look for theirs at the same time.
"$causal" trace --sinks print=pauses -- ./events pauses 2>log || bad "pauses: $(<log)"
check "bursts that go on with their tasks" "16000 16000" \
	"$(told pauses piece | grep -c begin) $(told pauses piece | grep -c end)"
# Its states, too: first them, then its bursts, then what was for it.
"$causal" trace --sinks print=states,paraver=states -- ./events states 2>log || bad "states: $(<log)"
thread=$(sed -n 's/.* \([0-9]*\/[0-9]*\) ptp-end letter .*/\1/p' states)
grep " $thread " states >second
grep -v " $thread " states >first
check "states: the thread that begins it" 'state-begin phase 1 "begin"
burst-begin task 5 "job 5"
state-begin phase 2 "read"
burst-begin part 1
state-begin phase 3 "parse"
substate-begin detail 4 "words"
burst-begin phase 1 "begin"
burst-end phase 1 "begin"
ptp-begin task 1
substate-end detail 4 "words"
state-end phase 3 "parse"
state-end phase 2 "read"
burst-end part 1
burst-end task 5 "job 5"
ptp-begin letter 71
state-end phase 1 "begin"' "$(told first task part phase detail letter later)"
check "states: the one that goes on" 'ptp-end letter 71
burst-begin task 5 "job 5"
ptp-end task 1
state-begin phase 2 "read"
state-begin phase 3 "parse"
substate-begin detail 4 "words"
burst-begin part 1
point later 9
substate-end detail 4 "words"
state-end phase 3 "parse"
burst-end part 1
state-end phase 2 "read"
burst-end task 5 "job 5"' "$(told second task part phase detail letter later)"
check "states: all of a switch at one time" 1 "$(grep -E ' (ptp-begin task|substate-end|state-end phase 3|burst-end part) ' first |
	cut -d' ' -f1 | sort -u | wc -l)"

check "states: in Paraver a sub-state has the name that its key gives it" "words" \
	"$(sed -n "/ detail$/,/^$/s/^4  *//p" states.pcf)"
check "states: ... and are of its type" 4 "$(grep -c ":$(sed -n 's/^0 *\([0-9]*\) *detail$/\1/p' states.pcf):[04]" states.prv)"

# Several keys and values in one event.
"$causal" trace --events user --sinks print=several,paraver=several -- ./events several 2>log || bad "several: $(<log)"
check "several" 'point width 1
point width 2
point height 3
point width 4
point height 5
point depth 6
point width 7
point height 8
point depth 9
point time 1' "$(told several width height depth time)"
check "... at one time each" "1 2 3 4" "$(cut -d' ' -f1 several | uniq -c | awk '{ print $1 }' | xargs)"
check "... in Paraver one record each" 4 "$(grep -c '^2:' several.prv)"
"$causal" trace --events user,-:height,-:depth --sinks print=several -- ./events several 2>log || bad "several: $(<log)"
check "... those that are wanted" 'point width 1
point width 2
point width 4
point width 7
point time 1' "$(told several width height depth time)"
for name in first second tasks; do
	contains "it is called $name" "\"$name\"" "$(<tasks.json)"
done

"$causal" trace --events user --sinks print=clash -- ./events clash 2>log || bad "clash: $(<log)"
contains "two names for one id: both places" "code_events.c:" "$(grep -o '"dozen" with id 12 (.*code_events.c:.*"twelve" has id 12 (.*code_events.c:' log)"
check "... the others are there" 'point twelve 1
point still there 3' "$(told clash twelve dozen still)"

"$causal" trace --events user --sinks print=values -- ./events values 2>log || bad "values: $(<log)"
check "values that are none" 'burst-begin values 1 "values"
burst-begin scope 1
burst-end scope 1
burst-begin scope 7 "seven"
burst-end scope 7 "seven"
burst-end values 1 "values"' "$(told values values scope)"
check "... said once" 1 "$(grep -c 'event "scope" (.*code_events.c:.*): 0 is no value for it' log)"

# The ids that are asked for are Paraver's types; those that are handed out come from the top.
"$causal" trace --sinks paraver=types -- ./events 2>log || bad "paraver: $(<log)"
contains "the id that was asked for" "0    12    twelve" "$(<types.pcf)"
contains "the first that was handed out" "0    32767    early" "$(<types.pcf)"

# A mutex in Paraver: who waits has 1, who holds it its number, else 0.
"$causal" trace --events user --sinks paraver=contend -- ./events contend 2>log || bad "contend: $(<log)"
type=$(sed -n 's/^0 *\([0-9]*\) *mutex$/\1/p' contend.pcf)
check "a mutex in Paraver" "500 1.1 1:2:0 500 1.2 1:2:0" "$(awk -F: -v type="$type" '/^2:/ {
	for (i = 7; i <= NF; i += 2) if ($i == type) { last[$5] = last[$5] (++n[$5] % 3 == 1 ? "" : ":") $(i + 1)
		if (n[$5] % 3 == 0) { print "1." $5, last[$5]; last[$5] = "" } } }' contend.prv | sort | uniq -c | xargs)"

# C++: exceptions, any mutex, a library and a plugin that have events of their own.
cat >part.cc <<'END'
#include <causal_trace.h>
#include <stdexcept>
extern "C" int part(int n);
int part(int n)
{
	CAUSAL_TRACE_SCOPE(PART, n);
	if (n > 1)
		throw std::runtime_error("x");
	return n;
}
END
cat >whole.cc <<'END'
#include <causal_trace.h>
#include <dlfcn.h>
#include <mutex>
extern "C" int part(int n);
template <typename T> T twice(T n)
{
	CAUSAL_TRACE_FUNCTION_NAMED("twice");
	return n + n;
}
int main()
{
	static causal_trace_mutex<std::mutex> mutex;
	CAUSAL_TRACE_SCOPE(main, 1);
	try {
		part(1);
		part(2);
	} catch (...) {
		std::lock_guard<causal_trace_mutex<std::mutex>> guard(mutex);
		CAUSAL_TRACE_EVENT("caught", twice(3) + (int)twice(2.0));
	}
	void *plugin = dlopen("./plugin.so", RTLD_NOW);
	auto also = plugin ? (int (*)(int))dlsym(plugin, "part") : nullptr;
	return also ? also(1) - 1 : 2;
}
END
library() { # TAG FILE
	sed "s/PART/$1/" part.cc | "${cxx[@]}" -O2 "${strict[@]}" -fPIC -shared -xc++ -o "$2" -
}
if ! { library plugin plugin.so && library library libpart.so &&
	"${cxx[@]}" -O2 "${strict[@]}" -o whole whole.cc -L. -lpart -Wl,-rpath,. -ldl; }; then
	bad "C++ does not compile"
fi
"$causal" trace --sinks print=cxx -- ./whole 2>log || bad "C++: $(<log)"
check "C++" 'burst-begin main 1
burst-begin library 1
burst-end library 1
burst-begin library 2
burst-end library 2
burst-begin mutex 2 "mutex_2"
burst-begin twice 1 "twice"
burst-end twice 1 "twice"
burst-begin twice 1 "twice"
burst-end twice 1 "twice"
point caught 10
burst-end mutex 2 "mutex_2"
burst-begin plugin 1
burst-end plugin 1
burst-end main 1' "$(told cxx main library mutex twice caught plugin | grep -v ' mutex 1')"

# A library that a tick has found while it was being loaded: the loader sets its data to zeros last.
{
	echo '#include <cstdio>'
	sed 's/PART/early/' part.cc
	cat <<'END'
#include <time.h>
__attribute__((constructor(101))) static void before_all_others()
{
	for (clock_t end = clock() + 2 * CLOCKS_PER_SEC; clock() < end && !causal_trace_hook_.off;)
		__asm__ volatile("" ::: "memory");
	if (causal_trace_hook_.off)
		puts("found");
	causal_trace_hook_ = { nullptr, nullptr };
}
END
} >early.cc
sed 's/plugin\.so/early.so/' whole.cc >whole_early.cc
if ! { "${cxx[@]}" -O2 "${strict[@]}" -o whole_early whole_early.cc -L. -lpart -Wl,-rpath,. -ldl &&
	"${cxx[@]}" -O2 "${strict[@]}" -fPIC -shared -o early.so early.cc; }; then
	bad "an early library does not compile"
fi
found=$("$causal" trace --sinks print=early -- ./whole_early 2>log) || bad "an early library: $(<log)"
check "a library that was found early" found "$found"
check "... has its events" 'burst-begin early 1 burst-end early 1' "$(told early early | xargs)"

# Without a trace, and in a sweep with one.
./events || bad "alone"
"$causal" -n 1 --trace --sinks print=sweep -o out -- ./events threads >/dev/null 2>log || bad "a sweep: $(<log)"
check "a sweep's timeline has them, too" 8000 "$(told sweep burst | grep -c begin)"
finish
