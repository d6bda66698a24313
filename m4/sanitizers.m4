dnl SPDX-License-Identifier: MIT
dnl CA_SANITIZERS: --enable-asan, --enable-ubsan, --enable-tsan.
dnl SAN_CFLAGS goes to the driver, the libraries and the tests. The runtime is left out:
dnl it is preloaded into programs that do not have the sanitizer's own runtime.
AC_DEFUN([CA_SANITIZERS], [
	AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [AddressSanitizer])],
		[], [enable_asan=no])
	AC_ARG_ENABLE([ubsan], [AS_HELP_STRING([--enable-ubsan], [UndefinedBehaviorSanitizer])],
		[], [enable_ubsan=no])
	AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [ThreadSanitizer])],
		[], [enable_tsan=no])
	AS_IF([test "x$enable_asan$enable_tsan" = xyesyes],
		[AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
	SANITIZER=
	SAN_CFLAGS=
	AS_IF([test "x$enable_asan" = xyes], [
		SANITIZER="$SANITIZER asan"
		SAN_CFLAGS="$SAN_CFLAGS -fsanitize=address"])
	AS_IF([test "x$enable_ubsan" = xyes], [
		SANITIZER="$SANITIZER ubsan"
		SAN_CFLAGS="$SAN_CFLAGS -fsanitize=undefined -fno-sanitize-recover=undefined"])
	AS_IF([test "x$enable_tsan" = xyes], [
		SANITIZER="$SANITIZER tsan"
		SAN_CFLAGS="$SAN_CFLAGS -fsanitize=thread"])
	AS_IF([test -n "$SAN_CFLAGS"], [
		SAN_CFLAGS="$SAN_CFLAGS -fno-omit-frame-pointer"
		ca_saved_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS $SAN_CFLAGS"
		AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [],
			[AC_MSG_ERROR([$CC cannot link with$SAN_CFLAGS])])
		CFLAGS=$ca_saved_CFLAGS])
	SANITIZER=`echo $SANITIZER`
	AC_SUBST([SANITIZER])
	AC_SUBST([SAN_CFLAGS])
	AM_CONDITIONAL([SANITIZED], [test -n "$SAN_CFLAGS"])
])
