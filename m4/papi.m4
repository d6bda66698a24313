dnl SPDX-License-Identifier: MIT
dnl PAPI: hardware counters as a sample source.
AC_DEFUN([CA_PAPI], [
	CA_OPTIONAL([PAPI], [papi], [papi], [libpapi-dev], [hardware counters as a sample source])
])
