/* SPDX-License-Identifier: MIT */
/* Placing and removing sites: the order of writes (see patch.h).
 *
 * Any thread, handlers too; a try-lock lets one in at a time. Each step is done for all sites of
 * a call at once, so that a call costs two or three membarriers however many sites it has. */
#include "causal/runtime/patch_internal.h"
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <time.h>

enum { LOOKS = 4 /* at threads that block our traps */, HOLD_LOOKS = 1000 /* for who is patching */ };
enum { ARCH_SHSTK_STATUS = 0x5005 };

static uint16_t live[CA_PATCH_RECORDS]; /* records that are not OFF */
static uint32_t live_count;
static _Atomic bool some_retired;
static _Atomic bool lock; /* guards all of this file's and patch_mem.c's state */
static bool ready;
/* The sites of the call that holds the lock. */
static struct {
	const struct ca_site *site;
	size_t n;
} batch;

static bool try_lock(void)
{
	return !atomic_exchange_explicit(&lock, true, memory_order_acquire);
}

static void unlock(void)
{
	atomic_store_explicit(&lock, false, memory_order_release);
}

/* ---- start ------------------------------------------------------------------------------ */

static void hook_none(uintptr_t sp)
{
	(void)sp;
}

static void fine_none(void)
{
}

static void stamp_none(uint32_t point)
{
	(void)point;
}

void ca_patch_set_hooks(const struct ca_patch_hooks *hooks)
{
	ca_trampoline_hooks = *hooks;
}

static bool membarrier_register(void)
{
	return ca_sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0, 0, 0, 0) ==
	       0;
}

bool ca_patch_init(const char **why)
{
	static const struct ca_patch_hooks none = { hook_none,  hook_none, hook_none,
						    stamp_none, hook_none, fine_none };
	uint64_t shadow = 0;
	int here;

	if (!ca_trampoline_hooks.enter)
		ca_trampoline_hooks = none;
	if (ca_sys(SYS_arch_prctl, ARCH_SHSTK_STATUS, (long)&shadow, 0, 0, 0, 0) == 0 && (shadow & 1)) {
		*why = "the program runs with a shadow stack, which patched calls would break";
		return false;
	}
	if (!membarrier_register()) {
		*why = "the kernel has no core-serialising membarrier (Linux 4.16 or newer)";
		return false;
	}
	ca_patch_mem_init((uintptr_t)&here);
	ready = ca_patch_mem_check(why) && ca_patch_trap_take();
	return ready;
}

/* After this, every core fetches what was written before. */
static bool sync_cores(void)
{
	for (int i = 0; i < 2; i++) {
		if (ca_sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0, 0, 0, 0) == 0)
			return true;
		if (!membarrier_register())
			break;
	}
	return false;
}

/* Bytes that other sites change at the moment cannot be part of a distance. */
static bool overlaps_live(uintptr_t low, uintptr_t high)
{
	for (uint32_t i = 0; i < live_count; i++) {
		const struct ca_patch_record *r = &ca_patch_records[live[i]];

		if (low < r->address + r->footprint && r->address < high)
			return true;
	}
	return false;
}

/* Nor can bytes that the rest of this call is going to change. */
static bool overlaps_batch(const struct ca_patch_record *r, uintptr_t high)
{
	for (size_t i = 0; i < batch.n; i++) {
		const struct ca_site *s = &batch.site[i];
		uintptr_t low = (uintptr_t)s->address + r->bias;

		if (s->module == r->site.module && low != r->address && low < high &&
		    r->address < low + s->length)
			return true;
	}
	return false;
}

static bool others_change(const struct ca_patch_record *r, uintptr_t high)
{
	return overlaps_live(r->address, high) || overlaps_batch(r, high);
}

/* ---- the three steps -------------------------------------------------------------------- */

static bool starts_insn(const struct ca_patch_record *r, unsigned offset)
{
	for (unsigned i = 0; i < r->site.insns; i++)
		if (r->site.insn[i].offset == offset)
			return true;
	return offset == 0;
}

static void trap_bytes(const struct ca_patch_record *r, uint8_t bytes[CA_SITE_BYTES])
{
	memcpy(bytes, r->site.original, CA_SITE_BYTES);
	for (unsigned i = 0; i < r->site.length; i++)
		if (starts_insn(r, i))
			bytes[i] = CA_PATCH_INT3;
}

/* A landing that several records share leads to the one placed last. It is turned in the three steps of
 * placing, like the text: whoever stands there traps meanwhile. */
static bool turn_landing(const struct ca_patch_text *text, const struct ca_patch_record *r, unsigned step)
{
	uint8_t bytes[CA_PATCH_LANDING], now[CA_PATCH_LANDING], trap = CA_PATCH_INT3;
	uintptr_t at = r->place.landing;
	size_t n;

	if (at == r->place.body)
		return true;
	n = ca_patch_mem_landing(&r->place, bytes);
	if (!ca_patch_mem_read(text, at, now, n) || memcmp(now, bytes, n) == 0)
		return true;
	if (step == 1)
		return ca_patch_mem_write(text, at, &trap, 1);
	if (now[0] != trap)
		return false;
	return step == 2 ? ca_patch_mem_write(text, at + 1, bytes + 1, n - 1)
			 : ca_patch_mem_write(text, at, bytes, 1);
}

/* Step 1 of placing: a trap on every instruction. */
static bool write_traps(const struct ca_patch_text *text, struct ca_patch_record *r)
{
	uint8_t bytes[CA_SITE_BYTES];

	trap_bytes(r, bytes);
	return turn_landing(text, r, 1) && ca_patch_mem_write(text, r->address, bytes, r->site.length);
}

/* Step 2 of placing: the rest of the jump behind the trap. Inner instructions keep a byte that traps
 * (int3 may turn into another such opcode here). */
static bool write_tail(const struct ca_patch_text *text, struct ca_patch_record *r)
{
	uint8_t bytes[CA_SITE_BYTES];

	memcpy(bytes, r->patched, sizeof bytes);
	bytes[0] = CA_PATCH_INT3;
	return ca_patch_mem_write(text, r->address, bytes, r->site.length);
}

/* Step 3 of placing. */
static bool write_jump(const struct ca_patch_text *text, struct ca_patch_record *r)
{
	return ca_patch_mem_write(text, r->address, r->patched, r->site.length);
}

/* Step 1 of removing. */
static bool write_trap(const struct ca_patch_text *text, struct ca_patch_record *r)
{
	static const uint8_t trap = CA_PATCH_INT3;

	return ca_patch_mem_write(text, r->address, &trap, 1);
}

/* Step 2 of removing: all that nobody can fetch goes back to what it was. */
static bool restore_between(const struct ca_patch_text *text, struct ca_patch_record *r)
{
	uint8_t bytes[CA_SITE_BYTES];

	memcpy(bytes, r->patched, sizeof(bytes));
	bytes[0] = CA_PATCH_INT3;
	for (unsigned i = 1; i < r->site.length; i++)
		if (!starts_insn(r, i))
			bytes[i] = r->site.original[i];
	return ca_patch_mem_write(text, r->address, bytes, r->site.length);
}

static void set_state(struct ca_patch_record *r, enum ca_record_state state)
{
	atomic_store_explicit(&r->state, state, memory_order_release);
}

static enum ca_record_state get_state(const struct ca_patch_record *r)
{
	return (enum ca_record_state)atomic_load_explicit(&r->state, memory_order_relaxed);
}

/* Do these bytes stand there? Otherwise its library was closed since the last step. */
static bool stands(const struct ca_patch_text *text, const struct ca_patch_record *r,
		   const uint8_t bytes[CA_SITE_BYTES])
{
	uint8_t now[CA_SITE_BYTES];

	return ca_patch_mem_read(text, r->address, now, r->site.length) &&
	       memcmp(now, bytes, r->site.length) == 0;
}

/* Steps 2 and 3 for all that are PLACING; step 1 has been done. */
static void finish_placing(const struct ca_patch_text *text)
{
	uint8_t bytes[CA_SITE_BYTES];

	if (!sync_cores())
		return; /* the traps do the same, slowly */
	for (uint32_t i = 0; i < live_count; i++) {
		struct ca_patch_record *r = &ca_patch_records[live[i]];

		if (get_state(r) != CA_RECORD_PLACING)
			continue;
		turn_landing(text, r, 2);
		trap_bytes(r, bytes);
		if (!r->trap && stands(text, r, bytes))
			write_tail(text, r);
	}
	if (!sync_cores())
		return;
	for (uint32_t i = 0; i < live_count; i++) {
		struct ca_patch_record *r = &ca_patch_records[live[i]];

		if (get_state(r) != CA_RECORD_PLACING)
			continue;
		turn_landing(text, r, 3);
		memcpy(bytes, r->patched, sizeof bytes);
		bytes[0] = CA_PATCH_INT3;
		if (!r->trap && stands(text, r, bytes))
			write_jump(text, r);
		set_state(r, CA_RECORD_ON);
	}
}

/* Our int3 is there still, and so is the library. */
static bool is_trapped(const struct ca_patch_text *text, const struct ca_patch_record *r)
{
	uint8_t first;

	return ca_patch_mem_read(text, r->address, &first, 1) && first == CA_PATCH_INT3;
}

/* Step 1 has been done for all that are REMOVING. */
static void finish_removing(const struct ca_patch_text *text)
{
	uint32_t kept = 0;

	sync_cores();
	for (uint32_t i = 0; i < live_count; i++)
		if (get_state(&ca_patch_records[live[i]]) == CA_RECORD_REMOVING &&
		    is_trapped(text, &ca_patch_records[live[i]]))
			restore_between(text, &ca_patch_records[live[i]]);
	sync_cores();
	for (uint32_t i = 0; i < live_count; i++) {
		struct ca_patch_record *r = &ca_patch_records[live[i]];

		if (get_state(r) == CA_RECORD_REMOVING) {
			if (is_trapped(text, r))
				ca_patch_mem_write(text, r->address, r->site.original, r->site.length);
			set_state(r, CA_RECORD_OFF);
		} else {
			live[kept++] = live[i];
		}
	}
	live_count = kept;
}

static bool keep_current(const struct ca_patch_record *r)
{
	return !atomic_load_explicit(&r->retired, memory_order_relaxed);
}

/* ---- the two operations ----------------------------------------------------------------- */

/* The library was closed, and opened again at the same address. */
static bool text_is_new(const struct ca_patch_text *text, const struct ca_patch_record *r)
{
	uint8_t now[CA_SITE_BYTES];

	return get_state(r) == CA_RECORD_ON && ca_patch_mem_read(text, r->address, now, r->site.length) &&
	       memcmp(now, r->site.original, r->site.length) == 0;
}

static void forget_live(struct ca_patch_record *r)
{
	uint32_t i = 0;

	while (i < live_count && live[i] != (uint16_t)(r - ca_patch_records))
		i++;
	if (i < live_count)
		live[i] = live[--live_count];
	set_state(r, CA_RECORD_OFF);
}

/* True: the site is in force, or will be when finish_placing has run. */
static bool place_one(const struct ca_patch_text *text, const struct ca_site *shared, uintptr_t bias,
		      bool traps_allowed)
{
	/* what is checked is what is used, whatever happens to memory shared with the conductor */
	const struct ca_site copy = *shared, *site = &copy;
	struct ca_patch_record *r = ca_patch_record_find(site, bias);
	uintptr_t at = (uintptr_t)site->address + bias;
	uint8_t now[CA_SITE_BYTES + 8];

	if (r && get_state(r) != CA_RECORD_OFF) {
		if (!text_is_new(text, r))
			return true;
		forget_live(r);
	}
	if (site->length == 0 || site->length > CA_SITE_BYTES ||
	    !ca_patch_mem_read(text, at, now, site->length) ||
	    memcmp(now, site->original, site->length) != 0 || overlaps_live(at, at + site->length))
		return false;
	if (!r)
		r = ca_patch_record_make(text, site, bias, others_change);
	if (!r || !keep_current(r) || (r->trap && !traps_allowed) || overlaps_live(at, at + r->footprint))
		return false;
	/* a jump made of bytes behind the site: they must still be what it was made for */
	if (!r->trap && r->footprint > site->length &&
	    (!ca_patch_mem_read(text, at, now, r->footprint) ||
	     memcmp(now + site->length, r->patched + site->length, (size_t)r->footprint - site->length) != 0))
		return false;
	if (!ca_patch_trap_take())
		return false;
	set_state(r, CA_RECORD_PLACING);
	live[live_count++] = (uint16_t)(r - ca_patch_records);
	if (write_traps(text, r))
		return true;
	set_state(r, CA_RECORD_OFF);
	live_count--;
	return false;
}

/* Also to what stood before: there is a trap for a moment. careful: no trap may stay. */
static bool may_change_text(bool *careful)
{
	static const struct timespec pause = { .tv_nsec = 50000 };
	struct ca_patch_threads threads = ca_patch_threads_look();

	/* libc blocks all signals for some us where it starts threads: look again */
	for (int i = 0; i < LOOKS && threads.blocked && !threads.traced; i++) {
		ca_sys(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
		threads = ca_patch_threads_look();
	}
	/* a trap would kill a thread that blocks it, and confuse a debugger */
	*careful = threads.blocked || threads.traced;
	return !*careful || (threads.count <= 1 && !threads.unknown);
}

unsigned ca_patch_install(const struct ca_site *site, size_t n,
			  bool (*bias_of)(uint32_t module, uintptr_t *bias))
{
	struct ca_patch_text text;
	unsigned failed = 0;
	bool careful;

	if (!n)
		return 0;
	if (!ready || !try_lock())
		return (unsigned)n;
	if (!may_change_text(&careful)) {
		unlock();
		return (unsigned)n;
	}
	ca_patch_mem_open(&text);
	batch.site = site;
	batch.n = n;
	/* The short ones last: their jumps are made of bytes that no other site must change. */
	for (unsigned shorts = 0; shorts < 2; shorts++)
		for (size_t i = 0; i < n; i++) {
			uintptr_t bias;

			if ((site[i].length < CA_PATCH_JUMP) == shorts && bias_of(site[i].module, &bias) &&
			    !place_one(&text, &site[i], bias, !careful))
				failed++;
		}
	batch.n = 0;
	finish_placing(&text);
	ca_patch_mem_close(&text);
	unlock();
	return failed;
}

/* Meetings are not: they may be in the way of what is selected next. */
static bool permanent(const struct ca_patch_record *r)
{
	return r->site.kind == CA_SITE_COUNT || r->site.kind == CA_SITE_WRAP;
}

/* Somebody may have unloaded the module or patched over us: only our own bytes go. */
static bool is_ours(const struct ca_patch_text *text, const struct ca_patch_record *r)
{
	uint8_t now[CA_SITE_BYTES], traps[CA_SITE_BYTES];

	if (!ca_patch_mem_read(text, r->address, now, r->site.length))
		return false;
	trap_bytes(r, traps); /* where the steps after the first were not possible */
	return memcmp(now, r->patched, r->site.length) == 0 || memcmp(now, traps, r->site.length) == 0;
}

static bool anything_but(bool (*keep)(const struct ca_patch_record *))
{
	for (uint32_t i = 0; i < live_count; i++)
		if (!keep(&ca_patch_records[live[i]]))
			return true;
	return false;
}

static void remove_locked(bool (*keep)(const struct ca_patch_record *))
{
	struct ca_patch_text text;
	uint32_t kept = 0;

	ca_patch_mem_open(&text);
	for (uint32_t i = 0; i < live_count; i++) {
		struct ca_patch_record *r = &ca_patch_records[live[i]];

		if (!keep(r)) {
			if (!is_ours(&text, r)) {
				set_state(r, CA_RECORD_OFF);
				continue;
			}
			set_state(r, CA_RECORD_REMOVING);
			write_trap(&text, r);
		}
		live[kept++] = live[i];
	}
	live_count = kept;
	finish_removing(&text);
	ca_patch_mem_close(&text);
}

/* The caller holds the lock. */
static bool remove_with_care(bool (*keep)(const struct ca_patch_record *))
{
	bool careful;

	if (!anything_but(keep))
		return true;
	if (!may_change_text(&careful))
		return false;
	remove_locked(keep);
	return true;
}

static bool remove_if(bool (*keep)(const struct ca_patch_record *))
{
	bool done;

	if (!ready || !try_lock())
		return false;
	done = remove_with_care(keep);
	unlock();
	return done;
}

/* What the program has asked for stays. */
static bool keep_wrapped(const struct ca_patch_record *r)
{
	return r->site.kind == CA_SITE_WRAP;
}

bool ca_patch_remove(void)
{
	return remove_if(permanent);
}

bool ca_patch_remove_all(void)
{
	return remove_if(keep_wrapped);
}

void ca_patch_retire(uintptr_t pc)
{
	int number = ca_patch_mem_record(pc);

	if (number < 0 || atomic_load_explicit(&ca_patch_records[number].retired, memory_order_relaxed))
		return;
	atomic_store_explicit(&ca_patch_records[number].retired, true, memory_order_relaxed);
	/* release: pairs with the acquire in ca_patch_remove_retired */
	atomic_store_explicit(&some_retired, true, memory_order_release);
}

void ca_patch_remove_retired(void)
{
	if (!atomic_load_explicit(&some_retired, memory_order_relaxed) ||
	    !atomic_exchange_explicit(&some_retired, false, memory_order_acquire))
		return;
	if (!ready || !try_lock()) {
		atomic_store_explicit(&some_retired, true, memory_order_relaxed);
		return;
	}
	/* where it may not be done now, they go with their selection */
	remove_with_care(keep_current);
	unlock();
}

static _Atomic pid_t holder;

bool ca_patch_hold(void)
{
	static const struct timespec pause = { .tv_nsec = 100000 };

	/* a destructor that closes another one */
	if (!ready || atomic_load_explicit(&holder, memory_order_relaxed) == ca_sys_gettid())
		return false;
	for (int i = 0; i < HOLD_LOOKS; i++) {
		if (try_lock()) {
			atomic_store_explicit(&holder, ca_sys_gettid(), memory_order_relaxed);
			return true;
		}
		ca_sys(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
	}
	return false;
}

void ca_patch_release(bool held)
{
	if (!held)
		return;
	atomic_store_explicit(&holder, 0, memory_order_relaxed);
	unlock();
}

void ca_patch_trim(void)
{
	bool held = ca_patch_hold();

	ca_patch_mem_trim();
	ca_patch_release(held);
}

bool ca_patch_owns(uintptr_t address)
{
	return ca_patch_mem_has(address);
}

bool ca_patch_is_busy(void)
{
	return atomic_load_explicit(&lock, memory_order_relaxed);
}

void ca_patch_forked(void)
{
	struct ca_patch_text text;

	if (!ready || !atomic_load_explicit(&lock, memory_order_relaxed))
		return;
	/* The thread that held the lock is not here. Whatever step it was at can be done again. */
	ca_patch_mem_open(&text);
	live_count = 0;
	for (uint32_t i = 0; i < atomic_load_explicit(&ca_patch_record_count, memory_order_relaxed); i++)
		if (get_state(&ca_patch_records[i]) != CA_RECORD_OFF)
			live[live_count++] = (uint16_t)i;
	for (uint32_t i = 0; i < live_count; i++) {
		struct ca_patch_record *r = &ca_patch_records[live[i]];

		if (get_state(r) == CA_RECORD_PLACING)
			write_traps(&text, r);
		else if (get_state(r) == CA_RECORD_REMOVING)
			write_trap(&text, r);
	}
	finish_placing(&text);
	finish_removing(&text);
	ca_patch_mem_close(&text);
	unlock();
}

/* ---- functions that the program wraps ----------------------------------------------------- */
static uintptr_t unwrapped; /* guarded by the lock */

static bool keep_others(const struct ca_patch_record *r)
{
	return r->address != unwrapped || r->site.kind != CA_SITE_WRAP;
}

static bool no_bias(uint32_t module, uintptr_t *bias)
{
	(void)module;
	*bias = 0;
	return true;
}

/* Of a site that is in force: where its copy goes on. 0: it is not. */
static uintptr_t copy_of(const struct ca_site *site, unsigned offset)
{
	const struct ca_patch_record *r;
	uintptr_t at = 0;

	if (!ca_patch_hold())
		return 0;
	r = ca_patch_record_find(site, 0);
	if (r && get_state(r) == CA_RECORD_ON)
		at = r->place.body + r->code_at[offset];
	ca_patch_release(true);
	return at;
}

static uintptr_t wrap(const struct ca_site *site, unsigned copy)
{
	static const struct timespec pause = { .tv_nsec = 1000000 };

	/* somebody patches, or a thread that begins has its signals blocked still: on a busy machine, for long */
	for (int i = 0; ready && i < HOLD_LOOKS / 10; i++) {
		if (ca_patch_install(site, 1, no_bias) == 0)
			return copy_of(site, copy);
		ca_sys(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
	}
	return 0;
}

static bool unwrap(uintptr_t address)
{
	bool done;

	if (!ca_patch_hold())
		return false;
	unwrapped = address;
	done = ca_patch_trap_take() && remove_with_care(keep_others);
	ca_patch_release(true);
	return done;
}

const struct ca_patch_wrapping ca_patch_wrapping = { wrap, unwrap };

struct ca_patch_stats ca_patch_stats(void)
{
	struct ca_patch_stats stats = { 0 };

	for (uint32_t i = 0; i < live_count; i++) {
		if (ca_patch_records[live[i]].trap)
			stats.traps++;
		else
			stats.jumps++;
	}
	stats.records = atomic_load_explicit(&ca_patch_record_count, memory_order_relaxed);
	return stats;
}
