/* SPDX-License-Identifier: MIT */
/* Keys in the names of output files and folders: %tag%, %pid%, $env{NAME} and others.
 * Driver's process, one thread. */
#ifndef CA_DRIVER_KEYS_H
#define CA_DRIVER_KEYS_H
#include "core/settings.h"

/* text with its keys replaced; what is no key stays. Owned by the caller; NULL: no memory.
 *   argv, args, arg<N>   the command in one, its arguments, its N-th word (0: the program)
 *   argt, tag            as argv with the program's name only; that name
 *   argv_hash ...        the same as 16 hexadecimal digits (FNV-1a)
 *   pid ppid pgid psid psize  of causal: itself, its parent, its group, its session, its siblings
 *   job rank size nid    of a batch system or an MPI launcher; 0, and 1 for size, and pid for nid
 *   launch_time          20240131-235959
 *   %env{N}% $env{N}     an environment variable
 *   %cfg{N}% $cfg{N}     a setting, by its name in configuration files
 *   %m %p %j %r %s       argt_hash, pid, job, rank, size
 * '/' in what is put in becomes '_', and '_' at its beginning is left out. */
char *ca_keys_expand(const char *text, const struct ca_settings *settings, char *const *command);

#endif
