/* SPDX-License-Identifier: MIT */
/* A token over a pipe: the hand-over of pipes.c and forkpipe.c. */
#ifndef TOKEN_H
#define TOKEN_H
#include "gt.h"

/* 0: it is over. */
static inline int token_get(int fd)
{
	char c = 0;
	ssize_t r;

	while ((r = read(fd, &c, 1)) < 0 && errno == EINTR)
		;
	return r == 1 ? c : 0;
}

static inline void token_put(int fd, char c)
{
	while (write(fd, &c, 1) < 0 && errno == EINTR)
		;
}
#endif
