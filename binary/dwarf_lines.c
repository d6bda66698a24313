/* The rows of a unit's line table as ranges [low, high), neighbours of one file and line
 * merged. Threads: see dwarf_unit.c. */
#include "binary/dwarf_lines.h"
#include <dwarf.h>

static void add_line(struct ca_dwarf_worker *worker, struct ca_record_line *last,
		     const struct ca_record_line *line)
{
	bool same_line = (last->line & ~CA_LINE_IS_STMT) == (line->line & ~CA_LINE_IS_STMT);

	/* a statement that starts after code of its own line that is none stays apart */
	if (last->high == line->low && same_line && last->file == line->file &&
	    (last->line & CA_LINE_IS_STMT || !(line->line & CA_LINE_IS_STMT))) {
		last->high = line->high;
		return;
	}
	if (last->low < last->high)
		ca_vec_add(&worker->lines, last, 1);
	*last = *line;
}

bool ca_dwarf_lines(struct ca_dwarf_worker *worker, Dwarf_Die *die)
{
	struct ca_record_line last = { 0 };
	Dwarf_Lines *lines;
	size_t n;

	if (!dwarf_hasattr(die, DW_AT_stmt_list))
		return true;
	if (dwarf_getsrclines(die, &lines, &n) != 0)
		return false;
	for (size_t i = 0; i + 1 < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i), *next = dwarf_onesrcline(lines, i + 1);
		struct ca_record_line line;
		Dwarf_Addr low, high;
		bool end, is_stmt;
		int number;
		if (dwarf_lineaddr(row, &low) != 0 || dwarf_lineaddr(next, &high) != 0 ||
		    high == low || dwarf_lineendsequence(row, &end) != 0 || end ||
		    dwarf_lineno(row, &number) != 0 || number <= 0 ||
		    !ca_build_range(worker->build, low, high, &line.low, &line.high))
			continue;
		dwarf_linebeginstatement(row, &is_stmt);
		line.line = (uint32_t)number | (is_stmt ? CA_LINE_IS_STMT : 0);
		line.file = ca_dwarf_file(worker, dwarf_linesrc(row, NULL, NULL));
		add_line(worker, &last, &line);
	}
	if (last.low < last.high)
		ca_vec_add(&worker->lines, &last, 1);
	worker->has_lines |= last.low < last.high;
	return true;
}
