// What Python 3.11's headers must know of Windows and mingw-w64: types, sizes,
// and where functions come from. Names of Python's own PC/pyconfig.h, which no
// package of Debian has.

#pragma once

#define MS_WINDOWS 1
#define MS_WIN64 1
#define NT_THREADS 1

#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL 1
#define PY_SUPPORT_TIER 0

#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 16

#define HAVE_ERRNO_H 1
#define HAVE_SSIZE_T 1
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_WCHAR_H 1
