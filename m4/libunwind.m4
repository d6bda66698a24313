dnl SPDX-License-Identifier: MIT
dnl libunwind: the oracle of the unwind tests (local), and causal sample --unwinder libunwind (of copies). Never in
dnl the runtime.
AC_DEFUN([CA_LIBUNWIND], [
	CA_OPTIONAL([LIBUNWIND], [libunwind], [libunwind libunwind-generic], [libunwind-dev], [a second unwinder])
])
