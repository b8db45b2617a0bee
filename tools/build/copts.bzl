"""Compiler flags of Tandem's own C++ code. Every target lists one of these as its copts.

What holds for all code, external included (language version, optimisation), is in .bazelrc. Headers of external
libraries come in as system includes, so these warnings see only our code.
"""

TANDEM_COPTS = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
    "-Wshadow",
    "-Wimplicit-fallthrough",
    "-Werror",
    # a * b + c rounds twice, as NumPy's does, also where one instruction could do it: our numbers are Gymnasium's.
    "-ffp-contract=off",
]

# For pybind11 modules: pybind11's own types have hidden visibility, and a class that holds one must not be more
# visible than it.
TANDEM_PYBIND_COPTS = TANDEM_COPTS + ["-fvisibility=hidden"]
