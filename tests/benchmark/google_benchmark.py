"""Runs a benchmark of a program of google-benchmark."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any


def run_benchmark(program: str, benchmark: str, seconds: float, **variables: str) -> dict[str, Any]:
    """Runs one benchmark.

    Args:
      program: The program's name; it is beside this file.
      benchmark: The benchmark's name.
      seconds: How long to measure, at least.
      **variables: More environment variables.

    Returns:
      Its figures, as google-benchmark names them.

    Raises:
      RuntimeError: The program failed.
    """
    command = [
        str(Path(__file__).with_name(program)),
        f"--benchmark_filter=^{benchmark}(/real_time)?(/threads:[0-9]+)?$",
        f"--benchmark_min_time={seconds}",
        "--benchmark_format=json",
    ]
    # Its warnings about the machine's load and about models are not shown.
    ended = subprocess.run(command, capture_output=True, env={**os.environ, **variables}, text=True)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr.strip()}")
    (found,) = json.loads(ended.stdout)["benchmarks"]
    return dict(found)
