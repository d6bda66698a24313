#!/bin/bash
# SPDX-License-Identifier: MIT
# A program that uses all that OpenMP has to share work and to wait: its results are what they are
# without us, with loops cancelled or not.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99

if ! "${cc[@]}" -std=gnu17 -D_GNU_SOURCE -g -O2 -fopenmp -I"$source_dir" -I"$source_dir/include" \
	"$source_dir/tests/apps/openmp.c" -o openmp 2>cc.err || ! OMP_CANCELLATION=true ./openmp >/dev/null 2>&1; then
	echo "${cc[*]} has no OpenMP, or not all of it"
	exit 77
fi
# with_it PROGRAM OPTION...
with_it() {
	local program=$1 what="$*, cancellation $OMP_CANCELLATION"
	shift
	profile "$@" -B MAIN -s 0,50,90 -- "./$program"
	check "$what: exit status" 0 "$status"
	explain 0
	check "$what: output" "openmp: good" "$(cat out)"
	at_least "$what: visits" 1 "$(total visits)"
}

find_backends
for backend in "${backends[@]}"; do
	for OMP_CANCELLATION in false true; do
		export OMP_CANCELLATION
		with_it openmp -b "$backend"
	done
done
# Who a team waits for is on the critical path, also where it is not the main thread.
cat >team.c <<'END'
#include <omp.h>
static volatile double sum;
__attribute__((noinline)) static void work(long n)
{
	for (long i = 0; i < n; i++)
		sum += (double)i;
}
__attribute__((noinline)) static void heavy(void) { work(12000000); }
__attribute__((noinline)) static void light(void) { work(2000000); }
int main(void)
{
	for (int i = 0; i < 20; i++)
#pragma omp parallel num_threads(2)
		omp_get_thread_num() ? heavy() : light();
	return 0;
}
END
"${cc[@]}" -g -O1 -fno-optimize-sibling-calls -fopenmp team.c -o team || exit 99
export OMP_WAIT_POLICY=passive
for try in 1 2 3; do
	rm -rf profile
	"$causal" sample -o profile -- ./team >out 2>err
	path=$(awk '$7 == "heavy" { print int($6) }' err)
	((${path:-0} >= 80)) && break
	echo "try $try: heavy is ${path:-nothing} % of the critical path"
done
at_least "share of the critical path of the one who comes last" 80 "${path:-0}"
unset OMP_WAIT_POLICY
# Waiting is no work of who has called OpenMP's code: neither row nor share, but a line that says so.
if [[ ${backends[0]} == perf ]]; then
	rm -rf profile
	OMP_WAIT_POLICY=active "$causal" -n 2 -s 0,50 -o profile -- ./team >out 2>err
	contains "what the team waits is told" "CPU time OpenMP's threads wait for each other" "$(cat err)"
	lacks "... and is nobody's row" "libgomp.so!" "$(cat err)"
fi
# libomp has entry points of its own; cancelled loops of this program hang in it, also alone
export OMP_CANCELLATION=false
if clang -std=gnu17 -D_GNU_SOURCE -g -O2 -fopenmp -I"$source_dir" -I"$source_dir/include" \
	"$source_dir/tests/apps/openmp.c" -o openmp_llvm 2>cc.err && timeout 20 ./openmp_llvm >/dev/null 2>&1; then
	with_it openmp_llvm
else
	skip "no clang with OpenMP"
fi
finish
