"""The Pythons of tools/extra_env, which have the peers."""

import os
import subprocess
from pathlib import Path

from tests.benchmark.measurement import Group, Row, RowUnavailable, Size, options_of, run_client

_ROOT = Path(__file__).parents[2]
_TOOL = _ROOT / "tools/extra_env"


def make_interpreter(name: str) -> None:
    """Makes one, unless it is there; progress goes to stderr.

    Args:
      name: As tools/extra_env knows it.

    Raises:
      subprocess.SubprocessError: It could not be made; the tool's own message is on stderr.
    """
    code = subprocess.run([str(_TOOL), name], stdout=subprocess.DEVNULL).returncode
    if code != 0:
        raise subprocess.SubprocessError(
            f"tools/extra_env {name}: expected it to succeed, found exit code {code}; --no_peers leaves its rows out"
        )


def python_of(name: str) -> str:
    """Finds one.

    Args:
      name: As tools/extra_env knows it.

    Returns:
      Its path.

    Raises:
      RowUnavailable: It was not made.
    """
    found = subprocess.run([str(_TOOL), "--find", name], capture_output=True, text=True)
    if found.returncode != 0:
        raise RowUnavailable(found.stderr.strip())
    return found.stdout.strip()


def variables_of_interpreter() -> dict[str, str]:
    """Returns environment variables for any of them: of what was built here it sees modules, and no packages."""
    folders = [str(_ROOT), str(_ROOT / "client_py")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONNOUSERSITE": "1"}


def measure_by_interpreter(row: Row, size: Size, seconds: float, region: str) -> Group:
    """Measures a row by `peer_client`.

    Args:
      row: A row with an interpreter.
      size: The payload.
      seconds: End the group after that long.
      region: The name of a socket, for rows that have one.

    Returns:
      What one group took.

    Raises:
      RowUnavailable: The interpreter was not made, or the machine forbids what the row needs.
      subprocess.SubprocessError: It failed; its own message is on stderr.
    """
    assert row.interpreter is not None
    program = [python_of(row.interpreter), "-P", "-m", "tests.benchmark.peer_client", f"--parent={os.getpid()}"]
    return run_client(row, [*program, *options_of(row, size, seconds, region)], seconds, variables_of_interpreter())
