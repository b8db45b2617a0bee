"""Python's bytecode, made once. A test's sandbox keeps none, so that each process of a test would compile its modules."""

def _bytecode_impl(ctx):
    python = ctx.toolchains["@bazel_tools//tools/python:toolchain_type"].py3_runtime.interpreter_path
    version = python.rpartition("/venv-python")[2].partition("/")[0]  # pip.bzl names the environment so
    outputs = []
    args = ctx.actions.args()
    args.add(ctx.file._compile)
    for module in ctx.files.srcs:
        folder, _, name = module.short_path[len(ctx.label.package) + 1:-len(".py")].rpartition("/")
        cached = "__pycache__/%s.cpython-%s.pyc" % (name, version.replace(".", ""))
        outputs.append(ctx.actions.declare_file(folder + "/" + cached if folder else cached))
        args.add_all([module, outputs[-1]])
    ctx.actions.run(
        arguments = [args],
        executable = python,
        inputs = ctx.files.srcs + [ctx.file._compile],
        mnemonic = "Bytecode",
        outputs = outputs,
        progress_message = "Compiling Python modules of //%s" % ctx.label.package,
    )
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(outputs))]

bytecode = rule(
    doc = "Bytecode of modules, where Python looks for it: in the folder __pycache__ beside them.",
    implementation = _bytecode_impl,
    attrs = {
        "srcs": attr.label_list(mandatory = True, allow_files = [".py"], doc = "the modules"),
        "_compile": attr.label(default = "//tools/build:compile_modules.py", allow_single_file = True),
    },
    toolchains = ["@bazel_tools//tools/python:toolchain_type"],
)
