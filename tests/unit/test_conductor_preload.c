/* SPDX-License-Identifier: MIT */
/* causal/conductor/preload.c: into which programs nothing can be preloaded. The programs are made by
 * hand: headers, and no code. */
#include "causal/conductor/preload.h"
#include "tests/unit/unit.h"
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct program {
	Elf64_Ehdr e;
	Elf64_Phdr segment;
	Elf64_Shdr section[2];
	char names[24];
	char interpreter[32];
};
static char path[64];

static struct program usual(void)
{
	struct program p = { .segment.p_type = PT_INTERP,
			     .names = "\0.names\0.go.buildinfo",
			     .interpreter = "/lib64/ld-linux-x86-64.so.2" };

	memcpy(p.e.e_ident, ELFMAG, SELFMAG);
	p.e.e_ident[EI_CLASS] = ELFCLASS64;
	p.e.e_machine = EM_X86_64;
	p.e.e_phoff = offsetof(struct program, segment);
	p.e.e_phentsize = sizeof p.segment;
	p.e.e_phnum = 1;
	p.segment.p_offset = offsetof(struct program, interpreter);
	p.segment.p_filesz = sizeof p.interpreter;
	p.e.e_shoff = offsetof(struct program, section);
	p.e.e_shentsize = sizeof p.section[0];
	p.e.e_shnum = 2;
	p.e.e_shstrndx = 1;
	p.section[1].sh_name = 1;
	p.section[1].sh_offset = offsetof(struct program, names);
	p.section[1].sh_size = sizeof p.names;
	return p;
}

static void write_program(const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

/* why: what is said of it; NULL: nothing. */
static void expect(const char *what, const char *why)
{
	struct ca_preload found = ca_preload_check(path);

	if (!found.why != !why || (why && !strstr(found.why, why)))
		fail_msg("%s: %s", what, found.why ? found.why : "nothing");
	assert_int_equal(!found.remedy, !why);
}

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/ca-preload-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static void test_kinds(void **state)
{
	struct program p = usual();

	(void)state;
	write_program(&p, sizeof p);
	expect("a dynamic program", NULL);
	p.section[0].sh_name = 8;
	write_program(&p, sizeof p);
	expect("a program of Go", "is a Go program");
	p = usual();
	p.segment.p_type = PT_LOAD;
	write_program(&p, sizeof p);
	expect("a static program", "is statically linked");
	p = usual();
	strcpy(p.interpreter, "/lib/ld-musl-x86_64.so.1");
	write_program(&p, sizeof p);
	expect("a program that uses musl", "uses the C library musl");
	p = usual();
	p.e.e_phnum = 0;
	write_program(&p, sizeof p);
	expect("a program without segments", "is statically linked");
	p = usual();
	p.e.e_machine = EM_AARCH64;
	write_program(&p, sizeof p);
	expect("a program for another machine", "is not a program for 64-bit x86");
	p = usual();
	p.e.e_ident[EI_CLASS] = ELFCLASS32;
	write_program(&p, sizeof p);
	expect("a program of 32 bits", "is not a program for 64-bit x86");
	write_program("#!/bin/sh\n", 10);
	expect("a script", NULL);
	write_program("", 0);
	expect("an empty file", NULL);
	assert_int_equal(unlink(path), 0);
	expect("no file", NULL);
	write_program("", 0);
}

/* Rights that whoever starts the program has already are no others. */
static void test_rights(void **state)
{
	static const struct {
		const char *what;
		mode_t mode;
		bool other_user, other_group, more;
	} cases[] = {
		{ "no rights", 0755, false, false, false },
		{ "our own user", 04755, false, false, false },
		{ "our own group", 02755, false, false, false },
		{ "both our own", 06755, false, false, false },
		/* only root can make these */
		{ "somebody else's file", 0755, true, true, false },
		{ "another user", 04755, true, false, true },
		{ "another group", 02755, false, true, true },
		{ "our own user, another's group", 04755, false, true, false },
		{ "our own group, another's file", 02755, true, false, false },
		{ "both others", 06755, true, true, true },
	};
	struct program p = usual();
	struct statvfs where;
	struct stat info;

	(void)state;
	write_program(&p, sizeof p);
	if (statvfs(path, &where) || where.f_flag & ST_NOSUID)
		skip();
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		/* in this order: a change of owner takes the rights away */
		if (chown(path, getuid() + cases[i].other_user, getgid() + cases[i].other_group) ||
		    chmod(path, cases[i].mode) || stat(path, &info) ||
		    (info.st_mode & 07777) != cases[i].mode)
			continue;
		expect(cases[i].what,
		       cases[i].more ? "is set-user-ID, set-group-ID or has file capabilities" : NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rights, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
