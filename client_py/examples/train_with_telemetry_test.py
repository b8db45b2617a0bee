"""Tests of the example train_with_telemetry, alone and as a run of the daemon."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tandem.telemetry import RunStatus, TrainerClient
from tandem.testing.daemons import run_config, running_daemon
from tandem.testing.engines import start_python, watchdog  # noqa: F401, a fixture

_SCRIPT = Path(__file__).with_name("train_with_telemetry.py")


def _run(*arguments: str) -> list[dict[str, Any]]:
    script = start_python(_SCRIPT, *arguments)
    out, err = script.communicate()
    assert script.returncode == 0, err
    return [json.loads(line) for line in out.splitlines() if line]


def test_policy_learns_to_balance() -> None:
    """After 10 iterations the mean return is 10 times that of the first; each printed line is an event."""
    events = _run()
    names = [event.get("event", event.get("event_type")) for event in events]
    assert names[0] == "run_started" and names[-1] == "run_completed" and names.count("iteration") == 10
    returns = [event["payload"]["mean_return"] for event in events if event.get("event") == "iteration"]
    assert returns[-1] > 10 * returns[0]
    assert names.count("episode") >= 10 * 32


def test_steps_are_printed_when_asked_for() -> None:
    """An episode has as many step events as steps; a task with continuous actions works as well."""
    events = _run("--steps", "--iterations=1", "--num_envs=2", "--task=InvertedPendulum-v5")
    steps = [event for event in events if event.get("event_type") == "step"]
    for episode in (event for event in events if event.get("event_type") == "episode"):
        own = [step for step in steps if step["episode"] == episode["episode"]]
        assert len(own) == episode["steps"] and len(own[0]["action"]) == 1 and len(own[0]["observation"]) == 4


def test_ctrl_c_is_reported() -> None:
    """After SIGINT the last event is run_failed, with the error type KeyboardInterrupt."""
    script = start_python(_SCRIPT, "--iterations=1000000")
    assert script.stdout is not None
    while '"episode"' not in script.stdout.readline():
        assert script.poll() is None
    script.send_signal(signal.SIGINT)
    out, err = script.communicate()
    assert script.returncode == 1 and "interrupted" in err
    last = json.loads(out.splitlines()[-1])
    assert last["event"] == "run_failed" and last["payload"]["error_type"] == "KeyboardInterrupt"


def test_daemon_keeps_the_printed_events(tmp_path: Path) -> None:
    """The daemon's episodes and steps equal those that the script prints for the same seed."""
    arguments = ("--iterations=3", "--num_envs=4", "--steps")
    path = os.pathsep.join(filter(None, sys.path))
    with running_daemon(tmp_path / "data") as daemon, TrainerClient(daemon.address) as client:
        run_id = client.submit(run_config(sys.executable, str(_SCRIPT.absolute()), *arguments, PYTHONPATH=path)).run_id
        episodes = list(client.episodes(run_id))
        steps = list(client.steps(run_id))
        (run,) = client.runs()
        assert run.status is RunStatus.TERM, run.failure_reason
    events = _run(*arguments)
    printed = [event for event in events if event.get("event_type") == "episode"]
    assert [(each.episode_index, each.total_reward, each.steps, each.metadata) for each in episodes] == [
        (event["episode"], event["total_reward"], event["steps"], event["metadata"]) for event in printed
    ]
    printed = [event for event in events if event.get("event_type") == "step"]
    assert [(each.episode_index, each.step_index, each.action, each.observation) for each in steps] == [
        (event["episode"], event["step_index"], event["action"], event["observation"]) for event in printed
    ]
