/* SPDX-License-Identifier: MIT */
/* Standard input of a program that is run several times; see input.h. */
#include "driver/input.h"
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMES = 20 /* ms until whoever is before us in a shell's pipeline has written something */ };

void ca_input_open(struct ca_input *input)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	struct stat st;

	*input = (struct ca_input){ .start = -1 };
	if (fstat(STDIN_FILENO, &st))
		return;
	if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
		input->start = lseek(STDIN_FILENO, 0, SEEK_CUR);
	else if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		input->fed = poll(&in, 1, COMES) == 1 && in.revents & POLLIN;
}

void ca_input_begin(const struct ca_input *input)
{
	if (input->start >= 0)
		lseek(STDIN_FILENO, input->start, SEEK_SET);
}

bool ca_input_is_used_up(const struct ca_input *input)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int left = 0;

	/* a pipe's end is POLLHUP, a socket's a read of nothing */
	return input->fed && poll(&in, 1, 0) == 1 && in.revents & (POLLIN | POLLHUP) &&
	       ioctl(STDIN_FILENO, FIONREAD, &left) == 0 && left == 0;
}

const char *ca_input_path(char path[CA_INPUT_PATH])
{
	struct stat st;

	if (fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode))
		return "/dev/null";
	snprintf(path, CA_INPUT_PATH, "/proc/%d/fd/0",
		 (int)getpid()); /* whoever opens that has closed its own */
	return path;
}
