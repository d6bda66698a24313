/* SPDX-License-Identifier: MIT */
/* A look at the threads of this process before text changes under them. Handler-safe: raw
 * system calls and the stack. 10 to 20 us a thread. */
#include "causal/runtime/patch_internal.h"
#include "core/cpu.h"
#include <fcntl.h>
#include <signal.h>
#include <string.h>

enum {
	LOOK_MAX = 256, /* of those that have been looked at before: the others have their turn next time */
	LOOK_AGAIN = 3000000, /* cycles, some 1 ms: sooner it is the same change of text, for new ones only */
	SUSPECTS = 16
};
/* Who blocks a trap past libc does so from its beginning, as a rule, or goes on to do it. Guarded by the
 * lock of patch.c. */
static uint64_t newest; /* the highest thread id that has been looked at */
static unsigned turn;
static uint64_t looked;            /* when, at those that had the turn */
static uint64_t suspect[SUSPECTS]; /* they were found with one blocked */
static unsigned suspects;

struct dirent64_head {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

static uint64_t number(const char *p, const char *end, unsigned base)
{
	uint64_t value = 0;

	for (; p < end && (*p == ' ' || *p == '\t'); p++)
		;
	for (; p < end; p++) {
		unsigned digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned)(*p - '0');
		else if (base == 16 && *p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a') + 10;
		else
			break;
		value = value * base + digit;
	}
	return value;
}

/* The value of a line of /proc/.../status; a name given with the newline before it. */
static uint64_t field(const char *text, size_t length, const char *name, unsigned base)
{
	const char *at = memmem(text, length, name, strlen(name));

	return at ? number(at + strlen(name), text + length, base) : 0;
}

static bool is_suspect(uint64_t tid)
{
	for (unsigned i = 0; i < SUSPECTS; i++)
		if (suspect[i] == tid)
			return true;
	return false;
}

static void look(int dir, const char *name, struct ca_patch_threads *out)
{
	static const uint64_t ours = (uint64_t)1 << (SIGTRAP - 1) | (uint64_t)1 << (SIGILL - 1);
	char path[32], text[2048];
	size_t n = 0;
	long got;
	int fd;

	for (; name[n] && n < 16; n++)
		path[n] = name[n];
	memcpy(path + n, "/status", 8);
	fd = ca_sys_open_at(dir, path, O_RDONLY);
	if (fd < 0)
		return; /* it has ended */
	got = ca_sys(SYS_read, fd, (long)text, sizeof(text), 0, 0, 0);
	ca_sys_close(fd);
	if (got <= 0)
		return;
	if (field(text, (size_t)got, "\nSigBlk:", 16) & ours) {
		uint64_t tid = field(text, (size_t)got, "\nPid:", 10);

		out->blocked = true;
		if (!is_suspect(tid))
			suspect[suspects++ % SUSPECTS] = tid;
	}
	if (field(text, (size_t)got, "\nTracerPid:", 10))
		out->traced = true;
}

struct ca_patch_threads ca_patch_threads_look(void)
{
	struct ca_patch_threads out = { 0 };
	int dir = ca_sys_open("/proc/self/task", O_DIRECTORY);
	_Alignas(8) char buffer[4096];
	uint64_t highest = newest, now = ca_cpu_cycles();
	bool again = now - looked < LOOK_AGAIN;
	long got;

	if (dir < 0) {
		out.unknown = true;
		return out;
	}
	while ((got = ca_sys(SYS_getdents64, dir, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		for (long at = 0; at < got;) {
			const struct dirent64_head *d = (const void *)(buffer + at);
			uint64_t tid;

			at += d->length;
			if (d->name[0] < '0' || d->name[0] > '9')
				continue;
			tid = number(d->name, d->name + 16, 10);
			/* the first one tells of a debugger, whoever else has the turn */
			if (!out.count || tid > newest || is_suspect(tid) ||
			    (!again && out.count >= turn && out.count < turn + LOOK_MAX))
				look(dir, d->name, &out);
			highest = tid > highest ? tid : highest;
			out.count++;
		}
	}
	ca_sys_close(dir);
	newest = highest;
	if (again)
		return out;
	looked = now;
	turn = turn + LOOK_MAX < out.count ? turn + LOOK_MAX : 0;
	return out;
}
