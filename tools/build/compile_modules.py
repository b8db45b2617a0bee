"""Compiles Python modules: `compile_modules.py SOURCE BYTECODE ...`, pairs of files.

Python uses the bytecode while its hash of the source holds, whatever the source's path and time are.
"""

import py_compile
import sys

for source, target in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    py_compile.compile(source, cfile=target, dfile=source, doraise=True, invalidation_mode=mode)
