/* The line table of one unit. Private to binary/. */
#ifndef CA_BINARY_DWARF_LINES_H
#define CA_BINARY_DWARF_LINES_H
#include "binary/dwarf_unit.h"

/* Append the ranges of the unit's line table. False: it is damaged, nothing is appended. */
bool ca_dwarf_lines(struct ca_dwarf_worker *worker, Dwarf_Die *die);

#endif
