/* SPDX-License-Identifier: MIT */
/* A server thread that waits by epoll for two client threads of its own process, over TCP on
 * loopback (serve-tcp) or event descriptors (serve-eventfd). A client prepares for 100 (region
 * prepare), asks, waits for the answer. The server takes 1500 (region answer) and 60 (region
 * rest) for each.
 *
 * Expected: the server is the bottleneck, the clients only fill it. answer: X 1500 / (1560 and
 * the system calls), about 0.95 X. */
#include "gt.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

GT_DEFINE_REGION(answer)
GT_DEFINE_REGION(rest)
GT_DEFINE_REGION(prepare)

enum { CLIENTS = 2 };
static struct link {
	int ask[2], answer[2]; /* [0] is read, [1] written */
} links[CLIENTS];

/* An eventfd wants eight bytes, and to a socket they are as good. */
static void put(int fd, uint64_t value)
{
	while (write(fd, &value, sizeof value) < 0 && errno == EINTR)
		;
}

static uint64_t get(int fd)
{
	uint64_t value = 0;

	while (read(fd, &value, sizeof value) < 0 && errno == EINTR)
		;
	return value;
}

static void *client(void *p)
{
	struct link *link = p;
	uint64_t n = gt_amount("prepare", 100);

	while (!atomic_load(&gt_stop)) {
		region_prepare(n); /* GT_REGION prepare */
		put(link->ask[1], 1);
		get(link->answer[0]);
	}
	put(link->ask[1], 2); /* the last */
	return NULL;
}

static void *server(void *p)
{
	uint64_t na = gt_amount("answer", 1500), nr = gt_amount("rest", 60);
	int epoll = epoll_create1(EPOLL_CLOEXEC), left = CLIENTS;
	struct epoll_event event[CLIENTS];

	for (int i = 0; i < CLIENTS; i++) {
		event[0] = (struct epoll_event){ .events = EPOLLIN, .data.ptr = &links[i] };
		epoll_ctl(epoll, EPOLL_CTL_ADD, links[i].ask[0], &event[0]);
	}
	while (left > 0) {
		int n = epoll_wait(epoll, event, CLIENTS, -1);

		for (int i = 0; i < n; i++) {
			struct link *link = event[i].data.ptr;

			if (get(link->ask[0]) != 1) {
				left--;
				continue;
			}
			region_answer(na); /* GT_REGION answer */
			region_rest(nr);   /* GT_REGION rest */
			GT_VISIT();
			put(link->answer[1], 1);
		}
	}
	close(epoll);
	return p;
}

static int open_tcp(struct link *link)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), ours = socket(AF_INET, SOCK_STREAM, 0), theirs;
	socklen_t size = sizeof address;
	int one = 1;

	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    connect(ours, (struct sockaddr *)&address, size))
		return 1;
	theirs = accept(listener, NULL, NULL);
	setsockopt(ours, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(theirs, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	close(listener);
	*link = (struct link){ { theirs, ours }, { ours, theirs } };
	return theirs < 0;
}

static int open_eventfd(struct link *link)
{
	int ask = eventfd(0, 0), answer = eventfd(0, 0);

	*link = (struct link){ { ask, ask }, { answer, answer } };
	return ask < 0 || answer < 0;
}

int main(int argc, char **argv)
{
	pthread_t thread[CLIENTS + 1];
	int tcp = !strcmp(gt_variant(), "tcp");

	gt_start(argc, argv, "answer");
	for (int i = 0; i < CLIENTS; i++)
		if (tcp ? open_tcp(&links[i]) : open_eventfd(&links[i]))
			return 1;
	pthread_create(&thread[CLIENTS], NULL, server, NULL);
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&thread[i], NULL, client, &links[i]);
	gt_wait();
	for (int i = 0; i <= CLIENTS; i++)
		pthread_join(thread[i], NULL);
	return gt_report();
}
