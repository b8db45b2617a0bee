"""Fuzz targets."""

load("//tools/build:targets.bzl", "cc_library", "with_tested")

def fuzz_target(name, deps = [], corpus = "corpus", scripts = 4000, data = []):
    """Makes a fuzz target of NAME.cc, which defines LLVMFuzzerTestOneInput.

    NAME is the fuzzer: bazel run --config=fuzz //some:NAME -- -max_total_time=60. NAME_test runs the same function over
    the corpus and over random scripts.

    Args:
      name: Of the source file, without ".cc".
      deps: What the source file needs, but for "//transport/testing:fuzz_script", Abseil, and :X of X_fuzz.
      corpus: The folder of inputs beside the BUILD file.
      scripts: How many random scripts NAME_test runs.
      data: What it reads.
    """
    cc_library(
        name = name + "_function",
        testonly = True,
        srcs = [name + ".cc"],
        data = data,
        deps = with_tested(name, deps, "_fuzz") + ["//transport/testing:fuzz_script"],
        alwayslink = True,
    )
    native.cc_binary(
        name = name,
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":{}_function".format(name)],
    )
    native.cc_test(
        name = name + "_test",
        srcs = ["//transport/testing:fuzz_replay_test.cc"],
        data = native.glob([corpus + "/**"]),
        env = {
            "FUZZ_CORPUS": "{}/{}".format(native.package_name(), corpus),
            "FUZZ_SCRIPTS": str(scripts),
        },
        deps = [
            ":{}_function".format(name),
            "@gtest//:gtest_main",
        ],
    )
