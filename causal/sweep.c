/* What all runs of a sweep share; see sweep.h. */
#include "causal/sweep.h"
#include "causal/conductor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ca_sweep {
	unsigned iteration;
	struct ca_catalog choice; /* its last region */
};

struct ca_sweep *ca_sweep_new(void)
{
	return calloc(1, sizeof(struct ca_sweep));
}

void ca_sweep_free(struct ca_sweep *sweep)
{
	if (sweep)
		ca_catalog_fini(&sweep->choice);
	free(sweep);
}

const struct ca_region *ca_sweep_get_choice(const struct ca_sweep *sweep, unsigned iteration)
{
	return sweep->iteration == iteration && sweep->choice.regions ? &sweep->choice.region[0] : NULL;
}

void ca_sweep_set_choice(struct ca_sweep *sweep, unsigned iteration, const struct ca_region *region)
{
	if (ca_sweep_get_choice(sweep, iteration))
		return;
	ca_catalog_fini(&sweep->choice);
	memset(&sweep->choice, 0, sizeof sweep->choice);
	ca_catalog_add_region(&sweep->choice, region);
	sweep->iteration = iteration;
}

bool ca_sweep_find_command(const char *name, char *path, size_t size)
{
	const char *list = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return access(path, X_OK) == 0;
	}
	for (list = list ? list : "/usr/bin:/bin"; *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ':');
		if ((size_t)snprintf(path, size, "%.*s/%s", end > list ? (int)(end - list) : 1,
				     end > list ? list : ".", name) < size &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}
