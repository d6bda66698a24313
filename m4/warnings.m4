dnl SPDX-License-Identifier: MIT
dnl CA_WARNINGS: fill WARN_CFLAGS with every flag of the list that the compiler knows.
dnl Unknown -W flags only warn with clang, so each is tried together with -Werror.
AC_DEFUN([CA_TRY_WARNING], [
	AS_VAR_PUSHDEF([cache], [ca_cv_cflag_$1])
	AC_CACHE_CHECK([whether $CC takes $1], [cache], [
		ca_saved_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS -Werror $1"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
			[AS_VAR_SET([cache], [yes])], [AS_VAR_SET([cache], [no])])
		CFLAGS=$ca_saved_CFLAGS
	])
	AS_VAR_IF([cache], [yes], [WARN_CFLAGS="$WARN_CFLAGS $1"])
	AS_VAR_POPDEF([cache])
])

AC_DEFUN([CA_WARNINGS], [
	AC_ARG_ENABLE([werror],
		[AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
		[], [enable_werror=no])
	WARN_CFLAGS=
	m4_foreach_w([flag], [
		-Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes
		-Wold-style-definition -Wpointer-arith -Wwrite-strings -Wundef
		-Wformat-security -Wimplicit-fallthrough -Wno-missing-field-initializers
	], [CA_TRY_WARNING(flag)])
	AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
	AC_SUBST([WARN_CFLAGS])
])
