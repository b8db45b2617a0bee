"""The Python interpreters of tools/extra_env, which have the peers' packages."""

import os
import subprocess
from pathlib import Path

from tests.benchmark.rows import RowUnavailable

_ROOT = Path(__file__).parents[2]
_TOOL = _ROOT / "tools/extra_env"


def make_interpreter(name: str) -> None:
    """Creates an environment unless it exists; progress goes to stderr.

    Args:
      name: The environment's name for tools/extra_env.

    Raises:
      subprocess.SubprocessError: tools/extra_env failed; its message is on stderr.
    """
    code = subprocess.run([str(_TOOL), name], stdout=subprocess.DEVNULL).returncode
    if code != 0:
        raise subprocess.SubprocessError(
            f"tools/extra_env {name}: expected it to succeed, found exit code {code}; --no_peers leaves its rows out"
        )


def python_of(name: str) -> str:
    """Finds the Python interpreter of an environment.

    Args:
      name: The environment's name for tools/extra_env.

    Returns:
      The interpreter's path.

    Raises:
      RowUnavailable: The environment was not created.
    """
    found = subprocess.run([str(_TOOL), "--find", name], capture_output=True, text=True)
    if found.returncode != 0:
        raise RowUnavailable(found.stderr.strip())
    return found.stdout.strip()


def variables_of_interpreter() -> dict[str, str]:
    """Returns environment variables with which these interpreters import this project's modules."""
    folders = [str(_ROOT), str(_ROOT / "client_py")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONNOUSERSITE": "1"}
