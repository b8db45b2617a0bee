"""Python packages: a virtual environment made from the lock file, and what C++ and Python targets need of it."""

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

# Headers of the Python that runs the tests.
cc_library(
    name = "python_headers",
    hdrs = glob(["python_include/**/*.h"]),
    includes = ["python_include"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["pybind11_include/**/*.h"]),
    includes = ["pybind11_include"],
    deps = [":python_headers"],
)

# MuJoCo's C API.
cc_library(
    name = "mujoco",
    srcs = ["mujoco_lib/{libmujoco}"],
    hdrs = glob(["mujoco_include/**/*.h"]),
    includes = ["mujoco_include"],
)

# The model files of Gymnasium's MuJoCo environments.
filegroup(
    name = "gymnasium_mujoco_assets",
    srcs = glob(["gymnasium_mujoco_assets/**"]),
)

# Licences of the packages whose parts a wheel of ours contains.
filegroup(
    name = "notices",
    srcs = glob(["notices/**"]),
)

py_runtime(
    name = "python3",
    interpreter_path = "{python}",
    stub_shebang = "#!{python}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "python",
    py3_runtime = ":python3",
)

toolchain(
    name = "toolchain",
    toolchain = ":python",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

def _run(ctx, what, command):
    result = ctx.execute(
        command,
        timeout = 1800,
        environment = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONNOUSERSITE": "1", "PYTHONPATH": ""},
    )
    if result.return_code:
        fail("%s failed:\n%s%s" % (what, result.stdout, result.stderr))
    return result.stdout.strip()

# Packages whose licences go into a wheel.
_NOTICES = ["gymnasium", "mujoco", "pybind11"]

def _make_inline(ctx, header):
    """Declares error_already_set::what inline, as it is defined.

    Without that, GCC emits this class, with 110 KB of functions that it uses, in every source that includes pybind11:
    half of the time to compile such a source.
    """
    declaration = "    const char *what() const noexcept override;"
    text = ctx.read(header)
    if text.count(declaration) != 1:
        fail("One line `%s` expected in %s. Next: see whether pybind11 needs _make_inline any more." % (declaration, header))
    ctx.file(header, text.replace(declaration, declaration.replace("const", "inline const", 1)), executable = False)

# tools/build/lock.py describes these files.
_PACKAGES = "@//tools/build/packages:"

def _install(ctx, python, name, options = []):
    for lock in ["all", "luckyrobots_session", "mujoco_core"]:
        ctx.path(Label(_PACKAGES + lock + ".lock"))  # so that a new lock is another repository
    ctx.file("requirements.txt", _run(ctx, "reading the lock file", [ctx.path(Label(_PACKAGES + "locked")), name]))
    _run(ctx, "pip install of " + name, [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--requirement",
        "requirements.txt",
    ] + options)

# Packages for ARM64: tools/arm64 mounts them over the environment's own, which the build runs.
_ARM64_SITE = "arm64/python3.11/site-packages"
_ARM64_WHEELS = ["--platform=manylinux_2_%d_aarch64" % minor for minor in range(17, 37)] + ["--platform=manylinux2014_aarch64"]

def _interpreter(ctx):
    wanted = ctx.os.environ.get("TANDEM_PYTHON") or ctx.read(ctx.attr.interpreter).strip()
    interpreter = ctx.path(wanted) if wanted.startswith("/") else ctx.which(wanted)
    if not interpreter or not interpreter.exists:
        fail("A Python interpreter expected, but none found at %s. Next: set TANDEM_PYTHON, or unset it." % wanted)
    return interpreter

def _pip_repository_impl(ctx):
    interpreter = _interpreter(ctx)

    # Named for the Python, so that nothing that ran with one is taken for cached with another.
    venv = "venv-" + interpreter.realpath.basename
    python = venv + "/bin/python"

    ctx.report_progress("Making a virtual environment of %s" % interpreter)
    _run(ctx, "%s -m venv (needs Debian's python3-venv; next: tools/setup)" % interpreter, [interpreter, "-m", "venv", venv])

    ctx.report_progress("Installing Python packages (about 200 MB; minutes on a slow line)")
    for name in ctx.attr.lists:
        _install(ctx, python, name, ["--upgrade"])

    root = ctx.os.environ.get("TANDEM_ARM64_ROOT", "")
    if root:
        ctx.report_progress("Installing Python packages for ARM64")
        for name in ctx.attr.lists:
            _install(ctx, python, name, ["--upgrade", "--target", ctx.path(_ARM64_SITE)] + _ARM64_WHEELS)

    ctx.report_progress("Reading where the packages lie")
    include, site = _run(ctx, "asking Python for its folders", [
        python,
        "-c",
        "import sysconfig; paths = sysconfig.get_paths(); print(paths['include'], paths['purelib'], sep='\\n')",
    ]).split("\n")
    if root:
        include, site = root + include, str(ctx.path(_ARM64_SITE))
    libmujoco = [
        file
        for file in ctx.path(site + "/mujoco").readdir()
        if file.basename.startswith("libmujoco.so")
    ]
    if len(libmujoco) != 1:
        fail("Expected one libmujoco.so.* in %s/mujoco, found %s." % (site, libmujoco))
    for folder in ctx.path(site).readdir():
        package = folder.basename.split("-")[0]
        if folder.basename.endswith(".dist-info") and package in _NOTICES:
            ctx.symlink(folder.get_child("licenses"), "notices/" + package)

    _make_inline(ctx, ctx.path(site + "/pybind11/include/pybind11/pytypes.h"))

    ctx.symlink(include, "python_include")
    ctx.symlink(site + "/pybind11/include", "pybind11_include")
    ctx.symlink(site + "/mujoco/include", "mujoco_include")
    ctx.symlink(libmujoco[0], "mujoco_lib/" + libmujoco[0].basename)
    ctx.symlink(site + "/gymnasium/envs/mujoco/assets", "gymnasium_mujoco_assets")
    ctx.file("BUILD.bazel", _BUILD.format(
        libmujoco = libmujoco[0].basename,
        python = ctx.path(python),
    ))

pip_repository = repository_rule(
    implementation = _pip_repository_impl,
    environ = [
        "TANDEM_ARM64_ROOT",  # builds for ARM64
        "TANDEM_PYTHON",  # builds for another Python than the project's
    ],
    attrs = {
        "interpreter": attr.label(mandatory = True, allow_single_file = True, doc = "a file naming the Python to build for"),
        "lists": attr.string_list(mandatory = True, doc = "of packages; a later one replaces packages of an earlier one"),
    },
)

_PACKAGES_BUILD = """
py_library(
    name = "{name}",
    testonly = True,
    data = glob(["packages/**"]),
    imports = ["packages"],
    visibility = ["//visibility:public"],
)
"""

def _pip_packages_repository_impl(ctx):
    ctx.report_progress("Installing Python packages of %s" % ctx.name)
    _install(ctx, _interpreter(ctx), ctx.attr.list, ["--target", ctx.path("packages")])
    for program in ctx.attr.programs:
        _run(ctx, "chmod", ["chmod", "+x", ctx.path("packages/" + program)])
    ctx.file("BUILD.bazel", _PACKAGES_BUILD.format(name = ctx.name))

# Packages for the tests that depend on @name, beside those of the virtual environment. Bazel installs them when it first
# builds such a test.
pip_packages_repository = repository_rule(
    implementation = _pip_packages_repository_impl,
    environ = ["TANDEM_PYTHON"],
    attrs = {
        "interpreter": attr.label(mandatory = True, allow_single_file = True, doc = "as pip_repository's"),
        "list": attr.string(mandatory = True, doc = "of packages"),
        "programs": attr.string_list(doc = "files to make executable, which a package has as data"),
    },
)
