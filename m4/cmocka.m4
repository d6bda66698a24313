dnl SPDX-License-Identifier: MIT
dnl cmocka: the unit tests. Nothing that is installed needs it, so a missing one stops
dnl "make check" and not "make".
AC_DEFUN([CA_CMOCKA], [
	PKG_CHECK_MODULES([CMOCKA], [cmocka],
		[CA_SYSTEM_INCLUDES([CMOCKA_CFLAGS])
		have_cmocka=yes],
		[have_cmocka="no ('make check' cannot build; Debian: libcmocka-dev)"])
])
