"""Rows whose client runs in an environment of its own, which tools/extra_env makes."""

import os
import subprocess
from pathlib import Path

from tests.benchmark.measurement import Group, Row, RowUnavailable, Size, options_of, run_client

_ROOT = Path(__file__).parents[2]


def measure_in_environment(row: Row, size: Size, seconds: float, region: str) -> Group:
    """Measures a row by `peer_client`.

    Args:
      row: A row with an environment.
      size: The payload.
      seconds: End the group after that long.
      region: The name of a socket, for rows that have one.

    Returns:
      What one group took.

    Raises:
      RowUnavailable: The environment was not made, or the machine forbids what the row needs.
      subprocess.SubprocessError: It failed; its own message is on stderr.
    """
    assert row.environment is not None
    find = [str(_ROOT / "tools/extra_env"), "--find", row.environment]
    found = subprocess.run(find, capture_output=True, text=True)
    if found.returncode != 0:
        raise RowUnavailable(f"{row.label}: {found.stderr.strip()}")
    command = [found.stdout.strip(), "-P", "-m", "tests.benchmark.peer_client", *options_of(row, size, seconds, region)]
    # The environment brings the packages; of what was built here it sees these modules only.
    variables = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONNOUSERSITE": "1"}
    return run_client(row, command, seconds, variables)
