#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that read and write streams, in a shell's pipeline: the pipes are the run's own, and code that waits in them
# is not at work.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
unset CAUSAL_ITERATIONS

# make N: writes N lines. pass US: hands each line on after so much work. take: reads all, 52 KiB at a time.
cat >stage.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static int work(double s)
{
	for (double until = now() + s; now() < until;)
		;
	return 0;
}
int make(long n)
{
	for (long i = 0; i < n; i++)
		printf("%0100ld\n", i);
	return 0;
}
int pass(double us)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		work(us / 1e6);
		fputs(line, stdout);
	}
	return 0;
}
static char block[53248];
int take(void)
{
	long lines = 0;

	for (size_t n; (n = fread(block, 1, sizeof block, stdin));)
		for (size_t i = work(0.001); i < n; i++) /* so that some of the next is there when it asks for it */
			lines += block[i] == '\n';
	printf("%ld\n", lines);
	return 0;
}
int main(int argc, char **argv)
{
	return argc < 2 ? take() : !strcmp(argv[1], "make") ? make(atol(argv[2])) : pass(atof(argv[2]));
}
C
"${cc[@]}" -g -O1 -fno-inline -o stage stage.c || exit 1
cat >lines.sh <<'E2'
./stage make 20000 | ./stage pass 20 | ./stage
E2
# runs OPTION...
runs() {
	rm -rf results
	timeout -k 1 60 "$causal" -o results -n 3 -e -B stage "$@" -- sh lines.sh >out 2>err
}

# The last one mostly waits for others: while it does, nobody is held back.
runs -s 100 -F '^take$'
check "code that waits for a pipe at 100 %" "0 60000" "$? $(awk '{ n += $1 } END { print n }' out)"
at_least "... is selected" 1 "$(grep -ho '"hits":[1-9]' results/run-*.jsonl | wc -l)"
check "... and is not in S meanwhile" "" "$(grep -h '"type":"experiment"' results/run-*.jsonl |
	sed 's/.*"duration":\([0-9]*\),"s_time":\([0-9]*\).*/\1 \2/' | awk '$2 > $1 / 4')"
# The one before it is what all wait for, and works for all of the time.
runs -s 0,100 -F '^work$'
check "code in the midst of a pipeline" "0 120000" "$? $(awk '{ n += $1 } END { print n }' out)"
effect=$(tr -d ' \n' <results/profile.json | sed -n 's/.*"speedup":100,"effect":\([-0-9.]*\).*/\1/p')
check "... is worth what it takes" yes "$(awk -v e="${effect:-0}" 'BEGIN { print (e > 60 && e < 98 ? "yes" : e) }')"
finish
