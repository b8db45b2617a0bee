"""Bazel's rules, with the defaults that nearly all targets of this tree share.

    load("//tools/build:targets.bzl", "cc_library", "cc_test")

    cc_library(name = "ring")    # ring.cc and ring.h, whichever are there
    cc_test(name = "ring_test")  # ring_test.cc, with GoogleTest's main
    py_test(name = "look_test")  # look_test.py, with pytest's main

C++ targets may use Abseil's strings and statuses without naming them.
"""

_ABSL = [
    "@com_google_absl//absl/status",
    "@com_google_absl//absl/status:statusor",
    "@com_google_absl//absl/strings",
    "@com_google_absl//absl/strings:str_format",
]

def _file(name, suffix):
    return native.glob([name + suffix])

def cc_library(name, srcs = None, hdrs = None, deps = [], **attributes):
    native.cc_library(
        name = name,
        srcs = _file(name, ".cc") if srcs == None else srcs,
        hdrs = _file(name, ".h") if hdrs == None else hdrs,
        deps = deps + _ABSL,
        **attributes
    )

def cc_binary(name, srcs = None, deps = [], **attributes):
    native.cc_binary(
        name = name,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = deps + _ABSL,
        **attributes
    )

def cc_test(name, srcs = None, deps = [], size = "small", main = "@gtest//:gtest_main", **attributes):
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = deps + _ABSL + ([main] if main else []),
        **attributes
    )

def py_library(name, srcs = None, **attributes):
    native.py_library(
        name = name,
        srcs = [name + ".py"] if srcs == None else srcs,
        **attributes
    )

def py_binary(name, srcs = None, **attributes):
    native.py_binary(
        name = name,
        srcs = [name + ".py"] if srcs == None else srcs,
        **attributes
    )

def py_test(name, srcs = None, deps = [], **attributes):
    native.py_test(
        name = name,
        srcs = [name + ".py"] if srcs == None else srcs,
        deps = deps + ["//tools/testing:pytest_main"],
        **attributes
    )
