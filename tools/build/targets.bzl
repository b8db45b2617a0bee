"""Bazel's rules, with the defaults that nearly all targets of this tree share.

    load("//tools/build:targets.bzl", "cc_library", "cc_test")

    cc_library(name = "ring")       # ring.cc and ring.h, whichever exist
    cc_test(name = "ring_test")     # ring_test.cc, which tests :ring, with GoogleTest's main
    cc_library(name = "test_ring")  # testing/test_ring.cc and .h, if they exist: testonly
    cc_library(name = "machine")    # machine.h, linux/machine.cc and posix/machine.cc

    py_library(name = "services")   # services.py, or else the modules of the folder services/ but for its tests
    py_test(name = "look_test")     # look_test.py, which tests :look if it exists, with pytest's main

Every C++ target may use Abseil. A test X_test depends on :X if the target X stands above it. What lies in tests/ or in a
folder testing/ is testonly.
"""

load("//tools/build:bytecode.bzl", "bytecode")
load("//tools/build:merged.bzl", "merged_deps")

_ABSL = ["@com_google_absl//:absl"]

# What every source begins with, precompiled: by the package, or else of all code and of all tests; each without and
# with the messages' header, which takes seconds to read, for targets with one of _READ_MESSAGES.
_HEADERS = {
    "client_py/bindings": "//client_py/bindings:headers",
    "client_py/engine_bindings": "//client_py/bindings:headers",
}
_READ_MESSAGES = [
    ":engine_host",
    "//engine_adapter:engine_host",
    "//engine_adapter/host:engine_host",
    "//schema/messages:hazel_rpc_generated",
]

def _compiled(attributes, deps, kind = ""):
    """Returns attributes with deps, Abseil, and the precompiled_headers that every source begins with.

    Args:
      attributes: Of the target.
      deps: That it names itself.
      kind: "test_" for tests.
    """
    package = "//schema/messages" if [dep for dep in deps if dep in _READ_MESSAGES] else "//tools/build"
    precompiled = _HEADERS.get(native.package_name(), "%s:%sheaders" % (package, kind))
    copts = attributes.get("copts", []) + ["-include", "$(BINDIR)/%s.h" % precompiled.lstrip("/").replace(":", "/")]
    return dict(attributes, copts = copts, deps = deps + _ABSL + [precompiled])

def with_tested(name, deps, suffix = "_test"):
    """Returns deps with the target that a test or fuzz target is for, if there is one above it.

    Args:
      name: Of the test.
      deps: That it names itself.
      suffix: Of its name.
    """
    target = name[:-len(suffix)] if name.endswith(suffix) else ""
    rule = native.existing_rule(target) if target else None
    is_usable = rule and rule["kind"] in ["cc_library", "py_binary", "py_library"]
    return [":" + target] + deps if is_usable and ":" + target not in deps else deps

def _file(name, suffix):
    return native.glob([folder + name + suffix for folder in ["", "testing/", "linux/", "posix/"]])

def _modules(name):
    return native.glob([name + ".py"]) or native.glob([name + "/*.py"], exclude = [name + "/*_test.py"])

def _marked(files, attributes):
    """Returns attributes with `testonly` where it applies."""
    package = native.package_name()
    for_tests = package.startswith("tests/") or package.endswith("/testing")
    for_tests = for_tests or [file for file in files if file.startswith("testing/")]
    return dict({"testonly": True} if for_tests else {}, **attributes)

def cc_library(name, srcs = None, hdrs = None, deps = [], **attributes):
    srcs = _file(name, ".cc") if srcs == None else srcs
    hdrs = _file(name, ".h") if hdrs == None else hdrs
    if native.package_name() in _HEADERS:  # compiled merged (merged.bzl), and not once more by `build //...`
        attributes = dict({"tags": ["manual"]}, **attributes)
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        **_marked(srcs + hdrs, _compiled(attributes, deps))
    )

def cc_binary(name, srcs = None, deps = [], is_merged = False, **attributes):
    """A program or, with linkshared, a shared object. is_merged: its deps are compiled from merged sources (merged.bzl)."""
    srcs = [name + ".cc"] if srcs == None else srcs
    if is_merged:
        merged_deps(name = name + "_deps", deps = deps)
        deps = [":%s_deps" % name]
    native.cc_binary(
        name = name,
        srcs = srcs,
        **_marked(srcs, _compiled(attributes, deps))
    )

def cc_test(name, srcs = None, deps = [], size = "small", main = "@gtest//:gtest_main", **attributes):
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        **_compiled(attributes, with_tested(name, deps) + ([main] if main else []), "test_")
    )

def py_library(name, srcs = None, data = [], **attributes):
    srcs = _modules(name) if srcs == None else srcs
    attributes = _marked(srcs, attributes)
    if srcs:
        bytecode(name = name + "_bytecode", srcs = srcs, testonly = attributes.get("testonly"))
        data = data + [":%s_bytecode" % name]
    native.py_library(name = name, srcs = srcs, data = data, **attributes)

def py_binary(name, srcs = None, **attributes):
    srcs = [name + ".py"] if srcs == None else srcs
    native.py_binary(name = name, srcs = srcs, **_marked(srcs, attributes))

def py_test(name, srcs = None, main = None, deps = [], args = [], **attributes):
    """Runs pytest on the only one of srcs that ends with _test.py; the others are programs beside it.

    Args:
      name: Of the test.
      srcs: None: NAME.py.
      main: One of srcs that runs pytest itself.
      deps: Of the sources.
      args: Of pytest.
      **attributes: Of native.py_test.
    """
    srcs = [name + ".py"] if srcs == None else srcs
    if not main:
        tests = [source for source in srcs if source.endswith("_test.py")]
        if len(tests) != 1:
            fail("%s: expected one file *_test.py in srcs, found %s" % (name, tests))
        main = "//tools/testing:pytest_main.py"
        srcs = srcs + [main]
        args = ["%s/%s" % (native.package_name(), tests[0])] + args
    native.py_test(
        name = name,
        srcs = srcs,
        main = main,
        args = args,
        deps = with_tested(name, deps),
        **attributes
    )
