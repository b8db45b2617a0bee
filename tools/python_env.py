"""Becomes the interpreter of the project's virtual environment; Bazel's launcher has set PYTHONPATH to the build."""

import os
import sys

if __name__ == "__main__":
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
