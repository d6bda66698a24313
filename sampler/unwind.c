/* Walking a stack; see unwind.h. Runtime; safe in handlers. x86-64.
 *
 * A row may be wrong, and a stack broken: every word is read with process_vm_readv-like
 * safety only where it has to be. Here: reads stay between the first sp and the end of its
 * mapping as far as frames move outward; a chain that stops moving outward ends the walk. */
#include "sampler/unwind.h"
#include "causal/runtime/patch.h"
#include "sampler/modules.h"
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* Words are copied from the stack in one piece of up to COPY bytes by a system call that
 * fails where memory is not readable, instead of raising SIGSEGV in the program. */
enum { COPY = 2048 };
struct window {
	uintptr_t low, high;
	char data[COPY];
};

static bool fetch(struct window *w, uintptr_t address)
{
	struct iovec to = { w->data, COPY }, from = { (void *)address, COPY };
	ssize_t got;

	/* a partial copy ends at the first page that cannot be read */
	got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	if (got < (ssize_t)sizeof(uintptr_t)) {
		size_t left = 4096 - (address & 4095);

		from.iov_len = to.iov_len = left < COPY ? left : COPY;
		got = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	}
	if (got < (ssize_t)sizeof(uintptr_t))
		return false;
	w->low = address;
	w->high = address + (uintptr_t)got;
	return true;
}

static bool load(struct window *w, uintptr_t address, uintptr_t *value)
{
	if (address & 7)
		return false;
	if ((address < w->low || address + sizeof *value > w->high) && !fetch(w, address))
		return false;
	memcpy(value, w->data + (address - w->low), sizeof *value);
	return true;
}

CA_SIGSAFE void ca_unwind_registers(struct ca_registers *r, uintptr_t all[16], const void *ucontext)
{
	static const unsigned char order[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						 REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						 REG_R12, REG_R13, REG_R14, REG_R15 };
	const greg_t *g = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;

	for (unsigned i = 0; i < 16; i++)
		all[i] = (uintptr_t)g[order[i]];
	r->pc = (uintptr_t)g[REG_RIP];
	r->sp = (uintptr_t)g[REG_RSP];
	r->fp = (uintptr_t)g[REG_RBP];
	r->all = all;
}

/* The signal frame that the kernel built: the ucontext stands at sp, behind the return
 * address that __restore_rt was entered by. */
static bool step_signal(struct ca_registers *r, struct window *w)
{
	const size_t gregs = offsetof(ucontext_t, uc_mcontext.gregs);
	uintptr_t pc, sp, fp;

	if (!load(w, r->sp + gregs + REG_RIP * 8, &pc) ||
	    !load(w, r->sp + gregs + REG_RSP * 8, &sp) || !load(w, r->sp + gregs + REG_RBP * 8, &fp))
		return false;
	r->pc = pc;
	r->sp = sp;
	r->fp = fp;
	r->all = NULL;
	return true;
}

static bool frame_address(const struct ca_unwind_row *row, const struct ca_registers *r,
			  struct window *w, uintptr_t file_pc, uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)(intptr_t)row->cfa_offset, value;

	switch (row->kind) {
	case CA_UNWIND_SP:
		*cfa = r->sp + offset;
		return true;
	case CA_UNWIND_FP:
		*cfa = r->fp + offset;
		return true;
	case CA_UNWIND_REG:
		if (!r->all || row->reg > 15)
			return false;
		*cfa = r->all[row->reg] + offset;
		return true;
	case CA_UNWIND_DEREF:
		if (!load(w, r->fp + offset, &value))
			return false;
		*cfa = value;
		return true;
	case CA_UNWIND_PLT:
		*cfa = r->sp + offset + ((file_pc & 15) >= row->reg ? 8 : 0);
		return true;
	default:
		return false;
	}
}

/* One frame outward. False: cannot, *ended tells whether it is the outermost frame. */
static bool step(const struct ca_index *index, uintptr_t file_pc, struct ca_registers *r,
		 struct window *w, bool *signal_frame, uintptr_t *cfa_out, bool *ended)
{
	const struct ca_unwind_row *row = ca_index_find_row(index, file_pc);
	uintptr_t cfa, ra, fp = r->fp;

	*signal_frame = false;
	*ended = false;
	if (!row || row->kind == CA_UNWIND_NONE) {
		*ended = row && row->reg == 1;
		return false;
	}
	if (row->kind == CA_UNWIND_SIGNAL) {
		*signal_frame = true;
		*cfa_out = r->sp;
		return step_signal(r, w);
	}
	if (row->ra_offset == 0) {
		*ended = true;
		return false;
	}
	if (!frame_address(row, r, w, file_pc, &cfa) || cfa <= r->sp - 128 ||
	    !load(w, cfa + (uintptr_t)(intptr_t)row->ra_offset, &ra))
		return false;
	if (row->kind == CA_UNWIND_DEREF) {
		if (!load(w, r->fp + (uintptr_t)(intptr_t)row->fp_offset, &fp))
			return false;
	} else if (row->fp_offset && !load(w, cfa + (uintptr_t)(intptr_t)row->fp_offset, &fp)) {
		return false;
	}
	r->pc = ra;
	r->sp = cfa;
	r->fp = fp;
	r->all = NULL;
	*cfa_out = cfa;
	return true;
}

CA_SIGSAFE void ca_unwind(struct ca_session *session, const struct ca_registers *start, bool is_call,
			  struct ca_stack *out)
{
	struct ca_registers r = *start;
	struct window w;
	int saved = errno;
	uintptr_t cfa = 0;

	w.low = w.high = 0;
	out->depth = 0;
	out->complete = false;
	while (out->depth < CA_UNWIND_DEPTH && r.pc) {
		uintptr_t original, previous_sp = r.sp;
		const struct ca_index *index;
		struct ca_loaded *loaded;
		bool signal_frame, ended;
		intptr_t shift;

		if (ca_patch_translate(r.pc, &original, &shift)) {
			r.pc = original;
			r.sp += (uintptr_t)shift;
			previous_sp = r.sp;
		}
		r.pc -= is_call;
		loaded = ca_modules_find(session, r.pc);
		if (!loaded)
			break;
		out->place[out->depth] = CA_PLACE(loaded->module, r.pc - loaded->bias);
		out->cfa[out->depth++] = r.sp;
		index = atomic_load_explicit(&loaded->index, memory_order_acquire);
		if (!index)
			break;
		if (!step(index, r.pc - loaded->bias, &r, &w, &signal_frame, &cfa, &ended)) {
			out->complete = ended;
			break;
		}
		out->cfa[out->depth - 1] = cfa;
		is_call = !signal_frame;
		if (r.sp <= previous_sp && !signal_frame)
			break;
	}
	if (!r.pc)
		out->complete = true;
	errno = saved;
}
