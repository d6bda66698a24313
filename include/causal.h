/* SPDX-License-Identifier: MIT */
/* causal.h: progress points for the causal profiler.
 *
 *   CAUSAL_PROGRESS                 one unit of work is done (label: file:line)
 *   CAUSAL_PROGRESS_NAMED("label")  the same, with a label of your own
 *   CAUSAL_BEGIN("label")           a piece of work with this label begins ...
 *   CAUSAL_END("label")             ... and ends: gives its latency
 *
 * Each is a statement that becomes one no-operation instruction and a note in the ELF file
 * which says where it is. Nothing is to be linked or started; a program that is not being
 * profiled runs past. Labels are string literals without quotes. They may be used anywhere in
 * C and C++ code: every copy that inlining, unrolling or a template makes counts as the same
 * point. Define CAUSAL_DISABLE before including this file to compile all of it away.
 *
 * The note has the form of SystemTap's user-space probes, version 3, with the providers
 * "causal", "causal_begin" and "causal_end", so that other tools can see the points as well. */
#ifndef CAUSAL_H
#define CAUSAL_H

#if defined(CAUSAL_DISABLE) || !defined(__ELF__) || !defined(__x86_64__)
#define CAUSAL_POINT_(provider, label) ((void)sizeof("" label))
#else

/* five bytes, so that a jump fits */
#define CAUSAL_NOP_ ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#if defined(__LP64__)
#define CAUSAL_ADDRESS_ ".8byte "
#else
#define CAUSAL_ADDRESS_ ".4byte "
#endif

/* "?": in the section group of the code, if it is in one, so that the linker keeps and drops
 * both together. The base lets readers see by how much prelinking moved the code. The text has
 * no operands, hence is taken as it stands: a % in a label is just that. */
#define CAUSAL_LABEL_MUST_BE_A_STRING_LITERAL_(provider, label)                                              \
	"7700: " CAUSAL_NOP_ ".pushsection .note.stapsdt, \"?\", %note\n"                                    \
	".balign 4\n"                                                                                        \
	".4byte 7702f - 7701f, 7704f - 7703f, 3\n"                                                           \
	"7701: .asciz \"stapsdt\"\n"                                                                         \
	"7702: .balign 4\n"                                                                                  \
	"7703: " CAUSAL_ADDRESS_ "7700b, _.stapsdt.base, 0\n"                                                \
	".asciz \"" provider "\"\n"                                                                          \
	".asciz \"" label "\"\n"                                                                             \
	".asciz \"\"\n"                                                                                      \
	"7704: .balign 4\n"                                                                                  \
	".popsection\n"                                                                                      \
	".ifndef _.stapsdt.base\n"                                                                           \
	".pushsection .stapsdt.base, \"aG\", %progbits, .stapsdt.base, comdat\n"                             \
	".weak _.stapsdt.base\n"                                                                             \
	".hidden _.stapsdt.base\n"                                                                           \
	"_.stapsdt.base: .space 1\n"                                                                         \
	".size _.stapsdt.base, 1\n"                                                                          \
	".popsection\n"                                                                                      \
	".endif\n"

/* Memory accesses stay on their side of the point. */
#define CAUSAL_POINT_(provider, label)                                                                       \
	do {                                                                                                 \
		__asm__ __volatile__("" : : : "memory");                                                     \
		__asm__ __volatile__(CAUSAL_LABEL_MUST_BE_A_STRING_LITERAL_(provider, label));               \
		__asm__ __volatile__("" : : : "memory");                                                     \
	} while (0)
#endif

#define CAUSAL_TEXT_2_(x) #x
#define CAUSAL_TEXT_(x)   CAUSAL_TEXT_2_(x)

#define CAUSAL_PROGRESS              CAUSAL_POINT_("causal", __FILE__ ":" CAUSAL_TEXT_(__LINE__))
#define CAUSAL_PROGRESS_NAMED(label) CAUSAL_POINT_("causal", label)
#define CAUSAL_BEGIN(label)          CAUSAL_POINT_("causal_begin", label)
#define CAUSAL_END(label)            CAUSAL_POINT_("causal_end", label)

#endif
