dnl SPDX-License-Identifier: MIT
dnl libunwind: the oracle for the unwind tests, and the sampler tool. Never in the runtime.
AC_DEFUN([CA_LIBUNWIND], [
	CA_OPTIONAL([LIBUNWIND], [libunwind], [libunwind], [libunwind-dev], [unwinding to compare with])
])
