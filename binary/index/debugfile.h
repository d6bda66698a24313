/* Finding separate debug files. Part of ca_object_open. */
#ifndef CA_BINARY_INDEX_DEBUGFILE_H
#define CA_BINARY_INDEX_DEBUGFILE_H
#include "binary/index/object.h"

/* Fills the debug members of the object, if the file has no .debug_info of its own and a
 * matching separate file is installed. A file that is there but does not match: a warning. */
void ca_debugfile_find(struct ca_object *object, ca_index_warning *warning, void *context);

#endif
