/* SPDX-License-Identifier: MIT */
/* Contention on a pthread mutex. Expected: see locks.h. */
#include "gt.h"

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
#define LOCK()   pthread_mutex_lock(&m)
#define UNLOCK() pthread_mutex_unlock(&m)
#include "locks.h"
