"""Runs a benchmark of a google-benchmark program."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any


def run_benchmark(program: str, benchmark: str, seconds: float, **variables: str) -> dict[str, Any]:
    """Runs one benchmark.

    Args:
      program: The program's name, in this file's folder.
      benchmark: The benchmark's name.
      seconds: The shortest duration of the measurement.
      **variables: More environment variables.

    Returns:
      The figures, by google-benchmark's names.

    Raises:
      RuntimeError: The program failed.
    """
    command = [
        str(Path(__file__).with_name(program)),
        f"--benchmark_filter=^{benchmark}(/real_time)?(/threads:[0-9]+)?$",
        f"--benchmark_min_time={seconds}",
        "--benchmark_format=json",
    ]
    # Warnings about the machine's load and about models are discarded.
    ended = subprocess.run(command, capture_output=True, env={**os.environ, **variables}, text=True)
    if ended.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr.strip()}")
    (found,) = json.loads(ended.stdout)["benchmarks"]
    return dict(found)
