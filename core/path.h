/* SPDX-License-Identifier: MIT */
/* The parts of a path. */
#ifndef CA_CORE_PATH_H
#define CA_CORE_PATH_H
#include <stdbool.h>
#include <string.h>

/* The last part of it; borrowed from path. A path that ends in '/' is its own. */
static inline const char *ca_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Is that its last part's ending, ".prv"? */
static inline bool ca_path_ends(const char *path, const char *ending)
{
	size_t length = strlen(path), n = strlen(ending);

	return length > n && !strcmp(path + length - n, ending);
}

/* As the kernel writes the path of a mapping (/proc/PID/maps): a new line as \012, and nothing else so. Safe in
 * handlers. */
static inline void ca_path_unescape(char *path)
{
	char *to = path;

	for (; *path; path++) {
		bool escaped = path[0] == '\\' && path[1] == '0' && path[2] == '1' && path[3] == '2';

		*to++ = escaped ? '\n' : *path;
		path += escaped ? 3 : 0;
	}
	*to = '\0';
}
/* Its threads spin until they get work. Wheels have names of their own for it (numpy: libscipy_openblas64_-HASH.so). */
static inline bool ca_path_is_openblas(const char *path)
{
	const char *name = ca_path_base(path);

	return !strncmp(name, "lib", 3) && strstr(name, "openblas");
}

/* A library that runs OpenMP's threads, by its name (wheels have a hash in it): they call the program's code, and wait for
 * each other in its own. */
static inline bool ca_path_is_openmp(const char *path)
{
	static const char *const start[] = { "libgomp", "libomp", "libiomp5" };
	const char *name = ca_path_base(path);

	for (unsigned i = 0; i < sizeof start / sizeof *start; i++) {
		const char *rest = name + strlen(start[i]);

		if (!strncmp(name, start[i], strlen(start[i])) && (*rest == '-' || *rest == '.') &&
		    strstr(rest, ".so"))
			return true;
	}
	return false;
}

#endif
