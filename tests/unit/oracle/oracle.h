/* SPDX-License-Identifier: MIT */
/* What the oracle's programs are: a library with `oracle_work`, which calls begin() and end() around what is to be
 * compared at each of its instructions. Threads that it starts, and handlers, have to begin() for themselves. No
 * SIGTRAP may be blocked in between: so no thread is started there. */
#ifndef CA_TESTS_ORACLE_H
#define CA_TESTS_ORACLE_H
#ifdef __cplusplus
extern "C" {
#endif
void oracle_work(void (*begin)(void), void (*end)(void));
#ifdef __cplusplus
}
#endif
#endif
