"""Headers that the compiler reads once and then loads in every source: reading them took half of a compilation."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# clang stores the names of the headers relative to this folder, in which Bazel runs the compiler; .bazelrc has the flags
# with which it reads them.
_CLANG_FLAGS = ["-Xclang", "-relocatable-pch", "-isysroot/proc/self/cwd"]

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    is_gcc = toolchain.compiler_executable.endswith("gcc")
    includes = "".join(['#include "%s"\n' % header.short_path for header in ctx.files.hdrs])
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, includes)
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(source, includes)
    _, outputs = cc_common.compile(
        name = ctx.label.name,
        actions = ctx.actions,
        cc_toolchain = toolchain,
        feature_configuration = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain),
        srcs = [source],
        private_hdrs = ctx.files.hdrs,
        compilation_contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps],
        user_compile_flags = ["-xc++-header"] + ([] if is_gcc else _CLANG_FLAGS),
    )

    # Before the compiler reads FILE, GCC looks for FILE.gch, and clang for FILE.pch.
    precompiled = ctx.actions.declare_file(ctx.label.name + (".h.gch" if is_gcc else ".h.pch"))
    ctx.actions.symlink(output = precompiled, target_file = (outputs.pic_objects or outputs.objects)[0])
    files = [header, source, precompiled] + ctx.files.hdrs  # clang reads the source's name in it
    return [CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(files)))]

precompiled_headers = rule(
    doc = "NAME.h, which includes hdrs, precompiled for GCC or clang.",
    implementation = _precompiled_headers_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(mandatory = True, allow_files = [".h"]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
