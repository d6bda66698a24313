/* SPDX-License-Identifier: MIT */
/* Servers that give up their rights, or their file system, once they have begun: afterwards the
 * index files of the driver's user cannot be opened any more, and no stack could be walked. So all
 * of them are mapped just before.
 *
 * The wrappers' context. */
#include "causal/runtime/wrap.h"
#include "core/sys.h"
#include "sampler/modules.h"
#include <errno.h>
#include <unistd.h>

enum {
	LONGEST = 3000, /* looks for an index that is being made ... */
	PAUSE = 1000000 /* ... and ns between them */
};

static bool may_come(const struct ca_loaded *l)
{
	uint32_t state = atomic_load_explicit(&ca_rt.session->module[l->module].state, memory_order_acquire);

	return state == CA_MODULE_CLAIMED || state == CA_MODULE_REGISTERED;
}

static void map_all(void)
{
	struct timespec pause = { 0, PAUSE };
	struct ca_loaded *l;
	int saved = errno;

	/* a child of vfork has its parent's tables, and they serve it no longer than until it execs */
	if (!ca_rt.session || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed) ||
	    (uint32_t)ca_sys_getpid() != ca_rt.pid)
		return;
	ca_modules_scan();
	for (unsigned i = 0, looks = 0; (l = ca_modules_at(i)); i++) {
		while (may_come(l) && looks++ < LONGEST && !ca_rt_conductor_is_gone(ca_clock_now()))
			ca_sys(SYS_nanosleep, (long)(intptr_t)&pause, 0, 0, 0, 0, 0);
		ca_modules_index(l);
	}
	errno = saved;
}

#define BEFORE(call) (map_all(), (call))

CA_EXPORT int setuid(uid_t user)
{
	return BEFORE(REAL(setuid)(user));
}

CA_EXPORT int seteuid(uid_t user)
{
	return BEFORE(REAL(seteuid)(user));
}

CA_EXPORT int setreuid(uid_t real, uid_t effective)
{
	return BEFORE(REAL(setreuid)(real, effective));
}

CA_EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved)
{
	return BEFORE(REAL(setresuid)(real, effective, saved));
}

CA_EXPORT int chroot(const char *path)
{
	return BEFORE(REAL(chroot)(path));
}
