#!/bin/bash
# SPDX-License-Identifier: MIT
# A server whose load is a part of the run (--load): when the load begins, how both end, and that virtual speedups
# hold it back.
# shellcheck source=tests/integration/rt.bash
source "${CA_TOP_SRCDIR:-$PWD}/tests/integration/rt.bash" || exit 99
export CAUSAL_EXPERIMENT_MIN=0.1

# server: listens, writes its port to the file `port`, and does 200 us of work per byte that it answers.
# between: hands on what a client asks. client N [much | by way]: asks N times, with 100 us of work in between; much:
# for 64 KiB each, with no work; by way: of that. -N: then the server is to end, with the ns that an answer took in the
# file `took`.
cat >peer.c <<'C'
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static void work(long ns)
{
	unsigned long x = 3;

	for (long i = 0; i < ns; i++)
		__asm__ volatile("imul $3, %0, %0" : "+r"(x));
}
__attribute__((noinline)) void serve(void) { work(200000); __asm__ volatile(""); }
__attribute__((noinline)) void think(void) { work(100000); __asm__ volatile(""); }
static char much[65536];
__attribute__((noinline)) long answer(int fd)
{
	long done = 0, n;

	while (done < (long)sizeof much && (n = write(fd, much + done, sizeof much - (unsigned long)done)) > 0)
		done += n;
	return done;
}
static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}
static int server(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	long took = 0, n = 0;
	FILE *file;
	char c;

	remove("port"); /* of the run before */
	if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&at, &size) || !(file = fopen("port.new", "w")))
		return 9;
	fprintf(file, "%d\n", ntohs(at.sin_port));
	fclose(file);
	rename("port.new", "port");
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		while (read(fd, &c, 1) == 1) {
			if (c == 'q') {
				file = fopen("took", "w");
				fprintf(file, "%ld\n", n ? took / n : 0);
				fclose(file);
				return 5;
			}
			if (c == 'm') {
				took -= now();
				answer(fd);
				took += now();
				n++;
				continue;
			}
			serve();
			if (write(fd, &c, 1) != 1)
				break;
		}
		close(fd);
	}
}
/* To whoever has written its port there; -1: he is not there. */
static int connect_by(const char *name)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), port = 0;
	FILE *file;

	for (int i = 0; i < 200 && !(file = fopen(name, "r")); i++)
		usleep(10000);
	if (!file || fscanf(file, "%d", &port) != 1)
		return -1;
	fclose(file);
	at.sin_port = htons((unsigned short)port);
	return connect(fd, (struct sockaddr *)&at, sizeof at) ? -1 : fd;
}
/* One byte there, one back. */
static int between(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	FILE *file = fopen("between", "w");
	char c;

	if (!file || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&at, &size))
		return 9;
	fprintf(file, "%d\n", ntohs(at.sin_port));
	fclose(file);
	for (;;) {
		int in = accept(listener, NULL, NULL), out = connect_by("port");

		while (read(in, &c, 1) == 1 && write(out, &c, 1) == 1 && read(out, &c, 1) == 1 &&
		       write(in, &c, 1) == 1)
			;
		close(in);
		close(out);
	}
}
static int client(long rounds, int wants_much, const char *by)
{
	int fd = connect_by(by);
	char c = 'a';

	if (fd < 0)
		return 7;
	for (long i = 0; i < labs(rounds); i++) {
		if (wants_much) {
			if (write(fd, "m", 1) != 1 || recv(fd, much, sizeof much, MSG_WAITALL) != sizeof much)
				return 6;
			continue;
		}
		think();
		if (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1)
			return 6;
	}
	if (rounds < 0 && write(fd, "q", 1) == 1)
		pause();
	return 0;
}
int main(int argc, char **argv)
{
	if (argc == 2)
		return between();
	return argc > 2 ? client(atol(argv[2]), argc == 4, argc > 4 ? "between" : "port") : server();
}
C
"${cc[@]}" -g -O2 -D_GNU_SOURCE -o peer peer.c || exit 1
# serves OPTION...: one run after the other, each server with a new port
serves() {
	rm -rf port results
	timeout 100 "$causal" -o results "$@" -- ./peer 2>err
}
left() { pgrep -f '^./peer' | wc -l; }

"$causal" --single --load true -- ./peer 2>err
check "there is none with --single" 2 $?
contains "... and it is said" "leave out one of them" "$(cat err)"
"$causal" sample --load true -- ./peer 2>err
check "nor for samples alone" 2 $?

# who speaks in TCP is known on both sides, so that nothing here is a wait for the world outside
serves -n 1 --load './peer client 2000'
check "a load that ends, ends its server" "0 0" "$? $(left)"
check "... whose end is no failure" 1 "$(grep -c '"type":"end","exit_status":0' results/run-0001.jsonl)"
lacks "... and nothing is said of either" "load" "$(cat err)"
serves -d 60 --load './peer client 2000'
contains "... but where it was to go on for longer" "the load has come to its end" "$(cat err)"

serves -n 2 --load './peer client 100; exit 3'
check "a load that fails ends the sweep" "3 1 0" "$? $(find results -name 'run-*' | wc -l) $(left)"
contains "... and it is said" "the load has ended with exit status 3: ./peer client 100; exit 3" "$(cat err)"

serves -n 1 --load './peer client -100'
check "a server that ends first gives its status" "5 0" "$? $(left)"
contains "... and it is said" "the server has ended before its load" "$(cat err)"

# A command by a link is called as the user calls it, in what is told and in what is asked.
ln -s peer named
rm -rf port results
timeout 100 "$causal" -o results -n 1 -B MAIN -P auto --load './peer client 12000' -- ./named 2>err
contains "a point that is found has the link's name" "progress point named!" "$(cat err)"
rm -rf port results
timeout 100 "$causal" -o results -n 1 -B MAIN -P 'named!serve' --load './peer client 2000' -- ./named 2>err
at_least "... by which it can be named" 1 "$(total visits)"

# A write with room is work, also to somebody of the run: S goes on.
for try in 1 2 3; do
	serves -n 1 -B MAIN -P '^answer$' -F '^answer$' -s 0 --load './peer client -80000 much'
	took=$(<took)
	per=$(grep -h '"type":"experiment"' results/run-0001.jsonl | grep '"hits":[1-9]' |
		sed 's/.*"s_time":\([0-9]*\).*"hits":\([0-9]*\).*/\1 \2/' | awk '{ t += $1; n += $2 } END { print n ? int(t / n) : 0 }')
	((10 * per > 7 * took && 10 * per < 13 * took)) && break
	echo "try $try: $per ns of S for $took ns"
done
check "a write to the load is S's own" yes "$( ((10 * per > 7 * took && 10 * per < 13 * took)) && echo yes)"

serves -n 1 --load "trap '' TERM; sleep 4711 & ./peer client 2000"
check "nothing of a load is left, whatever it ignores" 0 "$(pgrep -fc '^sleep 4711')"
CAUSAL_IS_LOAD=1 serves -n 1 -B MAIN --load './peer client 4000'
at_least "a sweep that a load starts is one of its own" 1 "$(total in_scope)"

unset CAUSAL_ITERATIONS
timeout 100 "$causal" -n 1 -o early --load true -- true 2>err
contains "a program that ends at once is no server" "has ended before it listened" "$(cat err)"

serves --budget 3 --load './peer client 1000000'
check "when the budget is spent both end" "0 0" "$? $(left)"
lacks "... and nothing runs on" "runs on undisturbed" "$(cat err)"

rm -f port
timeout -s INT 3 "$causal" --budget 60 -o int --load './peer client 1000000' -- ./peer 2>err
check "an interrupt ends both" 0 "$(left)"

# effect_is LOW HIGH TEXT COMMAND...: what half of the server's work wins on one core, in turns with its load
effect_is() {
	local low=$1 high=$2 text=$3 try effect ok=
	shift 3
	for try in 1 2 3; do
		rm -rf port results
		timeout 100 taskset -c 0 "$causal" -o results --max-runs 1 --budget 8 -s 0,50 -B MAIN \
			--load "$*" -- ./peer 2>err
		effect=$(tr -d ' \n' <results/profile.json | sed -n 's/.*"speedup":50,"effect":\([-0-9.]*\).*/\1/p')
		if awk -v e="${effect:-none}" -v l="$low" -v h="$high" 'BEGIN { exit !(e != "none" && e >= l && e <= h) }'; then
			ok=yes
			break
		fi
		echo "try $try: ${effect:-no} %"
	done
	if [[ ! $ok ]] && starved 90 results; then
		skip "$text: other programs take the core"
	else
		check "$text" yes "$ok"
	fi
}

# Both on one core, in turns: half of 200 of 300 us and two switches.
effect_is 27 36 "a load on the server's core pays, too" ./peer client 1000000
lacks "... and reaches the server itself" "somebody between" "$(cat err)"
contains "... its own code is none of the rows" serve "$(cat err)"
lacks "... its own code is none of the rows" think "$(cat err)"
# the same by way of a process that is none of the run, with two more switches and what it takes itself
taskset -c 0 ./peer between &
between=$!
effect_is 20 36 "a load that comes by way of others does, too" ./peer client 1000000 by way
contains "... which is said" "the load is not answered by the program itself" "$(cat err)"
kill "$between"
finish
