/* SPDX-License-Identifier: MIT */
/* From the samples of a run to its profile: puts names to the places, puts stacks together, finds out who has
 * ended whose wait. Driver's process, the conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_SAMPLING_H
#define CA_CAUSAL_CONDUCTOR_SAMPLING_H
#include "binary/objects.h"
#include "causal/results/samples.h"
#include "core/samplers.h"
#include "core/sink.h"
#include "core/windows.h"

struct ca_sampling;
struct ca_session;
struct ca_settings;

/* All borrowed. Samples outside of the windows, of each sampler and of all, are left out. NULL: no memory. */
struct ca_sampling *ca_sampling_new(struct ca_samples *samples, struct ca_session *session,
				    struct ca_objects *objects,
				    const struct ca_windows *const windows[CA_SAMPLER_COUNT + 1],
				    const struct ca_settings *settings);
void ca_sampling_free(struct ca_sampling *sampling); /* NULL is fine */
/* Tell of each sample in the window, too, but for waits for other threads of the program; innermost frame first.
 * thread: its index; flags: CA_SAMPLE_WAITING, CA_SAMPLE_IN_KERNEL. */
typedef void ca_sampling_told(void *context, uint32_t thread, const ca_place *frame, unsigned frames,
			      uint64_t ns, unsigned flags);
void ca_sampling_tap(struct ca_sampling *sampling, ca_sampling_told *told, void *context);
/* Events of one thread, as a rings' reader hands them on. By themselves, CA_KEY_BLOCKED is a wait that was open at that
 * time, with when it began, and CA_KEY_WOKEN its number. */
void ca_sampling_take(struct ca_sampling *sampling, const struct ca_source *from,
		      const struct ca_event *event, size_t n);
/* What the thread, or its process, is called; NULL: that did not change. */
void ca_sampling_name(struct ca_sampling *sampling, const struct ca_source *from, const char *process,
		      const char *thread);
/* Our own runtime, whose frames nobody wants to see. */
bool ca_sampling_is_runtime(const char *path);
/* The name of code that a process, by its index, has made itself; NULL: unknown, perhaps not yet. Borrowed. */
const char *ca_sampling_made_code(struct ca_sampling *sampling, uint32_t process, uint64_t address);
/* After the events that had been raised by then: stacks whose binaries have been indexed by now; who had to wait for
 * whom. */
void ca_sampling_step(struct ca_sampling *sampling, uint64_t drained);
/* No more events: the rest, and the threads. */
void ca_sampling_end(struct ca_sampling *sampling, uint64_t now);

#endif
