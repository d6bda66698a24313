/* SPDX-License-Identifier: MIT */
/* What every unit test includes: cmocka wants four headers before its own. */
#ifndef CA_TESTS_UNIT_H
#define CA_TESTS_UNIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CA_COUNT(array) (sizeof(array) / sizeof *(array))

#endif
