dnl SPDX-License-Identifier: MIT
dnl CA_HOST: the machine that the runtime is written for. Others need a trampoline
dnl writer and unwind registers of their own, so configure says so at once.
AC_DEFUN([CA_HOST], [
	AS_CASE([$host],
		[x86_64-*-linux-gnu*], [],
		[AC_MSG_ERROR([causal runs on x86-64 GNU/Linux; this host is $host])])
])
