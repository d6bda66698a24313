dnl SPDX-License-Identifier: MIT
dnl PAPI: its counters as a component of libcausal.
AC_DEFUN([CA_PAPI], [
	CA_OPTIONAL([PAPI], [papi], [papi], [libpapi-dev], [its counters as a component of libcausal])
])
