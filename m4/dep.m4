dnl SPDX-License-Identifier: MIT
dnl CA_SYSTEM_INCLUDES(VARIABLE): turn -I into -isystem, so that our warnings stay with our code.
AC_DEFUN([CA_SYSTEM_INCLUDES], [
	$1=`AS_ECHO(["$$1"]) | $SED 's/-I */-isystem /g'`
])

dnl CA_REQUIRED(PREFIX, PKG-CONFIG MODULE, DEBIAN PACKAGE)
AC_DEFUN([CA_REQUIRED], [
	PKG_CHECK_MODULES([$1], [$2], [CA_SYSTEM_INCLUDES([$1_CFLAGS])],
		[AC_MSG_ERROR([$2 is missing; on Debian: apt-get install $3])])
])

dnl CA_OPTIONAL(PREFIX, NAME, PKG-CONFIG MODULE, DEBIAN PACKAGE, DESCRIPTION)
dnl --with-NAME fails when it is missing, --without-NAME does not look, neither takes it if
dnl it is there. Defines HAVE_PREFIX, sets have_NAME to yes or to "no (reason)".
AC_DEFUN([CA_OPTIONAL], [
	AC_ARG_WITH([$2], [AS_HELP_STRING([--without-$2], [do not use $2: $5])],
		[], [with_$2=auto])
	have_$2="no (switched off)"
	AS_IF([test "x$with_$2" != xno], [
		PKG_CHECK_MODULES([$1], [$3],
			[CA_SYSTEM_INCLUDES([$1_CFLAGS])
			have_$2=yes],
			[have_$2="no (not found; Debian: $4)"])
		AS_IF([test "x$with_$2" = xyes && test "x$have_$2" != xyes],
			[AC_MSG_ERROR([--with-$2 was given, but $3 is missing; on Debian: apt-get install $4])])
	])
	AS_IF([test "x$have_$2" = xyes],
		[AC_DEFINE([HAVE_$1], [1], [$5])],
		[$1_CFLAGS= $1_LIBS=])
	AM_CONDITIONAL([HAVE_$1], [test "x$have_$2" = xyes])
])
