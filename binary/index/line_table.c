/* SPDX-License-Identifier: MIT */
/* Line tables, DWARF 2 to 5 (DWARF 5 section 6.2): the header with its file names, and the
 * program whose rows become ranges [low, high), neighbours of one file and line merged.
 *
 * Own code because libdw's sorted rows lose what is needed here: the end of empty sequences
 * (code seems to go on), where a sequence starts (those of code that the linker dropped start
 * at 0), and the compilation directory of DWARF 5's relative names. Half the time, too.
 * Runs in several threads, each with its own strings and vectors. Driver's process. */
#include "binary/index/line_table.h"
#include "binary/index/index_file.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append the parts of `path` but "." and, where it can be, "..". */
static size_t append_path(char *out, size_t n, const char *path, bool absolute)
{
	while (*path) {
		size_t length = strcspn(path, "/");
		const char *slash = memrchr(out, '/', n);
		size_t last = slash ? (size_t)(slash - out) : 0; /* end of what is above */
		bool up = length == 2 && strncmp(path, "..", 2) == 0;
		bool above = n >= 2 && out[n - 1] == '.' && out[n - 2] == '.' && n - last <= 3;
		if (up && n > 0 && !above) {
			n = last;
		} else if (length > 0 && !(length == 1 && path[0] == '.') && !(up && n == 0 && absolute)) {
			if (n > 0 || absolute)
				out[n++] = '/';
			memcpy(out + n, path, length);
			n += length;
		}
		path += length + (path[length] == '/');
	}
	return n;
}

/* folder/path, or path alone if it is absolute, without detours. */
static uint32_t join(struct ca_strings *strings, const char *folder, const char *path)
{
	char buffer[1024];
	size_t size = strlen(folder) + strlen(path) + 4;
	char *out = size <= sizeof(buffer) ? buffer : malloc(size);

	if (!out) {
		strings->failed = true;
		return 0;
	}
	if (path[0] == '/')
		folder = "";
	bool absolute = folder[0] == '/' || path[0] == '/';
	size_t n = append_path(out, 0, folder, absolute);
	n = append_path(out, n, path, absolute);
	uint32_t id = ca_strings_add(strings, out, n);
	if (out != buffer)
		free(out);
	return id;
}

static const char *text_at(const Elf_Data *data, uint64_t offset)
{
	if (!data || offset >= data->d_size ||
	    !memchr((const char *)data->d_buf + offset, '\0', data->d_size - offset))
		return "";
	return (const char *)data->d_buf + offset;
}

/* While the header is being read. */
struct reader {
	struct ca_cursor at;
	const struct ca_line_sections *sections;
	bool wide; /* 64-bit DWARF */
};

/* One field of a DWARF 5 entry: its text or number, whichever it is. */
static void read_form(struct reader *reader, uint64_t form, const char **text, uint64_t *value)
{
	struct ca_cursor *at = &reader->at;
	unsigned word = reader->wide ? 8 : 4;

	switch (form) {
	case DW_FORM_string:
		*text = ca_cursor_text(at);
		break;
	case DW_FORM_line_strp:
		*text = text_at(reader->sections->line_str, ca_cursor_fixed(at, word));
		break;
	case DW_FORM_strp:
		*text = text_at(reader->sections->str, ca_cursor_fixed(at, word));
		break;
	case DW_FORM_strp_sup:
		ca_cursor_fixed(at, word);
		break;
	case DW_FORM_udata:
		*value = ca_cursor_uleb(at);
		break;
	case DW_FORM_data1:
		*value = ca_cursor_fixed(at, 1);
		break;
	case DW_FORM_data2:
		*value = ca_cursor_fixed(at, 2);
		break;
	case DW_FORM_data4:
		*value = ca_cursor_fixed(at, 4);
		break;
	case DW_FORM_data8:
		*value = ca_cursor_fixed(at, 8);
		break;
	case DW_FORM_data16:
		ca_cursor_skip(at, 16);
		break;
	case DW_FORM_block:
		ca_cursor_skip(at, ca_cursor_uleb(at));
		break;
	default:
		at->bad = true;
	}
}

/* The folders or the files of a DWARF 5 header. Relative to `base`, if not NULL, is what the
 * folder number 0 does not say; files refer to `folders`. */
static bool read_entries(struct reader *reader, struct ca_strings *strings, const char *base,
			 const struct ca_vec *folders, struct ca_vec *out)
{
	uint64_t type[16], form[16];
	uint64_t formats = ca_cursor_fixed(&reader->at, 1);

	if (formats > 16)
		return false;
	for (uint64_t i = 0; i < formats; i++) {
		type[i] = ca_cursor_uleb(&reader->at);
		form[i] = ca_cursor_uleb(&reader->at);
	}
	uint64_t count = ca_cursor_uleb(&reader->at);
	if (count > (uint64_t)(reader->at.end - reader->at.at))
		return count == 0;
	for (uint64_t i = 0; i < count && !reader->at.bad; i++) {
		const char *path = "", *ignored;
		uint64_t folder = 0, number;
		for (uint64_t f = 0; f < formats; f++) {
			bool is_path = type[f] == DW_LNCT_path;
			bool is_folder = type[f] == DW_LNCT_directory_index;
			read_form(reader, form[f], is_path ? &path : &ignored, is_folder ? &folder : &number);
		}
		const char *from = base;
		if (folders)
			from = folder < folders->n
				       ? ca_strings_get(strings, ((uint32_t *)folders->at)[folder])
				       : "";
		else if (out->n > 0)
			from = ca_strings_get(strings, *(uint32_t *)out->at);
		uint32_t id;
		char *copy = strdup(from); /* the table of strings may move */
		id = copy ? join(strings, copy, path) : 0;
		free(copy);
		strings->failed |= !copy || !ca_vec_add(out, &id, 1);
	}
	return !reader->at.bad;
}

/* Folders and files of DWARF 2 to 4: numbers start at 1, folder 0 is the unit's. */
static bool read_old_entries(struct ca_line_table *table, struct reader *reader, struct ca_strings *strings,
			     const char *base, const char *name)
{
	uint32_t id = ca_strings_put(strings, base);
	const char *text;

	ca_vec_add(&table->folders, &id, 1);
	while (*(text = ca_cursor_text(&reader->at)) && !reader->at.bad) {
		id = join(strings, base, text);
		ca_vec_add(&table->folders, &id, 1);
	}
	id = join(strings, base, name);
	ca_vec_add(&table->files, &id, 1);
	while (!reader->at.bad && *(text = ca_cursor_text(&reader->at))) {
		uint64_t folder = ca_cursor_uleb(&reader->at);
		ca_cursor_uleb(&reader->at); /* time and size */
		ca_cursor_uleb(&reader->at);
		const uint32_t *folders = table->folders.at;
		char *copy =
			strdup(folder < table->folders.n ? ca_strings_get(strings, folders[folder]) : "");
		id = copy ? join(strings, copy, text) : 0;
		free(copy);
		strings->failed |= !copy;
		ca_vec_add(&table->files, &id, 1);
	}
	strings->failed |= table->folders.failed || table->files.failed;
	return !reader->at.bad;
}

bool ca_line_table_read(struct ca_line_table *table, const struct ca_line_sections *sections, uint64_t offset,
			const char *folder, const char *name, struct ca_strings *strings)
{
	struct reader reader = { .sections = sections };
	struct ca_cursor *at = &reader.at;

	*table = (struct ca_line_table){ .files.size = 4, .folders.size = 4 };
	if (!sections->line || offset >= sections->line->d_size)
		return false;
	at->at = (const uint8_t *)sections->line->d_buf + offset;
	at->end = (const uint8_t *)sections->line->d_buf + sections->line->d_size;
	uint64_t length = ca_cursor_fixed(at, 4);
	reader.wide = length == 0xffffffff;
	if (reader.wide)
		length = ca_cursor_fixed(at, 8);
	if (at->bad || length > (uint64_t)(at->end - at->at))
		return false;
	at->end = at->at + length;
	table->version = (unsigned)ca_cursor_fixed(at, 2);
	if (table->version < 2 || table->version > 5)
		return false;
	if (table->version == 5 && (ca_cursor_fixed(at, 1) != 8 || ca_cursor_fixed(at, 1) != 0))
		return false;
	uint64_t header = ca_cursor_fixed(at, reader.wide ? 8 : 4);
	if (at->bad || header > (uint64_t)(at->end - at->at))
		return false;
	table->program = (struct ca_cursor){ .at = at->at + header, .end = at->end };
	at->end = at->at + header;
	table->min_length = (unsigned)ca_cursor_fixed(at, 1);
	table->max_ops = table->version >= 4 ? (unsigned)ca_cursor_fixed(at, 1) : 1;
	table->default_is_stmt = ca_cursor_fixed(at, 1);
	table->line_base = (int8_t)ca_cursor_fixed(at, 1);
	table->line_range = (unsigned)ca_cursor_fixed(at, 1);
	table->opcode_base = (unsigned)ca_cursor_fixed(at, 1);
	for (unsigned i = 1; i < table->opcode_base; i++)
		table->lengths[i] = (uint8_t)ca_cursor_fixed(at, 1);
	if (at->bad || table->line_range == 0 || table->opcode_base == 0)
		return false;
	folder = folder ? folder : "";
	if (table->version < 5)
		return read_old_entries(table, &reader, strings, folder, name ? name : "");
	return read_entries(&reader, strings, folder, NULL, &table->folders) &&
	       read_entries(&reader, strings, folder, &table->folders, &table->files);
}

void ca_line_table_free(struct ca_line_table *table)
{
	ca_vec_free(&table->files);
	ca_vec_free(&table->folders);
}

uint32_t ca_line_table_file(const struct ca_line_table *table, uint64_t number)
{
	return number < table->files.n ? ((const uint32_t *)table->files.at)[number] : 0;
}

/* The line program's machine. `row` is the last row of the sequence, not yet a range. */
struct machine {
	const struct ca_line_table *table;
	const struct ca_object *object;
	struct ca_vec *lines;
	struct ca_cursor code;
	uint64_t address, op_index, file;
	uint32_t line;
	bool is_stmt;
	bool has_row, live; /* live: the sequence starts in the binary's text */
	uint64_t row_address, row_file;
	uint32_t row_line;
	bool row_is_stmt;
	struct ca_record_line last; /* range that may still grow */
};

static void reset(struct machine *machine)
{
	machine->address = machine->op_index = 0;
	machine->file = machine->line = 1;
	machine->is_stmt = machine->table->default_is_stmt;
	machine->has_row = machine->live = false;
}

static void flush(struct machine *machine)
{
	if (machine->last.low < machine->last.high)
		ca_vec_add(machine->lines, &machine->last, 1);
	machine->last = (struct ca_record_line){ 0 };
}

/* The last row reaches up to the current address. */
static void close_row(struct machine *machine)
{
	struct ca_record_line line, *last = &machine->last;

	if (!machine->has_row || !machine->live || machine->row_line == 0 ||
	    !ca_object_range(machine->object, machine->row_address, machine->address, &line.low, &line.high))
		return;
	line.file = ca_line_table_file(machine->table, machine->row_file);
	line.line = machine->row_line | (machine->row_is_stmt ? CA_LINE_IS_STMT : 0);
	bool same = (last->line & ~CA_LINE_IS_STMT) == machine->row_line && last->file == line.file &&
		    last->high == line.low;
	/* a statement that starts after code of its own line that is none stays apart */
	if (same && (last->line & CA_LINE_IS_STMT || !machine->row_is_stmt)) {
		last->high = line.high;
		return;
	}
	flush(machine);
	*last = line;
}

static void emit_row(struct machine *machine)
{
	/* gcc marks where a statement begins in a row of its own, at the same address */
	bool again = machine->has_row && machine->address == machine->row_address &&
		     machine->row_file == machine->file &&
		     machine->row_line == (machine->line & ~CA_LINE_IS_STMT);
	bool is_stmt = machine->is_stmt || (again && machine->row_is_stmt);

	if (!machine->has_row)
		machine->live = ca_object_text(machine->object, machine->address);
	if (machine->has_row && machine->address > machine->row_address)
		close_row(machine);
	machine->has_row = true;
	machine->row_address = machine->address;
	machine->row_file = machine->file;
	machine->row_line = machine->line & ~CA_LINE_IS_STMT;
	machine->row_is_stmt = is_stmt;
}

static void advance(struct machine *machine, uint64_t operations)
{
	const struct ca_line_table *table = machine->table;

	if (table->max_ops <= 1) {
		machine->address += operations * table->min_length;
		return;
	}
	uint64_t sum = machine->op_index + operations;
	machine->address += sum / table->max_ops * table->min_length;
	machine->op_index = sum % table->max_ops;
}

static void run_extended(struct machine *machine)
{
	struct ca_cursor *code = &machine->code;
	uint64_t length = ca_cursor_uleb(code);

	if (code->bad || length == 0 || length > (uint64_t)(code->end - code->at)) {
		code->bad = code->bad || length != 0;
		return;
	}
	const uint8_t *next = code->at + length;
	switch (ca_cursor_fixed(code, 1)) {
	case DW_LNE_end_sequence:
		if (machine->has_row && machine->address > machine->row_address)
			close_row(machine);
		flush(machine);
		reset(machine);
		break;
	case DW_LNE_set_address:
		if (length == 9)
			machine->address = ca_cursor_fixed(code, 8);
		else if (length == 5)
			machine->address = ca_cursor_fixed(code, 4);
		else
			code->bad = true;
		machine->op_index = 0;
		break;
	default: /* files defined late are not written by anyone; others do not matter */
		break;
	}
	code->at = next;
}

static void run_standard(struct machine *machine, uint8_t op)
{
	struct ca_cursor *code = &machine->code;

	switch (op) {
	case DW_LNS_copy:
		emit_row(machine);
		break;
	case DW_LNS_advance_pc:
		advance(machine, ca_cursor_uleb(code));
		break;
	case DW_LNS_advance_line:
		machine->line += (uint32_t)ca_cursor_sleb(code);
		break;
	case DW_LNS_set_file:
		machine->file = ca_cursor_uleb(code);
		break;
	case DW_LNS_negate_stmt:
		machine->is_stmt = !machine->is_stmt;
		break;
	case DW_LNS_const_add_pc:
		advance(machine, (255 - machine->table->opcode_base) / machine->table->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		machine->address += ca_cursor_fixed(code, 2);
		machine->op_index = 0;
		break;
	default: /* set_column, set_basic_block, prologue and epilogue, unknown */
		for (unsigned i = 0; i < machine->table->lengths[op]; i++)
			ca_cursor_uleb(code);
	}
}

bool ca_line_table_run(const struct ca_line_table *table, const struct ca_object *object,
		       struct ca_vec *lines)
{
	struct machine machine = { .table = table, .object = object, .lines = lines, .code = table->program };
	size_t before = lines->n;

	reset(&machine);
	while (machine.code.at < machine.code.end && !machine.code.bad) {
		uint8_t op = (uint8_t)ca_cursor_fixed(&machine.code, 1);
		if (op >= table->opcode_base) {
			unsigned value = op - table->opcode_base;
			advance(&machine, value / table->line_range);
			machine.line += (uint32_t)(table->line_base + (int)(value % table->line_range));
			emit_row(&machine);
		} else if (op == 0) {
			run_extended(&machine);
		} else {
			run_standard(&machine, op);
		}
	}
	flush(&machine);
	if (machine.code.bad)
		lines->n = before;
	return !machine.code.bad;
}
