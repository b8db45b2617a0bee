"""Debian's C++ libraries as Bazel repositories.

Headers are linked folder by folder rather than all of /usr/include, so that the compiler's own #include_next chain
stays as it is, and come in as system includes: they never warn.
"""

_LIBRARY = """
cc_library(
    name = "{name}",
    srcs = {srcs},
    hdrs = glob(["include/**"]),
    includes = ["{include}"],
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
    deps = {deps},
)
"""

_ROOT = "TANDEM_ARM64_ROOT"  # tools/bazel sets it for --config=arm64: libraries and headers are those of this root

def _path(ctx, path):
    return ctx.path(ctx.os.environ.get(_ROOT, "") + path)

def _multiarch_folder(ctx):
    machine = "aarch64" if ctx.os.environ.get(_ROOT) else ctx.execute(["uname", "-m"]).stdout.strip()
    return _path(ctx, "/usr/lib/%s-linux-gnu" % machine)

def _link_headers(ctx, folders, package):
    for folder in folders:
        source = _path(ctx, "/usr/include/" + folder)
        if not source.exists:
            fail("%s expected, but not found. Next: tools/setup, or apt-get install %s." % (source, package))
        ctx.symlink(source, "include/" + folder)

def _library(ctx, name, files):
    folder = _multiarch_folder(ctx)
    for file in files:
        if not folder.get_child(file).exists:
            fail("%s expected, but not found in %s. Next: tools/setup, or apt-get install %s." % (file, folder, ctx.attr.package))
    srcs, deps = [], []

    # A group lets the archives stand in any order.
    linkopts = ["-Wl,--start-group"] + ["-l:" + file for file in files] + ["-Wl,--end-group", "-lpthread"]
    if ctx.attr.uses_abseil:
        # Options come last on the linker's command line, behind Abseil. What needs Abseil has to come before it, as a
        # file that Bazel sees: a linker script that names the real ones.
        srcs, deps, linkopts = ["lib%s.a" % name], ["@com_google_absl//:absl"], ["-lpthread"]
        ctx.file(srcs[0], "GROUP ( %s )\n" % " ".join([str(folder.get_child(file)) for file in files]))
    return _LIBRARY.format(name = name, srcs = srcs, include = ctx.attr.include, linkopts = linkopts, deps = deps)

def _link_tool(ctx, tool, package, folder = "/usr/bin"):
    source = ctx.path("%s/%s" % (folder, tool))
    if not source.exists:
        fail("%s expected, but not found. Next: tools/setup, or apt-get install %s." % (source, package))
    ctx.symlink(source, tool)
    return '\nexports_files(["%s"])\n' % tool

def _system_library_repository_impl(ctx):
    _link_headers(ctx, ctx.attr.headers, ctx.attr.package)
    notices = {"notices/%s/copyright" % ctx.name: ctx.attr.package}
    notices.update({"notices/%s/copyright" % name: package for name, package in ctx.attr.inside.items()})
    for notice, package in notices.items():
        ctx.symlink(_path(ctx, "/usr/share/doc/%s/copyright" % package), notice)
    ctx.file("BUILD.bazel", _NOTICES % list(notices) + "".join([
        _library(ctx, name, files)
        for name, files in ctx.attr.archives.items()
    ]) + "".join([_link_tool(ctx, tool, package) for tool, package in ctx.attr.tools.items()]))

system_library_repository = repository_rule(
    doc = "One Debian -dev package: its headers, and a target for each group of libraries.",
    implementation = _system_library_repository_impl,
    local = True,
    environ = [_ROOT],
    attrs = {
        "archives": attr.string_list_dict(mandatory = True, doc = "target name -> file names of its libraries"),
        "headers": attr.string_list(mandatory = True, doc = "folders below /usr/include"),
        "include": attr.string(default = "include", doc = "what #include begins at"),
        "inside": attr.string_dict(doc = "name of another library among the archives -> its Debian package, for its licence"),
        "package": attr.string(mandatory = True, doc = "the Debian package, for the error message"),
        "tools": attr.string_dict(doc = "name of a program in /usr/bin -> its Debian package"),
        "uses_abseil": attr.bool(doc = "whether its archives need those of Abseil"),
    },
)

_NOTICES = """
filegroup(
    name = "notices",
    srcs = %s,
    visibility = ["//visibility:public"],
)
"""

_ABSEIL_LIBRARY = """
# Linker scripts that name Debian's archives. These fit into executables only: they are not position-independent, but
# Bazel is told so, as all of our own code is. A shared object needs absl_inside, too.
cc_library(
    name = "absl",
    srcs = [
        "libabsl.a",
        "libabsl.pic.a",
    ],
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = ["-lpthread"],
    visibility = ["//visibility:public"],
)

# The same, compiled here as position-independent code, for shared objects. All of its objects stand on the linker's
# command line, so that none of the archives' is taken; unused sections are dropped.
cc_library(
    name = "absl_inside",
    srcs = glob(["source/*.cc"]),
    copts = ["-w"],
    includes = ["source"],
    textual_hdrs = glob(["source/absl/**"]),
    visibility = ["//visibility:public"],
    alwayslink = True,
)
"""

def source_folder(ctx, package):
    """Returns the folder of a source package that tools/setup has unpacked."""
    home = ctx.os.environ.get("HOME", "")
    cache = ctx.os.environ.get("XDG_CACHE_HOME") or home + "/.cache"
    folder = ctx.path("%s/tandem/sources/%s" % (cache, package))
    if not folder.exists:
        fail("The source of Debian's package %s expected in %s, but not found. Next: tools/setup." % (package, folder))
    return folder

# Folders of Abseil that are compiled here, each as one source: that takes a fifth of the time of its files.
_ABSEIL_FOLDERS = [
    "base",
    "container",
    "debugging",
    "flags",
    "hash",
    "numeric",
    "profiling",
    "status",
    "strings",
    "synchronization",
    "time",
    "types",
]

# These files have private names that another file of their folder has, too.
_ABSEIL_FILES_APART = [
    "absl/strings/numbers.cc",
    "absl/time/format.cc",
    "absl/time/internal/cctz/src/time_zone_posix.cc",
]

def _abseil_sources(paths):
    """Returns the sources to compile: their names and which of Abseil's files each includes."""
    sources = {}
    for path in sorted(paths):
        name = path.split("/")[-1]
        folder = path.split("/")[1]
        if not name.endswith(".cc") or folder not in _ABSEIL_FOLDERS:
            continue
        if "test" in name or "benchmark" in name or name.endswith("_main.cc"):
            continue
        apart = path in _ABSEIL_FILES_APART
        sources.setdefault(path.replace("/", "_") if apart else folder + ".cc", []).append(path)
    return sources

def _abseil_repository_impl(ctx):
    _link_headers(ctx, ["absl"], "libabsl-dev")
    files = {
        file.basename: str(file)
        for file in _multiarch_folder(ctx).readdir()
        if file.basename.startswith("libabsl_")
    }
    archives = [path for name, path in sorted(files.items()) if name.endswith(".a")]
    if not archives:
        fail("Abseil's libraries expected, but not found. Next: tools/setup, or apt-get install libabsl-dev.")
    for name in ["libabsl.a", "libabsl.pic.a"]:
        ctx.file(name, "GROUP ( %s )\n" % " ".join(archives))
    ctx.symlink(_path(ctx, "/usr/share/doc/libabsl-dev/copyright"), "notices/abseil/copyright")

    # File by file: the source's own BUILD files would make each of its folders a package.
    source = source_folder(ctx, "abseil")
    found = ctx.execute(["find", "absl", "-name", "*.cc", "-o", "-name", "*.h", "-o", "-name", "*.inc"], working_directory = str(source))
    paths = found.stdout.splitlines()
    for path in paths:
        ctx.symlink("%s/%s" % (source, path), "source/" + path)
    for name, included in _abseil_sources(paths).items():
        ctx.file("source/" + name, "".join(['#include "%s"\n' % path for path in included]))
    ctx.file("BUILD.bazel", _NOTICES % ["notices/abseil/copyright"] + _ABSEIL_LIBRARY)

abseil_repository = repository_rule(
    doc = "Debian's Abseil as one library: the linker takes from the archives what is used.",
    implementation = _abseil_repository_impl,
    local = True,
    environ = [_ROOT],
)

def _three_repository_impl(ctx):
    folder = "/usr/share/javascript/three/"
    ctx.symlink("/usr/share/doc/libjs-three/copyright", "notices/three/copyright")
    ctx.file("BUILD.bazel", _NOTICES % ["notices/three/copyright"] + "".join([
        _link_tool(ctx, "three.module.js", "libjs-three", folder),
        _link_tool(ctx, "GLTFLoader.js", "libjs-three", folder + "examples/jsm/loaders"),
        _link_tool(ctx, "OrbitControls.js", "libjs-three", folder + "examples/jsm/controls"),
    ]))

three_repository = repository_rule(
    doc = "Debian's three.js: its ES modules that the page uses.",
    implementation = _three_repository_impl,
    local = True,
)

_CSHARP = """
# Compiled into an assembly of ours. They have the version of Debian's flatc, which generated code checks.
filegroup(
    name = "flatbuffers",
    srcs = glob(["flatbuffers/*.cs"]),
    visibility = ["//visibility:public"],
)
"""

def _csharp_repository_impl(ctx):
    source = source_folder(ctx, "flatbuffers").get_child("net").get_child("FlatBuffers")
    for file in source.readdir():
        if file.basename.endswith(".cs"):
            ctx.symlink(file, "flatbuffers/" + file.basename)
    ctx.symlink("/usr/share/doc/libflatbuffers-dev/copyright", "notices/flatbuffers/copyright")
    ctx.file("BUILD.bazel", _NOTICES % ["notices/flatbuffers/copyright"] + _CSHARP + "".join([
        _link_tool(ctx, "mcs", "mono-mcs"),
        _link_tool(ctx, "mono", "mono-runtime"),
        _link_tool(ctx, "Mono.Cecil.dll", "libmono-cecil-cil", "/usr/lib/mono-cecil"),
    ]))

csharp_repository = repository_rule(
    doc = "Mono, its C# compiler, its library that edits assemblies, and the C# sources of Google.FlatBuffers.",
    implementation = _csharp_repository_impl,
    local = True,
)
