/* SPDX-License-Identifier: MIT */
/* Demangling through libiberty: C++ and both Rust schemes. Driver's process. */
#include "binary/index/demangle.h"
#include <libiberty/demangle.h>

char *ca_demangle(const char *name)
{
	/* "_Z", "_R" and "_GLOBAL_"; anything else is a plain name, and most names are */
	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R' && name[1] != 'G' && name[1] != '_'))
		return NULL;
	return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}
