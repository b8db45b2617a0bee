"""The C++ toolchain that --config=arm64 selects: Debian's g++ for ARM64, with the ARM64 root of tools/setup as its sysroot."""

load("@bazel_tools//tools/cpp:unix_cc_configure.bzl", "configure_unix_toolchain")

_PREFIX = "aarch64-linux-gnu-"

def _arm64_toolchain_repository_impl(ctx):
    root = ctx.os.environ.get("TANDEM_ARM64_ROOT")
    tools = {name: ctx.which(_PREFIX + name) for name in ["ar", "gcc", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]}
    lld = ctx.which("ld.lld")
    if not root or not lld or None in tools.values():
        fail("An ARM64 root, %sgcc and ld.lld expected, but not all found. Next: tools/setup --arm64; then tools/bazel build --config=arm64." % _PREFIX)
    ctx.symlink(lld, "linkers/ld.lld")
    ctx.file("arm64_gcc", "#!/bin/sh\nexec %s --sysroot=%s -B%s \"$@\"\n" % (tools["gcc"], root, ctx.path("linkers")))
    tools["gcc"] = ctx.path("arm64_gcc")
    configure_unix_toolchain(ctx, "aarch64", {name: str(path) for name, path in tools.items()})

arm64_toolchain_repository = repository_rule(
    implementation = _arm64_toolchain_repository_impl,
    local = True,
    configure = True,
    environ = ["TANDEM_ARM64_ROOT"],
)
