"""`track` and `job_events`: what programs print, in a job and outside of one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tandem.testing.engines import watchdog  # noqa: F401, the fixture


def _printed(tmp_path: Path, program: str, run_id: str) -> tuple[int, list[Any]]:
    script = tmp_path / "script.py"
    script.write_text(f"import tandem.telemetry\nevents = tandem.telemetry.track(algo='ppo')\n{program}")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TANDEM_RUN_ID": run_id}
    done = subprocess.run([sys.executable, script], env=variables, stdout=subprocess.PIPE, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_events_of_a_job(tmp_path: Path) -> None:
    """The run begins, has numbers, and is completed when the program ends."""
    code, events = _printed(tmp_path, "events.scalars(3, {'loss': 0.5})", "run-1")
    assert code == 0
    assert [event.get("event", event.get("event_type")) for event in events] == [
        "run_started",
        "scalars",
        "run_completed",
    ]
    assert events[0]["payload"] == {"algo": "ppo"} and events[0]["run_id"] == "run-1"
    assert (events[1]["step"], events[1]["scalars"]) == (3, {"loss": 0.5})


def test_an_exception_fails_the_run(tmp_path: Path) -> None:
    """The last event has its text; run_completed does not follow."""
    code, events = _printed(tmp_path, "raise RuntimeError('the solver diverged')", "run-1")
    assert code == 1
    assert [event["event"] for event in events] == ["run_started", "run_failed"]
    assert events[1]["payload"] == {"error": "RuntimeError: the solver diverged", "error_type": "RuntimeError"}


@pytest.mark.parametrize(
    "program",
    [
        "tandem.telemetry.track(algo='sac')",
        "import os, sys; os.waitpid(os.fork() or sys.exit(), 0); tandem.telemetry.track(algo='sac')",
        "import os; os.waitpid(os.fork() or 1 / 0, 0); tandem.telemetry.track(algo='sac')",
    ],
)
def test_a_run_begins_and_ends_once(tmp_path: Path, program: str) -> None:
    """However often it is tracked, and if it forks."""
    _, events = _printed(tmp_path, program, "run-1")
    assert [event["event"] for event in events] == ["run_started", "training_started", "run_completed"]
    assert events[1]["payload"] == {"algo": "sac"}


@pytest.mark.parametrize("program", ["events.scalars(3, {'loss': 0.5})", "raise RuntimeError()"])
def test_nothing_is_printed_outside_of_a_job(tmp_path: Path, program: str) -> None:
    """Neither events nor an error."""
    assert _printed(tmp_path, program, "")[1] == []
