[#] start of __file__
dnl Copyright (C) the ntbring authors. See LICENSE in the ntbring repository.
dnl MPICH_SUBCFG_AFTER=src/mpid/ch4

AC_DEFUN([PAC_SUBCFG_PREREQ_]PAC_SUBCFG_AUTO_SUFFIX,[
    AM_COND_IF([BUILD_CH4],[
        for net in $ch4_netmods ; do
            AS_CASE([$net],[ntbring],[build_ch4_netmod_ntbring=yes])
            if test $net = "ntbring" ; then
                AC_DEFINE(HAVE_CH4_NETMOD_NTBRING,1,[ntbring netmod is built])
                if test "$build_ch4_locality_info" != "yes" ; then
                    AC_DEFINE(MPIDI_BUILD_CH4_LOCALITY_INFO, 1, [CH4 should build locality info])
                    build_ch4_locality_info="yes"
                fi
            fi
        done
    ])
    AM_CONDITIONAL([BUILD_CH4_NETMOD_NTBRING],[test "X$build_ch4_netmod_ntbring" = "Xyes"])
])dnl

AC_DEFUN([PAC_SUBCFG_BODY_]PAC_SUBCFG_AUTO_SUFFIX,[
ntbring_ldflags=""
ntbring_libs=""
AC_SUBST([ntbring_ldflags])
AC_SUBST([ntbring_libs])
AM_COND_IF([BUILD_CH4_NETMOD_NTBRING],[
    AC_MSG_NOTICE([RUNNING CONFIGURE FOR ch4:ntbring])

    AC_ARG_WITH([ntbring],
                AS_HELP_STRING([--with-ntbring=PREFIX],[where include/ntbring.h and lib/libntbring.so are]),
                [],[with_ntbring=no])
    AS_CASE([$with_ntbring],
            [/*],[],
            [AC_MSG_ERROR([ch4:ntbring needs --with-ntbring=PREFIX, an absolute path])])
    AS_IF([test -f "$with_ntbring/include/ntbring.h"],[],
          [AC_MSG_ERROR([--with-ntbring: there is no $with_ntbring/include/ntbring.h])])
    dnl Only make needs the library, to link libmpi: with ntbring_library=later it may still be built
    AS_IF([test -f "$with_ntbring/lib/libntbring.so" || test "x$ntbring_library" = xlater],[],
          [AC_MSG_ERROR([--with-ntbring: there is no $with_ntbring/lib/libntbring.so])])

    PAC_APPEND_FLAG([-I$with_ntbring/include],[CPPFLAGS])
    dnl Not in LIBS or WRAPPER_LIBS: only libmpi itself links with libntbring.
    ntbring_ldflags="-L$with_ntbring/lib -Wl,-rpath,$with_ntbring/lib"
    ntbring_libs="-lntbring"
])dnl end AM_COND_IF(BUILD_CH4_NETMOD_NTBRING,...)
])dnl end _BODY

[#] end of __file__
