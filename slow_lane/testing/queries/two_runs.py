"""Runs two trainings under a daemon with the example that prints events, to make a table for queries.

two_runs.py FOLDER     # an empty folder, which becomes the daemon's data folder
"""

import os
import sys
from pathlib import Path

from slow_lane.testing.queries.recipes import RUNS
from tandem.telemetry import TrainerClient
from tandem.testing.daemons import run_config, running_daemon

_SCRIPT = Path("client_py/examples/train_with_telemetry.py")


def make_table(folder: Path) -> None:
    """Runs the trainings.

    Args:
      folder: The data folder, which gets tandem.db.

    Raises:
      AssertionError: A run failed.
    """
    path = os.pathsep.join(filter(None, sys.path))
    with running_daemon(folder) as daemon, TrainerClient(daemon.address) as client:
        for seed, run_id in enumerate(RUNS):
            arguments = (str(_SCRIPT.absolute()), "--steps", "--iterations=4", f"--seed={seed}")
            client.submit(run_config(sys.executable, *arguments, PYTHONPATH=path), run_id=run_id)
            for _ in client.steps(run_id):
                pass  # until the run has ended
        for run in client.runs():
            assert run.failure_reason is None, run.failure_reason


if __name__ == "__main__":
    make_table(Path(sys.argv[1]))
