"""Lets pip build the wheel in a clone: `pip install .`, for the Python that runs it.

The hooks are those of pip's interface to build systems; the work is Bazel's.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """Builds //client_py:wheel into a folder of pip's, and returns the wheel's file name.

    The other arguments, which pip's interface has, are not used.
    """
    command = [str(_ROOT / "tools" / "bazel"), "build", "//client_py:wheel"]
    subprocess.run(command, cwd=_ROOT, env={**os.environ, "TANDEM_PYTHON": sys.executable}, check=True)
    (wheel,) = (_ROOT / "bazel-bin" / "client_py" / "wheel").glob("*.whl")
    return Path(shutil.copy(wheel, wheel_directory)).name
