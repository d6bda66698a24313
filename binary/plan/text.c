/* SPDX-License-Identifier: MIT */
/* The text of a module; see text.h. */
#include "binary/plan/text.h"
#include "core/vec.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PADDING = 64 /* bytes between two functions */ };

enum { PARTS = 32, DWARF_RBP = 6, DWARF_RSP = 7 };

struct function {
	uint64_t low, high;
	bool cold, nameless;
};
struct part {
	uint64_t low, high;
	const uint8_t *bytes;
	bool text;
};
struct pointer {
	uint64_t at, value;
};
struct ca_text {
	int fd;
	Elf *elf;
	Dwarf_CFI *cfi;
	struct ca_disassembler *disassembler;
	struct part part[PARTS];
	unsigned parts;
	struct ca_vec functions; /* struct function, sorted by low */
	struct ca_vec pointers;  /* struct pointer, sorted by at: relocated ones */
	struct ca_vec links;     /* struct part: linkage tables */
	uint64_t rseq_low, rseq_high;
	bool gcc;
	void *found; /* by plan.h */
};

/* ---- the file ------------------------------------------------------------------------- */
static void read_parts(struct ca_text *t, const uint8_t *image, size_t size)
{
	size_t headers = 0;

	elf_getphdrnum(t->elf, &headers);
	for (size_t i = 0; i < headers && t->parts < PARTS; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(t->elf, (int)i, &ph) || ph.p_type != PT_LOAD || ph.p_filesz > size ||
		    ph.p_offset > size - ph.p_filesz)
			continue;
		t->part[t->parts++] = (struct part){ .low = ph.p_vaddr,
						     .high = ph.p_vaddr + ph.p_filesz,
						     .bytes = image + ph.p_offset,
						     .text = ph.p_flags & PF_X };
	}
}

/* One address order for all lists. Their items begin with the address. */
static int by_address(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return x < y ? -1 : x > y;
}

static void sort(struct ca_vec *list)
{
	if (list->n)
		qsort(list->at, list->n, list->size, by_address);
}

static void read_symbols(struct ca_text *t, Elf_Scn *section, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(section, NULL);

	for (size_t i = 0; data && sh->sh_entsize && i < sh->sh_size / sh->sh_entsize; i++) {
		struct function *f;
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF || !sym.st_size ||
		    (GELF_ST_TYPE(sym.st_info) != STT_FUNC && GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC))
			continue;
		name = elf_strptr(t->elf, sh->sh_link, sym.st_name);
		f = ca_vec_push(&t->functions);
		if (!f)
			return;
		*f = (struct function){ .low = sym.st_value,
					.high = sym.st_value + sym.st_size,
					.cold = name && strstr(name, ".cold") };
	}
}

static void read_relocations(struct ca_text *t, Elf_Scn *section, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(section, NULL);

	for (size_t i = 0; data && sh->sh_entsize && i < sh->sh_size / sh->sh_entsize; i++) {
		struct pointer *p;
		GElf_Rela rela;

		if (!gelf_getrela(data, (int)i, &rela) || GELF_R_TYPE(rela.r_info) != R_X86_64_RELATIVE)
			continue;
		p = ca_vec_push(&t->pointers);
		if (!p)
			return;
		*p = (struct pointer){ rela.r_offset, (uint64_t)rela.r_addend };
	}
}

static bool names_gcc_alone(const Elf_Data *comment)
{
	static const char *const others[] = { "clang", "LLVM", "rustc" };

	if (!comment || !comment->d_buf || !memmem(comment->d_buf, comment->d_size, "GCC:", 4))
		return false;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (memmem(comment->d_buf, comment->d_size, others[i], strlen(others[i])))
			return false;
	return true;
}

static void read_sections(struct ca_text *t)
{
	Elf_Scn *section = NULL;
	size_t names = 0;

	elf_getshdrstrndx(t->elf, &names);
	while ((section = elf_nextscn(t->elf, section))) {
		const char *name;
		GElf_Shdr sh;

		if (!gelf_getshdr(section, &sh))
			continue;
		name = elf_strptr(t->elf, names, sh.sh_name);
		if (!name)
			name = "";
		if (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)
			read_symbols(t, section, &sh);
		if (sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC))
			read_relocations(t, section, &sh);
		if (!strncmp(name, ".plt", 4)) {
			struct part *p = ca_vec_push(&t->links);

			if (p)
				*p = (struct part){ .low = sh.sh_addr, .high = sh.sh_addr + sh.sh_size };
		}
		if (!strcmp(name, ".comment"))
			t->gcc = names_gcc_alone(elf_getdata(section, NULL));
		if (!strcmp(name, "__rseq_cs")) {
			t->rseq_low = sh.sh_addr;
			t->rseq_high = sh.sh_addr + sh.sh_size;
		}
	}
	sort(&t->functions);
	sort(&t->pointers);
}

enum ca_status ca_text_open(struct ca_text **text, const char *path, struct ca_err *err)
{
	struct ca_text *t = calloc(1, sizeof *t);
	GElf_Ehdr header;
	const char *image;
	size_t size;

	if (!t)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	t->functions.size = sizeof(struct function);
	t->pointers.size = sizeof(struct pointer);
	t->links.size = sizeof(struct part);
	elf_version(EV_CURRENT);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0) {
		ca_err_set(err, CA_ERR_IO, "%s: %s", path, strerror(errno));
		free(t);
		return CA_ERR_IO;
	}
	t->elf = elf_begin(t->fd, ELF_C_READ_MMAP, NULL);
	image = t->elf ? elf_rawfile(t->elf, &size) : NULL;
	if (!image || !gelf_getehdr(t->elf, &header) || header.e_machine != EM_X86_64 ||
	    gelf_getclass(t->elf) != ELFCLASS64) {
		ca_text_close(t);
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "%s is not an x86-64 ELF file", path);
	}
	t->disassembler = ca_insn_open();
	if (!t->disassembler) {
		ca_text_close(t);
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	}
	read_parts(t, (const uint8_t *)image, size);
	read_sections(t);
	t->cfi = dwarf_getcfi_elf(t->elf);
	*text = t;
	return CA_OK;
}

void ca_text_add(struct ca_text *t, const struct ca_text_function *function, size_t n)
{
	const struct function *known = t->functions.at;
	struct ca_vec more = { .size = sizeof(struct function) };
	uint64_t end = 0; /* of what is known so far and begins before the function's end */
	size_t k = 0;

	for (const struct ca_text_function *f = function; f < function + n; f++) {
		struct function new = { f->low, f->high, f->part, f->nameless };

		for (; k < t->functions.n && known[k].low < f->high; k++)
			if (known[k].high > end)
				end = known[k].high;
		if (f->low < end || f->low >= f->high)
			continue;
		ca_vec_add(&more, &new, 1);
		end = f->high;
	}
	ca_vec_add(&t->functions, more.at, more.n);
	ca_vec_free(&more);
	sort(&t->functions);
}

void ca_text_close(struct ca_text *t)
{
	if (!t)
		return;
	ca_insn_close(t->disassembler);
	if (t->cfi)
		dwarf_cfi_end(t->cfi);
	if (t->elf)
		elf_end(t->elf);
	if (t->fd >= 0)
		close(t->fd);
	free(t->found);
	ca_vec_free(&t->functions);
	ca_vec_free(&t->pointers);
	ca_vec_free(&t->links);
	free(t);
}

bool ca_text_part(struct ca_text *t, unsigned i, uint64_t *low, uint64_t *high, const uint8_t **bytes)
{
	for (unsigned k = 0; k < t->parts; k++) {
		if (!t->part[k].text || i--)
			continue;
		*low = t->part[k].low;
		*high = t->part[k].high;
		*bytes = t->part[k].bytes;
		return true;
	}
	return false;
}

/* ---- look-ups --------------------------------------------------------------------------- */
/* The last item that begins at or below the address; the list's length if none does. */
static size_t last_at(const struct ca_vec *list, uint64_t address)
{
	size_t a = 0, b = list->n;

	while (a < b) {
		size_t middle = (a + b) / 2;
		uint64_t at;

		memcpy(&at, (const char *)list->at + middle * list->size, sizeof at);
		if (at <= address)
			a = middle + 1;
		else
			b = middle;
	}
	return a ? a - 1 : list->n;
}

static const struct function *function_at(const struct ca_text *t, uint64_t address)
{
	size_t i = last_at(&t->functions, address);
	const struct function *list = t->functions.at, *best = NULL;

	/* aliases: the longest of those that begin at the same place */
	for (size_t k = i; i < t->functions.n && k < t->functions.n && list[k].low == list[i].low; k--)
		if (!best || list[k].high > best->high)
			best = &list[k];
	return best && address < best->high ? best : NULL;
}

bool ca_text_function(struct ca_text *t, uint64_t address, uint64_t *low, uint64_t *high)
{
	const struct function *f = function_at(t, address);

	if (!f)
		return false;
	*low = f->low;
	*high = f->high;
	return true;
}

static bool is_link(const struct ca_text *t, uint64_t address)
{
	const struct part *link = t->links.at;

	for (size_t i = 0; i < t->links.n; i++)
		if (address >= link[i].low && address < link[i].high)
			return true;
	return false;
}

/* A part has no name of its own where symbols are missing. But who is called has nothing on the stack but where to
 * return to; a part has its function's frame there. */
static bool is_cold(struct ca_text *t, const struct function *f)
{
	int depth = f->nameless && !is_link(t, f->low) ? ca_text_depth(t, f->low) : CA_TEXT_RETURN_ONLY;

	return f->cold || (depth >= 0 && depth != CA_TEXT_RETURN_ONLY);
}

bool ca_text_is_entry(struct ca_text *t, uint64_t address)
{
	const struct function *f = function_at(t, address);

	return is_link(t, address) || (f && f->low == address && !is_cold(t, f));
}

bool ca_text_is_cold(struct ca_text *t, uint64_t address, uint64_t *low, uint64_t *high)
{
	const struct function *f = function_at(t, address);

	if (!f || !is_cold(t, f))
		return false;
	*low = f->low;
	*high = f->high;
	return true;
}

bool ca_text_read(struct ca_text *t, uint64_t address, void *to, size_t n)
{
	for (unsigned i = 0; i < t->parts; i++) {
		const struct part *p = &t->part[i];

		if (address < p->low || address >= p->high || p->high - address < n)
			continue;
		memcpy(to, p->bytes + (address - p->low), n);
		return true;
	}
	return false;
}

bool ca_text_pointer(struct ca_text *t, uint64_t address, uint64_t *value)
{
	size_t i = last_at(&t->pointers, address);
	const struct pointer *list = t->pointers.at;

	if (i < t->pointers.n && list[i].at == address) {
		*value = list[i].value;
		return true;
	}
	return ca_text_read(t, address, value, sizeof *value) && *value;
}

bool ca_text_is_rseq(struct ca_text *t, uint64_t address)
{
	return address >= t->rseq_low && address < t->rseq_high;
}

/* From that register up to the end of the frame. */
static int depth_from(struct ca_text *t, uint64_t address, unsigned reg)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *op = NULL;
	size_t ops = 0;
	int depth = -1;

	if (!t->cfi || dwarf_cfi_addrframe(t->cfi, address, &frame) != 0)
		return -1;
	if (dwarf_frame_cfa(frame, &op, &ops) == 0 && ops) {
		bool from =
			(op[0].atom == DW_OP_bregx && op[0].number == reg) || op[0].atom == DW_OP_breg0 + reg;
		int64_t offset = (int64_t)(op[0].atom == DW_OP_bregx ? op[0].number2 : op[0].number);

		depth = ops == 1 && from && offset > 0 && offset < INT32_MAX ? (int)offset : 0;
	}
	free(frame);
	return depth;
}

int ca_text_depth(struct ca_text *t, uint64_t address)
{
	return depth_from(t, address, DWARF_RSP);
}

int ca_text_depth_from_fp(struct ca_text *t, uint64_t address)
{
	return depth_from(t, address, DWARF_RBP);
}

bool ca_text_is_gcc(struct ca_text *t)
{
	return t->gcc;
}

struct wanted {
	const char *file, *name; /* file: NULL, any; else `length` bytes */
	size_t length;
	unsigned found;
	GElf_Sym first;
};

static void find_in(struct ca_text *t, Elf_Scn *section, const GElf_Shdr *sh, struct wanted *w)
{
	Elf_Data *data = elf_getdata(section, NULL);
	bool here = !w->file;
	GElf_Sym sym;

	for (size_t i = 0; data && sh->sh_entsize && i < sh->sh_size / sh->sh_entsize; i++) {
		const char *name =
			gelf_getsym(data, (int)i, &sym) ? elf_strptr(t->elf, sh->sh_link, sym.st_name) : NULL;

		if (name && w->file && GELF_ST_TYPE(sym.st_info) == STT_FILE)
			here = strlen(name) == w->length && !memcmp(name, w->file, w->length);
		if (!name || !here || sym.st_shndx == SHN_UNDEF || !sym.st_size ||
		    GELF_ST_TYPE(sym.st_info) != STT_FUNC || strcmp(name, w->name) != 0 ||
		    (w->found && w->first.st_value == sym.st_value))
			continue;
		if (!w->found++)
			w->first = sym;
	}
}

unsigned ca_text_find(struct ca_text *t, const char *name, uint64_t *low, uint64_t *high, bool *local)
{
	const char *colon = strrchr(name, ':');
	struct wanted w = { .name = colon ? colon + 1 : name };
	Elf_Scn *section = NULL;
	GElf_Shdr sh;

	if (colon) {
		w.file = name;
		w.length = (size_t)(colon - name);
	}
	while ((section = elf_nextscn(t->elf, section)))
		if (gelf_getshdr(section, &sh) && (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			find_in(t, section, &sh, &w);
	*low = w.first.st_value;
	*high = w.first.st_value + w.first.st_size;
	*local = GELF_ST_BIND(w.first.st_info) == STB_LOCAL;
	return w.found > 2 ? 2 : w.found;
}

/* ---- instructions ------------------------------------------------------------------------ */
bool ca_text_decode(struct ca_text *t, uint64_t address, struct ca_insn *out)
{
	for (unsigned i = 0; i < t->parts; i++) {
		const struct part *p = &t->part[i];

		if (p->text && address >= p->low && address < p->high)
			return ca_insn_decode(t->disassembler, p->bytes + (address - p->low),
					      p->high - address, address, out);
	}
	return false;
}

struct ca_insn *ca_text_decode_all(struct ca_text *t, uint64_t low, uint64_t high, size_t *n)
{
	struct ca_vec list = { .size = sizeof(struct ca_insn) };
	struct ca_insn *insn, one;

	*n = 0;
	for (uint64_t at = low; at < high; at += one.size)
		if (!ca_text_decode(t, at, &one) || !ca_vec_add(&list, &one, 1)) {
			ca_vec_free(&list);
			return NULL;
		}
	insn = list.at;
	*n = list.n;
	for (size_t i = 0; i < list.n; i++)
		if (insn[i].target && insn[i].kind != CA_INSN_CALL)
			ca_insn_mark(insn, list.n, insn[i].target);
	return insn;
}

bool ca_text_pads_to_entry(struct ca_text *t, uint64_t address)
{
	uint64_t end = address + MOST_PADDING;
	struct ca_insn pad;

	for (; address < end; address += pad.size) {
		if (ca_text_is_entry(t, address))
			return true;
		if (!ca_text_decode(t, address, &pad) || !pad.is_pad)
			return false;
	}
	return false;
}

void **ca_text_found(struct ca_text *text)
{
	return &text->found;
}
