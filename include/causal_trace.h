/* SPDX-License-Identifier: MIT */
/* causal_trace.h: events of a program's own, for `causal trace` and `causal --trace`.
 *
 *   CAUSAL_TRACE_FUNCTION                      a burst, from here to the end of the function
 *   CAUSAL_TRACE_FUNCTION_NAMED("name")        the same with a name of your own
 *   CAUSAL_TRACE_FUNCTION_UPDATE(value, "label")  the function's burst goes on with this value
 *   CAUSAL_TRACE_SCOPE(tag, value)             a burst called `tag`, to the end of the block
 *   CAUSAL_TRACE_SCOPE_UPDATE(tag, value, "label")
 *   CAUSAL_TRACE_BEGIN("name")                 a named region begins ...
 *   CAUSAL_TRACE_END("name")                   ... and ends, in the same thread or task
 *   CAUSAL_TRACE_EVENT("name", value)          happens now
 *   CAUSAL_TRACE_EVENTS("name", value, ...)    up to four pairs, all with one time
 *   CAUSAL_TRACE_EVENT_ID(id, "name", value)   one, with a number of your choice in Paraver
 *   CAUSAL_TRACE_STATE_BEGIN("name", value, "label")     the thread or task is in a state ...
 *   CAUSAL_TRACE_STATE_END("name")             ... and no longer
 *   CAUSAL_TRACE_SUBSTATE_BEGIN("name", value, "label")  the same, of a sub-state
 *   CAUSAL_TRACE_SUBSTATE_END("name")
 *   CAUSAL_TRACE_SEND("name", id)              something goes from here ...
 *   CAUSAL_TRACE_RECEIVE("name", id)           ... to there; no other one has this id
 *   CAUSAL_TRACE_MUTEX_LOCK(mutex)             pthread_mutex_lock, _trylock, _unlock with events
 *   CAUSAL_TRACE_MUTEX_TRYLOCK(mutex)            of who waits and who holds; these two have the
 *   CAUSAL_TRACE_MUTEX_UNLOCK(mutex)             value of the call. C++: causal_trace_mutex<M>
 *   CAUSAL_TRACE_THREAD_NAME(text)             what the calling thread is called
 *   CAUSAL_TRACE_PROCESS_NAME(text)
 *   CAUSAL_TRACE_TASK_RUN(task, "label")       the thread goes on with this task (any number) ...
 *   CAUSAL_TRACE_TASK_PAUSE(task)              ... leaves it, for another thread to go on with ...
 *   CAUSAL_TRACE_TASK_DONE(task)               ... or has finished it
 *   CAUSAL_TRACE_TASK_EVENT(task, "name", value)  happens in the thread that goes on with the task next
 *
 * Each is a statement, but for the three of mutexes. Bursts of functions and scopes end by
 * themselves: at the end of the block, on return, break and goto, and when a C++ exception passes.
 *
 * Nothing is to be linked. An event that nobody traces costs one no-operation instruction; the
 * code behind it lies out of line. Under `causal trace` the instruction becomes a jump there, and
 * that code leaves at once where nobody wants the event (--events).
 * Values are whole numbers, 64 bits with a sign; 0 stands for the end, and is refused for bursts. Names and
 * labels are string literals. Define CAUSAL_DISABLE before including this file to compile it away.
 *
 * Each event has a note in the ELF file, owner "causal", type 2: three distances, each from the
 * field that holds it, 4 bytes: to the instruction, to the code out of line, and to what that code
 * looks at and calls. The notes are loaded with the program, so that they are found
 * without its file. */
#ifndef CAUSAL_TRACE_H
#define CAUSAL_TRACE_H

enum causal_trace_kind_ {
	CAUSAL_TRACE_KIND_BEGIN_ = 1,
	CAUSAL_TRACE_KIND_END_,
	CAUSAL_TRACE_KIND_UPDATE_,
	CAUSAL_TRACE_KIND_POINT_,
	CAUSAL_TRACE_KIND_LATER_,   /* value: the address of a task and of the value */
	CAUSAL_TRACE_KIND_WAITING_, /* for the mutex at address `value` */
	CAUSAL_TRACE_KIND_LOCKED_,
	CAUSAL_TRACE_KIND_UNLOCKED_,
	CAUSAL_TRACE_KIND_THREAD_, /* value: the address of the name */
	CAUSAL_TRACE_KIND_PROCESS_,
	CAUSAL_TRACE_KIND_TASK_RUN_,
	CAUSAL_TRACE_KIND_TASK_PAUSE_,
	CAUSAL_TRACE_KIND_TASK_DONE_,
	CAUSAL_TRACE_KIND_SEVERAL_, /* value: the address of a struct causal_trace_several_ */
	CAUSAL_TRACE_KIND_STATE_,
	CAUSAL_TRACE_KIND_STATE_END_,
	CAUSAL_TRACE_KIND_SUBSTATE_,
	CAUSAL_TRACE_KIND_SUBSTATE_END_,
	CAUSAL_TRACE_KIND_SEND_,
	CAUSAL_TRACE_KIND_RECEIVE_
};

/* What one place in the code raises. */
struct causal_trace_key_ {
	const char *name;
	const char *label; /* of the value; or NULL */
	const char *where; /* file:line */
	unsigned short id; /* 0: to be handed out */
	unsigned short kind;
};

/* Happens at one time. */
struct causal_trace_several_ {
	const struct causal_trace_key_ *key;
	unsigned long long n, value[4];
};

/* of: whose burst it is; `key` itself but for updates. */
typedef void causal_trace_raise_(const struct causal_trace_key_ *key, const struct causal_trace_key_ *of,
				 unsigned long long value);

struct causal_trace_hook_ {
	causal_trace_raise_ *raise;
	const struct causal_trace_key_ *const *off; /* those that nobody wants, by CAUSAL_TRACE_OFF_ */
};
enum { CAUSAL_TRACE_OFFS_ = 4096 };
#define CAUSAL_TRACE_OFF_(key) (((__SIZE_TYPE__)(key) >> 5) % CAUSAL_TRACE_OFFS_)

#define CAUSAL_TRACE_TEXT_2_(x) #x
#define CAUSAL_TRACE_TEXT_(x)   CAUSAL_TRACE_TEXT_2_(x)
#define CAUSAL_TRACE_WHERE_     __FILE__ ":" CAUSAL_TRACE_TEXT_(__LINE__)
#ifdef __cplusplus
#define CAUSAL_TRACE_SIGNATURE_ __PRETTY_FUNCTION__
#define CAUSAL_TRACE_NULL_      nullptr
#else
#define CAUSAL_TRACE_SIGNATURE_ __func__
#define CAUSAL_TRACE_NULL_      ((void *)0)
#endif

/* Of no linkage: usable in the program's own inline functions, and never emitted. */
#ifdef __cplusplus
#define CAUSAL_TRACE_INLINE_ inline __attribute__((always_inline))
#else
#define CAUSAL_TRACE_INLINE_ extern __inline__ __attribute__((gnu_inline, always_inline))
#endif

#if defined(CAUSAL_DISABLE) || !defined(__ELF__) || !defined(__x86_64__) || !defined(__LP64__)

CAUSAL_TRACE_INLINE_ int causal_trace_is_on_(void)
{
	return 0;
}
#define CAUSAL_TRACE_CALL_(key, of, value) ((void)(key), (void)(of), (void)(value))

#else

#ifdef __cplusplus
extern "C" {
#endif
/* What traces the program looks at a library that is opened late before its code runs. */
void causal_trace_loaded_(void (*code)(void)) __attribute__((weak));
static __attribute__((constructor, used)) void causal_trace_here_(void)
{
	if (causal_trace_loaded_)
		causal_trace_loaded_(causal_trace_here_);
}
/* One in each executable and library, for what traces the program. */
extern struct causal_trace_hook_ causal_trace_hook_;
__attribute__((weak, visibility("hidden"), used)) struct causal_trace_hook_ causal_trace_hook_ = {
	CAUSAL_TRACE_NULL_, CAUSAL_TRACE_NULL_
};
#ifdef __cplusplus
}
#endif
#define CAUSAL_TRACE_CALL_(key, of, value)                                                                   \
	do {                                                                                                 \
		if (__atomic_load_n(&causal_trace_hook_.off[CAUSAL_TRACE_OFF_(of)], __ATOMIC_RELAXED) !=     \
		    (of))                                                                                    \
			causal_trace_hook_.raise(key, of, value);                                            \
	} while (0)

/* "?": in the section group of the code, if it is in one, so that the linker keeps and drops both
 * together. */
CAUSAL_TRACE_INLINE_ int causal_trace_is_on_(void)
{
	__asm__ goto("7710: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
		     ".pushsection .note.causal, \"a?\", %%note\n"
		     ".balign 4\n"
		     ".4byte 7, 12, 2\n"
		     ".asciz \"causal\"\n"
		     ".balign 4\n"
		     ".4byte 7710b - .\n"
		     ".4byte %l[on] - .\n"
		     ".4byte causal_trace_hook_ - .\n"
		     ".popsection\n"
		     :
		     :
		     : "memory"
		     : on);
	return 0;
on:
	return 1;
}

#endif

CAUSAL_TRACE_INLINE_ void causal_trace_(const struct causal_trace_key_ *key,
					const struct causal_trace_key_ *of, unsigned long long value)
{
	if (causal_trace_is_on_())
		CAUSAL_TRACE_CALL_(key, of, value);
}

/* The end of a scope: `end` is the key of the event that closes it. */
CAUSAL_TRACE_INLINE_ void causal_trace_close_(const struct causal_trace_key_ *const *of)
{
	static const struct causal_trace_key_ end = { CAUSAL_TRACE_NULL_, CAUSAL_TRACE_NULL_,
						      CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_END_ };

	causal_trace_(&end, *of, 0);
}

#if defined(__GNUC__) && !defined(__clang__) || defined(__clang_major__) && __clang_major__ >= 14
#define CAUSAL_TRACE_ERROR_(text) __attribute__((error(text)))
#else
#define CAUSAL_TRACE_ERROR_(text)
#endif
#ifdef __cplusplus
extern "C" {
#endif
void causal_trace_zero_(void) CAUSAL_TRACE_ERROR_("0 stands for the end of a burst: no value for it");
void causal_trace_one_(void)
	CAUSAL_TRACE_ERROR_("1 stands for the function itself: no value for its updates");
void causal_trace_range_(void) CAUSAL_TRACE_ERROR_("the id of an event is 1 to 32767");
#ifdef __cplusplus
}
#endif
/* Known to the compiler, and not allowed. What it does not know, the runtime checks. */
#define CAUSAL_TRACE_REFUSE_(bad, complain)                                                                  \
	do {                                                                                                 \
		if (__builtin_constant_p(bad) && (bad))                                                      \
			complain();                                                                          \
	} while (0)

#define CAUSAL_TRACE_KEY_(variable, name, label, id, kind)                                                   \
	static const struct causal_trace_key_ variable = { name, label, CAUSAL_TRACE_WHERE_, id, kind }
#define CAUSAL_TRACE_OPEN_(variable, key, value)                                                             \
	const struct causal_trace_key_ *const variable                                                       \
		__attribute__((cleanup(causal_trace_close_), unused)) = &key;                                \
	causal_trace_(&key, &key, value)
#define CAUSAL_TRACE_ONE_(name, label, id, kind, value)                                                      \
	do {                                                                                                 \
		CAUSAL_TRACE_KEY_(causal_trace_key_here_, name, label, id, kind);                            \
		causal_trace_(&causal_trace_key_here_, &causal_trace_key_here_,                              \
			      (unsigned long long)(value));                                                  \
	} while (0)
#define CAUSAL_TRACE_CHANGE_(of, value, label)                                                               \
	do {                                                                                                 \
		CAUSAL_TRACE_KEY_(causal_trace_key_here_, CAUSAL_TRACE_NULL_, label, 0,                      \
				  CAUSAL_TRACE_KIND_UPDATE_);                                                \
		CAUSAL_TRACE_REFUSE_((value) == 0, causal_trace_zero_);                                      \
		causal_trace_(&causal_trace_key_here_, of, (unsigned long long)(value));                     \
	} while (0)

#define CAUSAL_TRACE_FUNCTION_AS_(name)                                                                      \
	CAUSAL_TRACE_KEY_(causal_trace_key_function_, name, __func__, 0, CAUSAL_TRACE_KIND_BEGIN_);          \
	CAUSAL_TRACE_OPEN_(causal_trace_function_, causal_trace_key_function_, 1)
#define CAUSAL_TRACE_FUNCTION             CAUSAL_TRACE_FUNCTION_AS_(CAUSAL_TRACE_SIGNATURE_)
#define CAUSAL_TRACE_FUNCTION_NAMED(name) CAUSAL_TRACE_FUNCTION_AS_("" name)
#define CAUSAL_TRACE_FUNCTION_UPDATE(value, label)                                                           \
	do {                                                                                                 \
		CAUSAL_TRACE_REFUSE_((value) == 1, causal_trace_one_);                                       \
		CAUSAL_TRACE_CHANGE_(causal_trace_function_, value, "" label);                               \
	} while (0)

#define CAUSAL_TRACE_SCOPE(tag, value)                                                                       \
	CAUSAL_TRACE_KEY_(causal_trace_key_scope_##tag, #tag, CAUSAL_TRACE_NULL_, 0,                         \
			  CAUSAL_TRACE_KIND_BEGIN_);                                                         \
	CAUSAL_TRACE_REFUSE_((value) == 0, causal_trace_zero_);                                              \
	CAUSAL_TRACE_OPEN_(causal_trace_scope_##tag, causal_trace_key_scope_##tag,                           \
			   (unsigned long long)(value))
#define CAUSAL_TRACE_SCOPE_UPDATE(tag, value, label)                                                         \
	CAUSAL_TRACE_CHANGE_(causal_trace_scope_##tag, value, "" label)

#define CAUSAL_TRACE_BEGIN(name)                                                                             \
	CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_BEGIN_, 1)
#define CAUSAL_TRACE_END(name) CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_END_, 0)
#define CAUSAL_TRACE_EVENT(name, value)                                                                      \
	CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_POINT_, value)
#define CAUSAL_TRACE_EVENT_ID(id, name, value)                                                               \
	do {                                                                                                 \
		CAUSAL_TRACE_REFUSE_((id) < 1 || (id) > 32767, causal_trace_range_);                         \
		CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, (unsigned short)(id),                         \
				  CAUSAL_TRACE_KIND_POINT_, value);                                          \
	} while (0)

#define CAUSAL_TRACE_POINT_(name)                                                                            \
	{                                                                                                    \
		"" name, CAUSAL_TRACE_NULL_, CAUSAL_TRACE_WHERE_, 0, CAUSAL_TRACE_KIND_POINT_                \
	}
#define CAUSAL_TRACE_SEVERAL_(v1, v2, v3, v4, ...)                                                           \
	do {                                                                                                 \
		static const struct causal_trace_key_ causal_trace_keys_[] = { __VA_ARGS__ };                \
		CAUSAL_TRACE_KEY_(causal_trace_key_here_, CAUSAL_TRACE_NULL_, CAUSAL_TRACE_NULL_, 0,         \
				  CAUSAL_TRACE_KIND_SEVERAL_);                                               \
		causal_trace_at_once_(&causal_trace_key_here_, causal_trace_keys_,                           \
				      sizeof causal_trace_keys_ / sizeof *causal_trace_keys_,                \
				      (unsigned long long)(v1), (unsigned long long)(v2),                    \
				      (unsigned long long)(v3), (unsigned long long)(v4));                   \
	} while (0)
#define CAUSAL_TRACE_1_(a, v) CAUSAL_TRACE_SEVERAL_(v, 0, 0, 0, CAUSAL_TRACE_POINT_(a))
#define CAUSAL_TRACE_2_(a, v, b, w)                                                                          \
	CAUSAL_TRACE_SEVERAL_(v, w, 0, 0, CAUSAL_TRACE_POINT_(a), CAUSAL_TRACE_POINT_(b))
#define CAUSAL_TRACE_3_(a, v, b, w, c, x)                                                                    \
	CAUSAL_TRACE_SEVERAL_(v, w, x, 0, CAUSAL_TRACE_POINT_(a), CAUSAL_TRACE_POINT_(b),                    \
			      CAUSAL_TRACE_POINT_(c))
#define CAUSAL_TRACE_4_(a, v, b, w, c, x, d, y)                                                              \
	CAUSAL_TRACE_SEVERAL_(v, w, x, y, CAUSAL_TRACE_POINT_(a), CAUSAL_TRACE_POINT_(b),                    \
			      CAUSAL_TRACE_POINT_(c), CAUSAL_TRACE_POINT_(d))
#define CAUSAL_TRACE_PICK_(a, v, b, w, c, x, d, y, macro, ...) macro
#define CAUSAL_TRACE_EVENTS(...)                                                                             \
	CAUSAL_TRACE_PICK_(__VA_ARGS__, CAUSAL_TRACE_4_, a_value_is_missing, CAUSAL_TRACE_3_,                \
			   a_value_is_missing, CAUSAL_TRACE_2_, a_value_is_missing, CAUSAL_TRACE_1_,         \
			   a_value_is_missing, 0)                                                            \
	(__VA_ARGS__)

#define CAUSAL_TRACE_IN_STATE_(name, label, kind, value)                                                     \
	do {                                                                                                 \
		CAUSAL_TRACE_REFUSE_((value) == 0, causal_trace_zero_);                                      \
		CAUSAL_TRACE_ONE_("" name, "" label, 0, kind, value);                                        \
	} while (0)
#define CAUSAL_TRACE_STATE_BEGIN(name, value, label)                                                         \
	CAUSAL_TRACE_IN_STATE_(name, label, CAUSAL_TRACE_KIND_STATE_, value)
#define CAUSAL_TRACE_STATE_END(name)                                                                         \
	CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_STATE_END_, 0)
#define CAUSAL_TRACE_SUBSTATE_BEGIN(name, value, label)                                                      \
	CAUSAL_TRACE_IN_STATE_(name, label, CAUSAL_TRACE_KIND_SUBSTATE_, value)
#define CAUSAL_TRACE_SUBSTATE_END(name)                                                                      \
	CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_SUBSTATE_END_, 0)
#define CAUSAL_TRACE_SEND(name, id)                                                                          \
	CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_SEND_, id)
#define CAUSAL_TRACE_RECEIVE(name, id)                                                                       \
	CAUSAL_TRACE_ONE_("" name, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_RECEIVE_, id)

#define CAUSAL_TRACE_THREAD_NAME(text)                                                                       \
	CAUSAL_TRACE_ONE_("thread name", CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_THREAD_,                   \
			  (__SIZE_TYPE__)(const char *)(text))
#define CAUSAL_TRACE_PROCESS_NAME(text)                                                                      \
	CAUSAL_TRACE_ONE_("process name", CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_PROCESS_,                 \
			  (__SIZE_TYPE__)(const char *)(text))

#define CAUSAL_TRACE_TASK_RUN(task, label)                                                                   \
	CAUSAL_TRACE_ONE_("task", "" label, 0, CAUSAL_TRACE_KIND_TASK_RUN_, task)
#define CAUSAL_TRACE_TASK_PAUSE(task)                                                                        \
	CAUSAL_TRACE_ONE_("task", CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_TASK_PAUSE_, task)
#define CAUSAL_TRACE_TASK_DONE(task)                                                                         \
	CAUSAL_TRACE_ONE_("task", CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_TASK_DONE_, task)
#define CAUSAL_TRACE_TASK_EVENT(task, name, value)                                                           \
	do {                                                                                                 \
		CAUSAL_TRACE_KEY_(causal_trace_key_here_, "" name, CAUSAL_TRACE_NULL_, 0,                    \
				  CAUSAL_TRACE_KIND_LATER_);                                                 \
		causal_trace_later_(&causal_trace_key_here_, (unsigned long long)(task),                     \
				    (unsigned long long)(value));                                            \
	} while (0)

CAUSAL_TRACE_INLINE_ void causal_trace_at_once_(const struct causal_trace_key_ *here,
						const struct causal_trace_key_ *key, unsigned long long n,
						unsigned long long v1, unsigned long long v2,
						unsigned long long v3, unsigned long long v4)
{
	if (causal_trace_is_on_()) {
		const struct causal_trace_several_ several = { key, n, { v1, v2, v3, v4 } };

		CAUSAL_TRACE_CALL_(here, here, (__SIZE_TYPE__)&several);
		(void)several;
	}
}

CAUSAL_TRACE_INLINE_ void causal_trace_later_(const struct causal_trace_key_ *key, unsigned long long task,
					      unsigned long long value)
{
	if (causal_trace_is_on_()) {
		const unsigned long long both[2] = { task, value };

		CAUSAL_TRACE_CALL_(key, key, (__SIZE_TYPE__)both);
		(void)both;
	}
}

/* ---- mutexes ---------------------------------------------------------------------------------*/

CAUSAL_TRACE_INLINE_ void causal_trace_mutex_(unsigned kind, const void *mutex)
{
	static const struct causal_trace_key_ key[] = {
		{ "mutex", CAUSAL_TRACE_NULL_, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_WAITING_ },
		{ "mutex", CAUSAL_TRACE_NULL_, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_LOCKED_ },
		{ "mutex", CAUSAL_TRACE_NULL_, CAUSAL_TRACE_NULL_, 0, CAUSAL_TRACE_KIND_UNLOCKED_ }
	};
	const struct causal_trace_key_ *k = &key[kind - CAUSAL_TRACE_KIND_WAITING_];

	causal_trace_(k, k, (unsigned long long)(__SIZE_TYPE__)mutex);
}

/* The caller includes pthread.h. */
#define CAUSAL_TRACE_MUTEX_LOCK(mutex)                                                                       \
	(causal_trace_mutex_(CAUSAL_TRACE_KIND_WAITING_, (mutex)),                                           \
	 causal_trace_locked_(pthread_mutex_lock(mutex), (mutex)))
#define CAUSAL_TRACE_MUTEX_TRYLOCK(mutex) causal_trace_tried_(pthread_mutex_trylock(mutex), (mutex))
#define CAUSAL_TRACE_MUTEX_UNLOCK(mutex)                                                                     \
	(causal_trace_mutex_(CAUSAL_TRACE_KIND_UNLOCKED_, (mutex)), pthread_mutex_unlock(mutex))

/* Where it failed, nobody holds it, and nobody waits any more. EOWNERDEAD (130) is a lock. */
CAUSAL_TRACE_INLINE_ int causal_trace_locked_(int status, const void *mutex)
{
	causal_trace_mutex_(status == 0 || status == 130 ? CAUSAL_TRACE_KIND_LOCKED_
							 : CAUSAL_TRACE_KIND_UNLOCKED_,
			    mutex);
	return status;
}

CAUSAL_TRACE_INLINE_ int causal_trace_tried_(int status, const void *mutex)
{
	if (status == 0 || status == 130)
		causal_trace_mutex_(CAUSAL_TRACE_KIND_LOCKED_, mutex);
	return status;
}
#ifdef __cplusplus
/* Any mutex of C++ with events: causal_trace_mutex<std::mutex> m; std::lock_guard guard(m); */
template <typename M> class causal_trace_mutex
{
      public:
	void lock()
	{
		causal_trace_mutex_(CAUSAL_TRACE_KIND_WAITING_, this);
		inner.lock();
		causal_trace_mutex_(CAUSAL_TRACE_KIND_LOCKED_, this);
	}
	bool try_lock()
	{
		bool locked = inner.try_lock();

		if (locked)
			causal_trace_mutex_(CAUSAL_TRACE_KIND_LOCKED_, this);
		return locked;
	}
	void unlock()
	{
		causal_trace_mutex_(CAUSAL_TRACE_KIND_UNLOCKED_, this);
		inner.unlock();
	}

      private:
	M inner;
};
#endif

#endif
