/* Patching the program's text while it runs. Runtime; see patch.c for the protocol. */
#ifndef CA_CAUSAL_RUNTIME_PATCH_H
#define CA_CAUSAL_RUNTIME_PATCH_H
#include "core/session.h"
#include <stdbool.h>

/* Once, in the constructor. Takes SIGTRAP only when an int3 is really placed (chains to the
 * program's own handler). Returns false if the text cannot be made writable: then exact S
 * and nop progress points are off, with the reason in *why. */
bool ca_patch_init(const char **why);

/* How the trampolines call us. Set before the first install; called with all registers of
 * the program saved, compiled without vector registers. sp: the program's stack pointer at
 * the site (entry: at the return address; exit: at the displaced instructions). */
struct ca_patch_hooks {
	void (*enter)(uintptr_t sp);
	void (*exit)(uintptr_t sp);
	void (*meet)(void);
};
void ca_patch_set_hooks(const struct ca_patch_hooks *hooks);

/* A trampoline of CA_SITE_COUNT adds one to (*counters)[point] of the calling thread without a
 * call: the thread-local pointer below (initial-exec) holds the thread's count[] of its slot. */
extern __thread uint64_t *ca_patch_counters __attribute__((tls_model("initial-exec")));

/* Place sites; bias of the site's module is asked through `bias` (false: not loaded here).
 * Handler-safe. With other threads alive the 5-byte jump appears in two steps: int3 at once,
 * the jump when ca_patch_step has seen that no thread can be in the middle of the bytes.
 * Returns the number of sites that could not be placed. */
CA_SIGSAFE unsigned ca_patch_install(const struct ca_site *site, size_t n,
				     bool (*bias)(uint32_t module, uintptr_t *bias));
/* Take every non-permanent site (all but COUNT and MEET) out again. */
CA_SIGSAFE void ca_patch_remove(void);
/* Advance pending steps; called from ticks of any thread. pc: where that thread was. True
 * when nothing is pending any more. */
CA_SIGSAFE bool ca_patch_step(uintptr_t pc);
/* For the unwinder: is pc inside a trampoline? Then *original is the equivalent address in the
 * program's text and *sp_shift what to add to sp to get the program's own. */
CA_SIGSAFE bool ca_patch_translate(uintptr_t pc, uintptr_t *original, intptr_t *sp_shift);

#endif
