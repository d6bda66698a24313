/* SPDX-License-Identifier: MIT */
/* Two processes in lock-step over two pipes: the parent runs 600 (region parent), the child
 * 400 (region child). The session spans both; a pipe between them is not an external wait.
 *
 * Expected: never both at once: parent 0.6 X, child 0.4 X, less the wake-ups. */
#include "token.h"
#include <sys/wait.h>

GT_DEFINE_REGION(parent)
GT_DEFINE_REGION(child)
static int there[2], back[2];

static int child(void)
{
	uint64_t n = gt_amount("child", 400);

	while (token_get(there[0])) {
		region_child(n); /* GT_REGION child */
		token_put(back[1], 1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	gt_start(argc, argv, "parent");
	uint64_t n = gt_amount("parent", 600);

	if (pipe(there) || pipe(back) || (pid = fork()) < 0)
		return 1;
	if (pid == 0)
		exit(child());
	while (!gt_expired()) {
		region_parent(n); /* GT_REGION parent */
		token_put(there[1], 1);
		token_get(back[0]);
		GT_VISIT();
	}
	token_put(there[1], 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return gt_report();
}
