#!/bin/bash
# SPDX-License-Identifier: MIT
# Two ranks of a real MPI library, which wait for each other by looking at memory: what is paid before their calls and
# forgiven in them, and what an effect is then.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
needs_runtime
if ! command -v mpicc >/dev/null || ! command -v mpirun >/dev/null; then
	skip "no MPI (Debian: openmpi-bin, libopenmpi-dev)"
	finish
fi
# mpirun asks for it, where we are root
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Rank 0 works for 300 us, the other one for 150, then they meet; by a reduction, or by a message to and fro.
cat >ranks.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static void work(long us)
{
	unsigned long x = 3;

	for (long i = 0; i < 750 * us; i++)
		__asm__ volatile("imul $3, %0, %0" : "+r"(x));
}
__attribute__((noinline)) void heavy(void) { work(300); __asm__ volatile(""); }
__attribute__((noinline)) void light(void) { work(150); __asm__ volatile(""); }
int main(int argc, char **argv)
{
	double mine = 1, sum = 0;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 4000; i++) {
		rank ? light() : heavy();
		if (argc < 2)
			MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		else
			MPI_Sendrecv(&mine, 1, MPI_DOUBLE, !rank, 0, &sum, 1, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
	}
	if (!rank)
		printf("sum %g\n", argc < 2 ? sum : 2 * sum);
	MPI_Finalize();
	return 0;
}
C
if ! mpicc -g -O2 ranks.c -o ranks || ! timeout 60 mpirun --oversubscribe -np 2 ./ranks >out 2>err; then
	skip "MPI does not run here: $(tail -n 3 err | tr '\n' ' ')"
	finish
fi
check "alone" "sum 2" "$(cat out)"

# Half of rank 0's 300 us is half of the loop, of which MPI's beginning and end are no part.
for how in "" sendrecv; do
	ok=
	for try in 1 2 3; do
		rm -rf results
		# shellcheck disable=SC2086
		timeout 100 "$causal" -e -n 3 -s 0,50 -B ranks -F '^heavy$' -o results -- mpirun --oversubscribe -np 2 \
			./ranks $how >out 2>err
		effect=$(tr -d ' \n' <results/profile.json | sed -n 's/.*"speedup":50,"effect":\([-0-9.]*\).*/\1/p')
		share=$(grep -h '"type":"experiment"' results/run-*.jsonl | grep '"speedup":0.0' |
			sed 's/.*"start":\([0-9]*\),"end":\([0-9]*\),.*"s_time":\([0-9]*\).*/\1 \2 \3/' |
			awk '{ s += $3; t += $2 - $1 } END { print t ? 50 * s / t : 0 }')
		if awk -v e="${effect:-none}" -v most="$share" 'BEGIN { exit !(e != "none" && most > 20 && e >= most - 8 && e <= most + 4) }'; then
			ok=yes
			break
		fi
		echo "try $try ${how:-allreduce}: ${effect:-no} % for $share"
	done
	check "... under causal, the same" "sum 2" "$(sort -u out | tr -d '\r')"
	if [[ ! $ok ]] && starved 90 results; then
		skip "ranks that meet: other programs take the CPUs"
	else
		check "half of what a rank is waited for: ${how:-allreduce}" yes "$ok"
	fi
done
finish
