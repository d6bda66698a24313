#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libcausal.so: regions by name, functions of -finstrument-functions, and the tools of OpenMP and Kokkos, each
# in the call graph of a real program; wrappers.
# shellcheck source=tests/integration/check.bash
. "${CA_TOP_SRCDIR:-$PWD}/tests/integration/check.bash"

if [[ -n ${CA_SANITIZER:-} ]]; then
	echo "the library is for programs without $CA_SANITIZER"
	exit 77
fi
library=$build/.libs/libcausal.so
include=("-I$source_dir/include" -Wall -Wextra -Wpedantic -Werror -O1 -g)
link=("-L$build/.libs" -lcausal "-Wl,-rpath,$build/.libs" -pthread)

# traced COMMAND...: its call graph, row by row: "a > b count", and its events
traced() {
	"$causal" trace --events user --throttle 0 --sinks callgraph=graph.json,print=events -- "$@" >said 2>errors ||
		bad "$*: status $?: $(<said) $(<errors)"
	"$python" - <<'PY' >rows
import json
found = {}
for thread in json.load(open("graph.json", encoding="utf-8"))["causal"]["wall_clock"]["threads"]:
    stack = []
    for row in thread["graph"]:
        stack[row["depth"]:] = [row["prefix"]]
        name = " > ".join(stack)
        found[name] = found.get(name, 0) + row["entry"]["laps"]
for name in sorted(found):
    print(name, found[name])
PY
}
row() { sed -n "s/^$1 \([0-9]*\)$/\1/p" rows; }
at_value() { sed -n "s/.* point $1 //p" events | paste -sd' '; }

# ---- the program's own
"${cc[@]}" -std=gnu17 "${include[@]}" "$source_dir/examples/user.c" "${link[@]}" -o user || bad "user.c does not compile"
"${cc[@]}" -std=gnu17 "${include[@]}" -DCAUSAL_OPTIONAL "$source_dir/examples/user.c" -pthread -o optional ||
	bad "user.c does not compile without the library"
"${cxx[@]}" -x c++ -std=c++17 "${include[@]}" -DCAUSAL_OPTIONAL "$source_dir/examples/user.c" -pthread -o optional++ ||
	bad "user.c does not compile as C++"
lacks "the library is not needed" libcausal "$(ldd optional)"
check "without it, nothing happens" "no binding" "$(./optional 2>&1)"
check "... in C++ as well" "no binding" "$(./optional++ 2>&1)"
expected='child 1
custom 1
io\/read 1
outer 1
phase 0 1
phase 1 1
phase 2 1
solve 1'
for how in ./user "env LD_PRELOAD=$library ./optional"; do
	# shellcheck disable=SC2086 # words
	traced $how
	check "$how: regions; what was switched off is not there" "${expected//\\/}" "$(<rows)"
	check "$how: a callback, and an error" "push custom"$'\n'"push "$'\n'"bad value" "$(<said)"
	check "$how: annotations" "-7 1500000 1" \
		"$(at_value solve.count) $(at_value solve.ratio) $(at_value solve.kind=dense)"
	check "$how: progress" "1 1 1" "$(at_value phase)"
done
check "without causal it only runs" "push custom"$'\n'"push "$'\n'"bad value" "$(./user 2>&1)"
"$causal" trace --events=user,-:io/ --sinks print=events -- ./user >said 2>errors
check "a category is left out" 0 "$(grep -c io/ events)"
"$causal" -q -e -n 1 -s 0 -o sweep -- ./user >said 2>errors
contains "in a sweep its progress is counted" '"visits":3,' "$(cat sweep/run-*.jsonl)"

# ---- -finstrument-functions
for compiler in "${cc[*]}" clang; do
	# shellcheck disable=SC2206 # words
	words=($compiler)
	command -v "${words[-1]}" >/dev/null || continue
	"${words[@]}" -g -O0 -finstrument-functions "$source_dir/examples/functions.c" "${link[@]}" -o instrumented ||
		bad "$compiler: -finstrument-functions"
	./instrumented || bad "$compiler: without causal: status $?"
	traced ./instrumented
	check "$compiler: calls in calls" "1 1 2" "$(row main) $(row 'main > fib') $(row 'main > fib > fib')"
	check "$compiler: all of them" 177 "$(sed -n 's/^main > fib.* \([0-9]*\)$/\1/p' rows | paste -sd+ | bc)"
	check "$compiler: of threads, and in handlers" "4 400" "$(row work) $(row 'work > handle')"
done
printf 'namespace space { struct thing { __attribute__((noinline)) int get(int n) { return n + 1; } }; }\n%s\n' \
	'int main(int n, char **) { return space::thing().get(n) - n - 1; }' >names.cpp
"${cxx[@]}" -g -O0 -finstrument-functions names.cpp "${link[@]}" -o names || bad "C++: -finstrument-functions"
traced ./names
check "names of C++ are readable" 1 "$(row 'main > space::thing::get(int)')"
strip names
traced ./names
at_least "... and without symbols there are addresses" 2 "$(grep -c '^names+0x.* 1$\|^main\|> names+0x' rows)"

# ---- wrappers
cat >expected <<'END'
plain 2.71828182845905
exp(1) = 2.71828182845905
exp(2) = 7.38905609893065
plain 2.71828182845905
rough 2.71828174591064
exp(1) = 2.71828174591064
exp(1) = 2.71828182845905
plain 2.71828182845905
twice(21) = 42
plain 84
2
END
for flags in '' '-Wl,-z,now -Wl,-z,relro' '-fno-plt -no-pie' -Wl,-z,lazy; do
	# shellcheck disable=SC2086 # words
	"${cc[@]}" -std=gnu17 "${include[@]}" -O2 $flags "$source_dir/examples/wrap.c" "${link[@]}" -lm -o wrap ||
		bad "wrap.c does not compile with '$flags'"
	check "wrappers: '$flags'" "$(<expected)" "$(./wrap 2>errors)"
	check "... and what they wrap does its work" 2 "$(grep -c '^wrapped: \|^plain: ' errors)"
done
"${cxx[@]}" -x c++ -std=c++17 "${include[@]}" "$source_dir/examples/wrap.c" "${link[@]}" -lm -o wrap++ || bad "wrap.c does not compile as C++"
check "wrappers in C++" "$(<expected)" "$(./wrap++ 2>errors)"
check "under causal" "$(<expected)" "$("$causal" trace -q --sinks print=/dev/null -- ./wrap 2>errors)"

# ---- wrappers of functions that nobody imports: their own code is changed meanwhile
cat >expected <<'END'
twice: 0, 42, before 1, after 1, last 42
twice: 0, 18, before 2, after 2, last 10
its code: as it was
fib: 55, its own calls as well
noisy: 0, 2, before 1, after 1, last 2
many: 0, 55, before 0, after 0, last 0
sum 3628855
large 13, sum 26
replaced 1002, seen 1002, 4, 6
threads: wrong 0
leaf: ENOTSUP, as it was
looped: ENOTSUP, as it was
twin: ENOTUNIQ, as it was
wrapped.c:twin: 0, 2 3, before 1
wrapped.c:no_such_function: ENOENT, as it was
END
cp "$source_dir/tests/apps/wrapped.c" other.c
for how in "${cc[*]} -O2" "${cc[*]} -O0 -no-pie -fno-pie" "${cc[*]} -O3 -fcf-protection" "clang -O2"; do
	# shellcheck disable=SC2206 # words
	words=($how)
	command -v "${words[0]}" >/dev/null || continue
	rm -f wrapped
	"${words[@]}" -std=gnu17 "${include[@]}" -DOTHER -c other.c
	"${words[@]}" -std=gnu17 "${include[@]}" -Wno-pedantic "$source_dir/tests/apps/wrapped.c" other.o "${link[@]}" -o wrapped ||
		bad "wrapped.c does not compile with $how"
	check "own functions wrapped: $how" "$(<expected)" "$(./wrapped 2>errors)"
	contains "... a refusal says why" "leaf cannot be wrapped: " "$(<errors)"
	check "... not where a trap would kill a thread" "fib: EAGAIN, as it was" "$(./wrapped blocked 2>errors)"
done
check "... under causal trace" "$(<expected)" "$("$causal" trace -q --sinks callgraph=/dev/null -- ./wrapped 2>errors)"
# which changes code, too: what a test sees there may be causal's
check "... in a sweep" "$(<expected)" \
	"$("$causal" -q -n 1 -s 50 -P fib -F '^(twice|fib)$' -o wrapped.out -- ./wrapped 2>errors | sed 's/changed$/as it was/')"
strip wrapped
contains "... not without symbols" "twice: ENOENT, 42" "$(./wrapped once 2>&1)"

# ---- OpenMP
if command -v clang >/dev/null && clang -fopenmp -O1 -g "$source_dir/examples/openmp.c" -o omp 2>/dev/null; then
	OMP_TOOL_LIBRARIES=$library ./omp >said 2>&1 || bad "OpenMP without causal: $(<said)"
	export OMP_TOOL_LIBRARIES=$library
	traced ./omp
	unset OMP_TOOL_LIBRARIES
	check "parallel regions, by the function that has them" 5 "$(row 'omp parallel: main')"
	check "each in two threads" 10 "$(sed -n 's/^\(.* > \)\?omp team \([0-9]*\)$/\2/p' rows | paste -sd+ | bc)"
	check "loops" 10 "$(sed -n 's/.*omp loop \([0-9]*\)$/\1/p' rows | paste -sd+ | bc)"
	check "tasks" 50 "$(sed -n 's/.*task \([0-9]*\)$/\1/p' rows | paste -sd+ | bc)"
	at_least "waits at barriers" 10 "$(sed -n 's/.*omp barrier \([0-9]*\)$/\1/p' rows | paste -sd+ | bc)"
	check "threads that were asked for" "2 2 2 2 2" "$(at_value 'omp threads')"
	OMP_TOOL_LIBRARIES=$library "$causal" -q -e -n 1 -s 0 -o omp-sweep -- ./omp >said 2>errors
	contains "regions and tasks are progress points" '"visits":55,' "$(cat omp-sweep/run-*.jsonl)"
else
	skip "OpenMP: there is no clang with libomp"
fi

# ---- Kokkos
"${cc[@]}" "${include[@]}" -Wno-pedantic "$source_dir/tests/apps/kokkos_hooks.c" -ldl -o kokkos || bad "kokkos_hooks.c does not compile"
KOKKOS_TOOLS_LIBS=$library ./kokkos >said 2>&1 || bad "Kokkos without causal: $(<said)"
export KOKKOS_TOOLS_LIBS=$library
traced ./kokkos
unset KOKKOS_TOOLS_LIBS
hooked='timestep 1
timestep > kokkos copy: Cuda to from Host from 1
timestep > kokkos fence: wait 1
timestep > kokkos for: axpy 3
timestep > kokkos for: axpy > kokkos reduce: dot 3
timestep > kokkos scan: prefix 1
timestep > section 1'
check "Kokkos: its regions" "$hooked" "$(<rows)"
check "... and memory" "800 800 4096" \
	"$(at_value 'kokkos allocated in Host') $(at_value 'kokkos freed in Host') $(at_value 'kokkos copied bytes')"
# the real one where it is (Debian: libtrilinos-kokkos-dev, which is too much for CI), else a small one
kokkos=("-I$source_dir/tests/apps" -ldl)
for folder in /usr/include/trilinos /usr/include; do
	[[ ! -e $folder/Kokkos_Core.hpp ]] || kokkos=("-I$folder" -lkokkoscore)
	[[ ! -e $folder/Kokkos_Core.hpp || $folder == /usr/include ]] || kokkos=("-I$folder" -ltrilinos_kokkoscore)
done
"${cxx[@]}" -std=c++17 -O1 "$source_dir/examples/kokkos.cpp" "${kokkos[@]}" -o kokkos++ || bad "kokkos.cpp does not compile"
export KOKKOS_TOOLS_LIBS=$library KOKKOS_PROFILE_LIBRARY=$library
traced ./kokkos++
unset KOKKOS_TOOLS_LIBS KOKKOS_PROFILE_LIBRARY
check "Kokkos: a program" "3 3 3" "$(row step) $(row 'step > kokkos for: axpy') $(row 'step > kokkos reduce: sum')"
finish
