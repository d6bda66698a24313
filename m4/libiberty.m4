dnl SPDX-License-Identifier: MIT
dnl libiberty (binutils): demangling of C++ and Rust names. It has no pkg-config file.
AC_DEFUN([CA_LIBIBERTY], [
	ca_have_libiberty=yes
	AC_CHECK_HEADER([libiberty/demangle.h], [], [ca_have_libiberty=no])
	AC_CHECK_LIB([iberty], [cplus_demangle], [], [ca_have_libiberty=no], [])
	LIBS=`AS_ECHO(["$LIBS"]) | $SED 's/-liberty *//'`
	AS_IF([test $ca_have_libiberty = no],
		[AC_MSG_ERROR([libiberty is missing; on Debian: apt-get install libiberty-dev])])
	LIBIBERTY_LIBS=-liberty
	AC_SUBST([LIBIBERTY_LIBS])
])
