"""Commands that the tests of the SDK run."""

import subprocess
from pathlib import Path

SUITE = Path("engine_adapter/conformance/suite").absolute()


def run(*command: str | Path, environment: dict[str, str], cwd: Path | None = None) -> str:
    """Runs a command, which must succeed.

    Args:
      command: The program and its arguments.
      environment: All of its environment variables.
      cwd: Its working folder; None: this process's.

    Returns:
      What it has printed.
    """
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
