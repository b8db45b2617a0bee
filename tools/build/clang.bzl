"""The clang C++ toolchain that --config=tsan selects. The default toolchain (g++) is Bazel's own @local_config_cc."""

load("@bazel_tools//tools/cpp:lib_cc_configure.bzl", "get_cpu_value")
load("@bazel_tools//tools/cpp:unix_cc_configure.bzl", "configure_unix_toolchain")

_CLANG = "clang-14"

def _clang_toolchain_repository_impl(ctx):
    clang = ctx.which(_CLANG)
    if not clang:
        fail("%s expected on PATH, but not found. Next: tools/setup, or apt-get install %s." % (_CLANG, _CLANG))
    configure_unix_toolchain(ctx, get_cpu_value(ctx), {"gcc": str(clang)})

clang_toolchain_repository = repository_rule(
    implementation = _clang_toolchain_repository_impl,
    local = True,
    configure = True,
)
