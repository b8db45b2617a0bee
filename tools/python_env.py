"""Becomes an interpreter that sees the build; Bazel's launcher has set PYTHONPATH to it.

The interpreter is that of the project's virtual environment, or what tools/torch_python names in TANDEM_RUN_BY.
"""

import os
import sys

if __name__ == "__main__":
    interpreter = os.environ.pop("TANDEM_RUN_BY", sys.executable)
    os.execv(interpreter, [interpreter, *sys.argv[1:]])
