dnl SPDX-License-Identifier: MIT
dnl hsa-rocr: AMD's runtime. Only looked for: nothing uses it yet, so that configure and the
dnl listing of what is available can say whether it is there.
AC_DEFUN([CA_HSA], [
	CA_OPTIONAL([HSA], [hsa_rocr], [hsa-runtime64], [libhsa-runtime-dev], [AMD accelerators])
])
