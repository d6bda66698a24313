/* SPDX-License-Identifier: MIT */
/* sampler/modules.c against the loader's own list: what is loaded, where, and whose build-id;
 * libraries that come and go; without process_vm_readv. */
#include "tests/unit/sampler_fixture.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static const char library[] =
	ASM_MACROS "fn visible\n ret\nend visible\n.section .note.GNU-stack,\"\",@progbits\n";

static int set_up(void **state)
{
	if (sampler_set_up(state) != 0)
		return -1;
	asm_make("lib", library);
	/* addresses that do not begin at 0 */
	if (fixture_run("%s -nostdlib -shared -Wl,-Ttext-segment=0x400000 -o lib.so lib.s", fixture_cc()) !=
	    0)
		return -1;
	asm_read_labels("lib.so");
	return 0;
}

static const ElfW(Phdr) * find_header(const struct dl_phdr_info *info, uint32_t type, uint32_t flags)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == type && (info->dlpi_phdr[i].p_flags & flags) == flags)
			return &info->dlpi_phdr[i];
	return NULL;
}

/* The build-id among the notes of one header. */
static bool has_build_id(const struct dl_phdr_info *info, const struct ca_module *m)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *note = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
		const char *end = note + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type != PT_NOTE)
			continue;
		while (note < end) {
			const ElfW(Nhdr) *n = (const void *)note;
			const char *desc = note + sizeof *n + ((n->n_namesz + 3) & ~3u);

			if (n->n_type == NT_GNU_BUILD_ID && strcmp(note + sizeof *n, "GNU") == 0)
				return m->build_id_length == n->n_descsz &&
				       memcmp(m->build_id, desc, n->n_descsz) == 0;
			note = desc + ((n->n_descsz + 3) & ~3u);
		}
	}
	return m->build_id_length == 0;
}

static int check_one(struct dl_phdr_info *info, size_t size, void *count)
{
	const ElfW(Phdr) *text = find_header(info, PT_LOAD, PF_X);
	char path[4096], real[4096];
	struct ca_loaded *loaded;
	const struct ca_module *m;
	uintptr_t low, bias;

	(void)size;
	if (!text)
		return 0;
	low = info->dlpi_addr + text->p_vaddr;
	loaded = ca_modules_find(low);
	assert_non_null(loaded);
	m = &session->module[loaded->module];
	snprintf(path, sizeof path, "%s", *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
	if (info->dlpi_addr == getauxval(AT_SYSINFO_EHDR))
		strcpy(real, CA_MODULE_VDSO);
	else
		assert_non_null(realpath(path, real));
	assert_string_equal(m->path, real);
	assert_int_equal(loaded->bias, info->dlpi_addr);
	assert_int_equal(m->main, !*info->dlpi_name);
	assert_int_equal(m->process, getpid());
	assert_true(has_build_id(info, m));
	assert_true(loaded->low <= low && loaded->high >= low + text->p_memsz);
	assert_ptr_equal(ca_modules_find(loaded->low), loaded);
	assert_ptr_equal(ca_modules_find(loaded->high - 1), loaded);
	assert_ptr_not_equal(ca_modules_find(loaded->low - 1), loaded);
	assert_ptr_not_equal(ca_modules_find(loaded->high), loaded);
	assert_true(ca_modules_bias(loaded->module, &bias));
	assert_int_equal(bias, info->dlpi_addr);
	++*(unsigned *)count;
	return 0;
}

static void check_all(void **state)
{
	struct ca_loaded *loaded;
	uintptr_t bias = 7, before = 0;
	unsigned loader = 0, n = 0;

	(void)state;
	ca_modules_scan();
	dl_iterate_phdr(check_one, &loader);
	for (; (loaded = ca_modules_at(n)); n++) {
		assert_true(loaded->low >= before && loaded->low < loaded->high);
		before = loaded->high;
	}
	assert_true(loader >= 4); /* this test, libc, the loader, the vdso */
	assert_int_equal(n, loader);
	assert_null(ca_modules_find(0));
	assert_null(ca_modules_find((uintptr_t)&loader));
	assert_null(ca_modules_find(UINTPTR_MAX));
	assert_false(ca_modules_bias(CA_MAX_MODULES - 1, &bias));
	assert_int_equal(bias, 7);
}

static void test_first(void **state)
{
	unsigned used;

	assert_null(ca_modules_find((uintptr_t)test_first));
	assert_null(ca_modules_at(0));
	assert_true(ca_modules_scan());
	used = atomic_load(&session->modules_used);
	check_all(state);
	assert_false(ca_modules_scan());
	assert_int_equal(atomic_load(&session->modules_used), used);
	for (uint32_t i = 1; i < used; i++)
		assert_int_equal(atomic_load(&session->module[i].state), CA_MODULE_REGISTERED);
	assert_int_equal(atomic_load(&session->module[used].state), CA_MODULE_FREE);
	assert_int_equal(atomic_load(&session->module[0].state), CA_MODULE_FREE);
}

/* Nothing of a new module is known until the maps are read again; one that comes back is the same
 * module, and another one in its place is not. */
static void test_comes_and_goes(void **state)
{
	struct ca_loaded *loaded;
	uint32_t module, other;
	uintptr_t pc;
	void *handle = dlopen(fixture_path("lib.so"), RTLD_NOW);

	(void)state;
	assert_non_null(handle);
	pc = (uintptr_t)dlsym(handle, "visible");
	assert_null(ca_modules_find(pc));
	assert_true(ca_modules_scan());
	loaded = ca_modules_find(pc);
	assert_non_null(loaded);
	assert_int_equal(pc - loaded->bias, asm_at("visible"));
	module = loaded->module;
	assert_string_equal(session->module[module].path, fixture_path("lib.so"));
	assert_int_equal(session->module[module].main, 0);
	dlclose(handle);
	assert_true(ca_modules_scan());
	assert_null(ca_modules_find(pc));
	for (unsigned i = 0; i < 6; i++) { /* more often than there are tables */
		handle = dlopen(fixture_path("lib.so"), RTLD_NOW);
		pc = (uintptr_t)dlsym(handle, "visible");
		ca_modules_scan();
		assert_int_equal(ca_modules_find(pc)->module, module);
		dlclose(handle);
		if (i < 5)
			assert_true(ca_modules_scan());
	}
	/* the same name, and most likely the same address, but another build-id */
	assert_int_equal(fixture_run("%s -nostdlib -shared -Wl,-Ttext-segment=0x400000,--build-id=md5 "
				     "-o lib.so lib.s",
				     fixture_cc()),
			 0);
	handle = dlopen(fixture_path("lib.so"), RTLD_NOW);
	assert_true(ca_modules_scan());
	other = ca_modules_find((uintptr_t)dlsym(handle, "visible"))->module;
	assert_int_not_equal(other, module);
	assert_int_equal(session->module[other].build_id_length, 16);
	assert_int_equal(session->module[module].build_id_length, 20);
	dlclose(handle);
	ca_modules_scan();
}

/* The kernel writes it with \012 in the maps. */
static void test_new_line(void **state)
{
	char path[4096];
	void *handle;

	(void)state;
	snprintf(path, sizeof path, "%s\n.so", fixture_path("lib"));
	assert_int_equal(link(fixture_path("lib.so"), path), 0);
	handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	assert_true(ca_modules_scan());
	check_all(state);
	dlclose(handle);
	ca_modules_scan();
}

/* A handler that was interrupted while the maps were read again and again finds what it had found. */
static void test_rows_stay(void **state)
{
	struct ca_loaded *loaded, before;
	void *handle = dlopen(fixture_path("lib.so"), RTLD_NOW);

	(void)state;
	assert_non_null(handle);
	ca_modules_scan();
	loaded = ca_modules_find((uintptr_t)dlsym(handle, "visible"));
	assert_non_null(loaded);
	before = *loaded;
	loaded->mark = true;
	dlclose(handle);
	for (unsigned i = 0; i < 9; i++) /* more often than there are tables */
		ca_modules_scan();
	assert_int_equal(loaded->low, before.low);
	assert_int_equal(loaded->high, before.high);
	assert_int_equal(loaded->bias, before.bias);
	assert_int_equal(loaded->module, before.module);
	assert_null(ca_modules_find(before.low));
	/* it is the same one if it comes back to where it was, but its points are to be placed anew */
	handle = dlopen(fixture_path("lib.so"), RTLD_NOW);
	assert_true(ca_modules_scan());
	loaded = ca_modules_find((uintptr_t)dlsym(handle, "visible"));
	assert_non_null(loaded);
	assert_false(loaded->mark);
	dlclose(handle);
	ca_modules_scan();
}

static void write_at(uintptr_t address, const void *from, size_t size)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, from, size, (off_t)address), size);
	close(fd);
}

/* What stays where it is with its build-id is known without its headers, which are not read again; with another
 * build-id they are. */
static void test_headers_once(void **state)
{
	static const char none[EI_CLASS + 1] = "";
	struct ca_loaded *loaded;
	uint32_t module;
	uintptr_t pc;
	void *handle = dlopen(fixture_path("lib.so"), RTLD_NOW);

	(void)state;
	assert_non_null(handle);
	pc = (uintptr_t)dlsym(handle, "visible");
	ca_modules_scan();
	loaded = ca_modules_find(pc);
	assert_non_null(loaded);
	module = loaded->module;
	write_at(loaded->head, none, sizeof none);
	assert_false(ca_modules_scan());
	assert_ptr_equal(ca_modules_find(pc), loaded);
	write_at(loaded->build_id_at, none, sizeof none);
	ca_modules_scan();
	assert_null(ca_modules_find(pc)); /* no ELF file */
	write_at(loaded->head, ELFMAG "\002", EI_CLASS + 1);
	assert_true(ca_modules_scan());
	assert_non_null(ca_modules_find(pc));
	assert_int_not_equal(ca_modules_find(pc)->module, module);
	dlclose(handle);
	ca_modules_scan();
}

/* An index is taken once the conductor says that it is there, and kept. */
static void test_index(void **state)
{
	struct ca_loaded *loaded;
	const struct ca_index *index;

	(void)state;
	ca_modules_scan();
	loaded = ca_modules_find((uintptr_t)test_index);
	assert_null(atomic_load(&loaded->index));
	assert_null(ca_modules_index(loaded));
	atomic_store(&session->module[loaded->module].state, CA_MODULE_FAILED);
	assert_null(ca_modules_index(loaded));
	/* one that cannot be mapped */
	strcpy(session->module[loaded->module].index_path, fixture_path("missing"));
	atomic_store(&session->module[loaded->module].state, CA_MODULE_INDEXED);
	errno = 55;
	assert_null(ca_modules_index(loaded));
	assert_int_equal(errno, 55);
	atomic_store(&session->module[loaded->module].state, CA_MODULE_REGISTERED);
	sampler_index_all();
	assert_ptr_equal(ca_modules_find((uintptr_t)test_index), loaded);
	index = atomic_load(&loaded->index);
	assert_non_null(index);
	assert_string_equal(ca_index_binary(index), session->module[loaded->module].path);
	assert_ptr_equal(ca_modules_index(loaded), index);
}

/* The headers of a file lie in what is mapped of it: what follows in memory is somebody else's,
 * whatever it looks like. */
static void test_headers_outside(void **state)
{
	static const unsigned at[] = { 64, 4096 - 2 * sizeof(Elf64_Phdr), 4096 - sizeof(Elf64_Phdr), 4096,
				       8192 };
	const Elf64_Phdr load = {
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096, .p_memsz = 4096
	};
	char *memory = mmap(NULL, 4 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(memory != MAP_FAILED);
	for (unsigned i = 0; i < CA_COUNT(at); i++) {
		Elf64_Ehdr e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
				 .e_phoff = at[i],
				 .e_phentsize = sizeof load,
				 .e_phnum = 2 };
		char name[16];
		int fd;

		snprintf(name, sizeof name, "image%u", i);
		fd = open(fixture_path(name), O_RDWR | O_CREAT | O_CLOEXEC, 0700);
		assert_int_equal(ftruncate(fd, 4096), 0);
		/* the page behind it, where the headers would go on */
		assert_ptr_equal(mmap(memory + 4096, 8192, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				 memory + 4096);
		assert_ptr_equal(mmap(memory, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0),
				 memory);
		memcpy(memory, &e, sizeof e);
		for (unsigned k = 0; k < 2; k++)
			memcpy(memory + at[i] + k * sizeof load, &load, sizeof load);
		assert_int_equal(mprotect(memory, 4096, PROT_READ | PROT_EXEC), 0);
		close(fd);
		ca_modules_scan();
		if (i < 2)
			assert_non_null(ca_modules_find((uintptr_t)memory));
		else
			assert_null(ca_modules_find((uintptr_t)memory));
		assert_int_equal(mprotect(memory, 4096, PROT_NONE), 0);
	}
	munmap(memory, 4 * 4096);
	ca_modules_scan();
}

static void test_mapping(void **state)
{
	char *at = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t low = 1, high = 2;

	(void)state;
	assert_int_equal(mprotect(at, 4096, PROT_NONE), 0);
	assert_int_equal(mprotect(at + 2 * 4096, 4096, PROT_READ), 0);
	assert_false(ca_modules_mapping((uintptr_t)at, &low, &high));
	assert_false(ca_modules_mapping((uintptr_t)at + 4095, &low, &high));
	assert_false(ca_modules_mapping((uintptr_t)at + 2 * 4096, &low, &high));
	assert_false(ca_modules_mapping((uintptr_t)test_mapping, &low, &high));
	assert_false(ca_modules_mapping(0, &low, &high));
	assert_true(low == 1 && high == 2);
	for (unsigned offset = 4096; offset < 2 * 4096; offset += 4095) {
		assert_true(ca_modules_mapping((uintptr_t)at + offset, &low, &high));
		assert_int_equal(low, (uintptr_t)at + 4096);
		assert_int_equal(high, (uintptr_t)at + 2 * 4096);
	}
	munmap(at, 3 * 4096);
	ca_modules_forked();
	assert_true(ca_modules_mapping((uintptr_t)&low, &low, &high));
}

/* In a process of its own, whose modules have not been seen yet. */
static void nothing_readable(void **state)
{
	(void)state;
	assert_int_equal(ca_session_create(fixture_path("empty"), &session, NULL), CA_OK);
	ca_modules_scan();
	assert_int_equal(atomic_load(&session->modules_used), 0);
}

static void all_readable(void **state)
{
	assert_int_equal(ca_session_create(fixture_path("fresh"), &session, NULL), CA_OK);
	assert_int_equal(unlink(fixture_path("fresh")), 0);
	check_all(state);
}

/* ptrace's rights may be denied, and the call may not be there; then the memory is read as a file.
 * Any other failure means that the memory is not there. */
static void test_without_copies(void **state)
{
	(void)state;
	without_call(SYS_process_vm_readv, EPERM, all_readable);
	without_call(SYS_process_vm_readv, ENOSYS, all_readable);
	without_call(SYS_process_vm_readv, EFAULT, nothing_readable);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_copies), /* first: children inherit what is known */
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_comes_and_goes),
		cmocka_unit_test(test_new_line),
		cmocka_unit_test(test_rows_stay),
		cmocka_unit_test(test_headers_once),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_mapping),
		cmocka_unit_test(test_headers_outside), /* last: no index can be made of its files */
	};

	return cmocka_run_group_tests(tests, set_up, sampler_tear_down);
}
