#!/bin/bash
# SPDX-License-Identifier: MIT
# Progress points named on the command line: what is found, and that every visit is counted once.
# Asserts on counts, which the programs (tests/apps/visits.c and others) make known beforehand.
# shellcheck source=tests/integration/check.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash" || exit 99
needs_runtime
apps=$source_dir/tests/apps

# count OPTION... -- COMMAND: what the driver says goes to the file `said`, results into out/
count() {
	rm -rf out
	"$causal" -v 2 -o out -s 0 --experiment-min 0.05 "$@" >/dev/null 2>said
}
# visits POINT: how often it was visited
visits() { awk -v name="progress point $1" 'index($0, "causal: " name ": ") == 1 { print $(NF - 1); exit }' said; }
# line MARK: its number in visits.c
line() { echo "visits.c:$(grep -n "MARK: $1 " "$apps/visits.c" | cut -d: -f1)"; }

[[ $("${cc[@]}" -dumpmachine) == x86_64* ]] || { skip "x86-64 only"; finish; }
for level in 0 1 2 3; do
	"${cc[@]}" -g "-O$level" -o "visits$level" "$apps/visits.c" -ldl || exit 1
done
"${cc[@]}" -g -O2 -shared -fPIC -o libplugin.so.1 "$apps/visits_plugin.c" || exit 1

# ---- counts, at each level of optimisation
for level in 0 1 2 3; do
	count -P "$(line third)" -P "$(line call)" "$(line tiny)" -P "$(line for)" -P "$(line body)" \
		-P "$(line often)" -P "$(line seldom)" -P handle_one -P 'handle_(one|two)$' \
		-P handle_two -P leaf -P tail -P tiny -P looped -P begin=handle_one,end=handle_one \
		-P begin=tail,end=tail -P "begin=handle_two,end=$(line seldom)" -- "./visits$level"
	check "-O$level: exit status" 0 $?
	lacks "-O$level: all places are patched" "could not be" "$(cat said)"
	lacks "-O$level: all places are counted" "not counted" "$(cat said)"
	check "-O$level: a line in a branch" 1333 "$(($(visits "$(line third)") - 1000))"
	check "-O$level: a line with a call" 2000 "$(visits "$(line call)")"
	check "-O$level: a line that is inlined twice" 4000 "$(visits "$(line tiny)")"
	if ((level < 3)); then # unrolled at -O3
		check "-O$level: the head of a loop" 14000 "$(visits "$(line for)")"
	fi
	check "-O$level: a line in a loop" 2000 "$(visits "$(line body)")"
	check "-O$level: a line with a condition" 2000 "$(visits "$(line often)")"
	if ((level < 3)); then # inlined there, and peeled: one copy more than is known
		check "-O$level: a line that is seldom reached" 20 "$(visits "$(line seldom)")"
		check "-O$level: latency that ends at a line" 20 \
			"$(visits "begin=handle_two,end=$(line seldom), end")"
	fi
	check "-O$level: a function" 3500 "$(visits handle_one)"
	check "-O$level: functions of an expression" 5500 "$(visits 'handle_(one|two)$')"
	check "-O$level: another name for the same place" 2000 "$(visits handle_two)"
	check "-O$level: a function of one instruction" 1500 "$(visits leaf)"
	check "-O$level: a function that ends in a jump" 1500 "$(visits tail)"
	check "-O$level: an inlined function" 4000 "$(visits tiny)"
	check "-O$level: a function with a loop" 2000 "$(visits looped)"
	check "-O$level: latency, begin" 3500 "$(visits begin=handle_one,end=handle_one,\ begin)"
	check "-O$level: latency, end" 3500 "$(visits begin=handle_one,end=handle_one,\ end)"
	check "-O$level: latency with a tail call, begin" 1500 "$(visits begin=tail,end=tail,\ begin)"
	check "-O$level: latency with a tail call, end" 1500 "$(visits begin=tail,end=tail,\ end)"
done

# ---- in the profile
count -P handle_one -P begin=handle_two,end=handle_two --experiment-min 0.2 -- ./visits1
contains "throughput in the records" '"point":"handle_one"' "$(tr -d ' ' <out/run-0001.jsonl)"
contains "latency in the records" 'begin=handle_two,end=handle_two' "$(cat out/run-0001.jsonl)"
contains "in the profile" 'handle_one' "$(cat out/profile.json)"
contains "in the profile for Coz" 'name=handle_one' "$(cat out/profile.coz)"

# ---- a function that is a progress point and selected at the same time stays exact
count -P pass -F '^pass$' --experiment-min 0.1 -- ./visits1
check "point and selection in one function: counted" 21 "$(visits pass)"
contains "... and exact" '"exact":true' "$(tr -d ' ' <out/run-0001.jsonl)"
lacks "... always" '"exact":false' "$(tr -d ' ' <out/run-0001.jsonl)"

# ---- where names come from
CAUSAL_PROGRESS="handle_one;$(line call)" count -- ./visits1
check "from the environment" "3500 2000" "$(visits handle_one) $(visits "$(line call)")"
COZ_PROGRESS_POINTS=$(line call)$'\t'$(line tiny) count -- ./visits1
check "from Coz's variable" "2000 4000" "$(visits "$(line call)") $(visits "$(line tiny)")"
count -P "$(realpath "$apps")/$(line call)" "apps/$(line call)" -- ./visits1
check "by more of the path" "2000 2000" \
	"$(visits "$(realpath "$apps")/$(line call)") $(visits "apps/$(line call)")"

# ---- libraries, opened late
count -P 'libplugin.so!plugged' 'libplugin.so.1!visits_plugin.c:7' -- ./visits2 ./libplugin.so.1
check "a function of a library" 2000 "$(visits 'libplugin.so!plugged')"
check "a line of a library" 2000 "$(visits 'libplugin.so.1!visits_plugin.c:7')"
# ---- and those that are there from the start: before main
"${cc[@]}" -g -O2 -o linked -xc - -x none ./libplugin.so.1 -Wl,-rpath,"$work" <<'C' || exit 1
#include <unistd.h>
int plugged(int n);
int main(void)
{
	int sum = 0;

	for (int i = 0; i < 2000; i++)
		sum += plugged(i);
	usleep(300000);
	return sum == 0;
}
C
count -P 'libplugin.so!plugged' -- ./linked
check "a function of a linked library, from the first call on" 2000 "$(visits 'libplugin.so!plugged')"

# ---- stripped: functions of the dynamic symbol table at least
strip -o stripped visits1
"${cc[@]}" -g -O1 -rdynamic -o dynamic "$apps/visits.c" -ldl && strip dynamic
count -P handle_one -- ./dynamic
check "a stripped program's exported function" 3500 "$(visits handle_one)"
entry=0x$(nm visits1 | sed -n 's/^0*\([0-9a-f]*\) . handle_one$/\1/p')
count -P handle_one+0x0 "$entry" -- ./visits1
check "an instruction of a function" 3500 "$(visits handle_one+0x0)"
check "an address" 3500 "$(visits "$entry")"
count -P "$entry" -- ./stripped
check "an address of a stripped program" 3500 "$(visits "$entry")"
count -P handle_one+0x10000 -- ./visits1
check "no such instruction: exit status" 2 $?
count -P "$(line call)" -- ./stripped
check "a line of a stripped program: exit status" 2 $?
contains "... and why" "-g" "$(cat said)"

# ---- C++
cat >names.cc <<'CXX'
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace ns {
struct counter {
	int value;
	__attribute__((noinline)) int get(int n) const
	{
		if (n % 2)
			throw std::runtime_error("odd");
		return value + n;
	}
};
template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }
}
thread_local volatile int sink;
static void run()
{
	ns::counter c{3};

	for (int i = 0; i < 2000; i++) {
		try {
			sink = c.get(i);
		} catch (std::exception &) {
			sink = 1; // MARK: caught
		}
		sink = ns::twice(i);
		sink = (int)ns::twice((long)i);
	}
	usleep(300000);
}
int main()
{
	std::thread a(run), b(run);

	a.join();
	b.join();
}
CXX
if "${cxx[@]}" -g -O2 -pthread -o names names.cc 2>/dev/null; then
	caught=names.cc:$(grep -n 'MARK: caught' names.cc | cut -d: -f1)
	count -P ns::counter::get 'ns::counter::get(int) const' ns::twice 'int ns::twice<int>' \
		"$caught" \
		begin=ns::counter::get,end=ns::counter::get -- ./names
	check "C++: a method, in two threads" 4000 "$(visits ns::counter::get)"
	check "C++: with its parameters" 4000 "$(visits 'ns::counter::get(int) const')"
	check "C++: all instances of a template" 8000 "$(visits ns::twice)"
	check "C++: one of them" 4000 "$(visits 'int ns::twice<int>')"
	check "C++: a handler of exceptions" 2000 "$(visits "$caught")"
	check "C++: a call that throws does not return" 2000 \
		"$(visits 'begin=ns::counter::get,end=ns::counter::get, end')"
else
	skip "C++ (no compiler)"
fi

# ---- probes
if echo '#include <sys/sdt.h>' | "${cc[@]}" -fsyntax-only -xc - 2>/dev/null; then
	"${cc[@]}" -g -O2 -o probes "$apps/probes.c" || exit 1
	count -P usdt:visits:item usdt:visits:guarded -- ./probes
	check "a probe" 2000 "$(visits usdt:visits:item)"
	check "a probe that is passed only if somebody listens" 2000 "$(visits usdt:visits:guarded)"
	count -P usdt:visits:itme usdt:visits:item -- ./probes
	contains "a misspelt probe" "'usdt:visits:itme'" "$(cat said)"
else
	skip "USDT: there is no sys/sdt.h (Debian: systemtap-sdt-dev)"
fi
"${cc[@]}" -g -O2 -I"$source_dir/include" -o macros "$apps/macros.c" || exit 1
count -P usdt:causal:item "macros.c:$(grep -n 'MARK: macro' "$apps/macros.c" | cut -d: -f1)" -- ./macros
check "a macro's probe" 2000 "$(visits usdt:causal:item)"
check "... and the macro's own point" 2000 "$(visits item)"

# ---- what is not there
count -P handel_one -- ./visits1
check "nothing is found: exit status" 2 $?
contains "... with the nearest name" "did you mean handle_one?" "$(cat said)"
count -P handel_one -P handle_one -- ./visits1
check "something is found: exit status" 0 $?
contains "... with the nearest name" "'handel_one': not in" "$(cat said)"
check "... the other one counts" 3500 "$(visits handle_one)"
count -n 3 -P handel_one -P handle_one -- ./visits1
check "... said once" 1 "$(grep -c "'handel_one': not in" said)"
count -P visits.c:99999 -- ./visits1
check "a line without code: exit status" 2 $?
count -P 'libnone.so!f' -- ./visits1
check "a library that never comes: exit status" 0 $?
contains "... a warning at the end" "'libnone.so!f' is in no binary" "$(cat said)"
count -P handle_one -- sh -c ./visits1
check "started by a shell" 3500 "$(visits handle_one)"
count -P handel_one -- sh -c ./visits1
check "not found, started by a shell: exit status" 0 $?
contains "... a warning at the end" "'handel_one' is in no binary" "$(cat said)"
for wrong in usdt:x 'begin=handle_one' '*' 'lib!' 'begin=,end=handle_one'; do
	count -P "$wrong" -- ./visits1
	check "-P '$wrong': exit status" 2 $?
	check "-P '$wrong': one line" 1 "$(wc -l <said)"
done

finish
