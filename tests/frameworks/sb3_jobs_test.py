"""Trainings of Stable-Baselines3 as jobs of the daemon, on a busy machine."""

import itertools
import math
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from courier import Courier
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import tandem
from tandem.telemetry import Run, RunStatus, TrainerClient
from tandem.testing.daemons import running_daemon, wait_until
from tandem.testing.engines import busy_processes

_DAEMON = Path(tandem.__path__[0], "_programs", "tandem-daemon")
_GRID = ("lr=1e-3,3e-4", "seed=0..2")
_JOBS = 6
_DEADLINE_SECS = 1200.0


_TRAINING = """
import sys

import tandem
from courier import Courier
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecMonitor

envs = VecMonitor(tandem.make_vec(Courier, 4, num_workers=4).as_sb3())
others = VecMonitor(tandem.make_vec(Courier, 2, num_workers=2).as_sb3())
callbacks = [EvalCallback(others, n_eval_episodes=2, eval_freq=32), tandem.telemetry.sb3.Callback()]
options = {"learning_rate": float(sys.argv[1]), "seed": int(sys.argv[2]), "batch_size": 64, "n_epochs": 1}
PPO("MultiInputPolicy", envs, n_steps=32, device="cpu", **options).learn(256, callback=callbacks)
"""


def test_a_sweep_of_six_two_at_a_time_beside_busy_processes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each trains and evaluates with the default time-outs, and succeeds; TensorBoard reads the numbers of the best.

    Prints the time of the sweep, and that of the same six one after another.
    """
    shutil.copy(Path(__file__).with_name("courier.py"), tmp_path)
    file = tmp_path / "train.py"
    file.write_text(_TRAINING)
    with (
        running_daemon(tmp_path / "runs", "--no_queue=false", "--cpus=2", program=_DAEMON) as daemon,
        TrainerClient(daemon.address) as client,
        busy_processes(2),
    ):
        tandemctl = [sys.executable, "-m", "tandemctl", f"--daemon={daemon.address}"]
        begin = time.monotonic()
        grid = [f"--grid={values}" for values in _GRID]
        subprocess.run([*tandemctl, "submit", *grid, "--", sys.executable, str(file), "{lr}", "{seed}"], check=True)
        ended = wait_until(lambda: _ended(client), f"{_JOBS} jobs that have ended", _DEADLINE_SECS)
        sweep_secs = time.monotonic() - begin
        assert [run.status for run in ended] == [RunStatus.TERM] * _JOBS, [run.failure_reason for run in ended]
        assert _most_at_once(client) <= 2

        best = subprocess.run([*tandemctl, "best"], check=True, capture_output=True, text=True).stdout
        run_id = max(client.describe().runs, key=lambda each: each.mean_return or -math.inf).run.run_id
        assert best.strip() == run_id
        subprocess.run([*tandemctl, "export", run_id, "--format=tensorboard", f"--out={tmp_path}/board"], check=True)
        board = EventAccumulator(f"{tmp_path}/board", size_guidance={"scalars": 0}).Reload()
        printed = [
            (scalars.step, name, np.float32(value))
            for scalars in client.scalars(run_id, follow=False)
            for name, value in zip(scalars.names, scalars.values, strict=True)
        ]
        assert {name for _, name, _ in printed} > {"train/loss", "time/fps"}
        read = [
            (event.step, name, np.float32(event.value))
            for name in board.Tags()["scalars"]
            for event in board.Scalars(name)
        ]
        assert sorted(each for each in read if not each[1].startswith("episode/")) == sorted(printed)

        begin = time.monotonic()
        for lr, seed in itertools.product(("1e-3", "3e-4"), range(3)):
            subprocess.run([sys.executable, str(file), lr, str(seed)], check=True, cwd=tmp_path)
    with capfd.disabled():
        print(f"six jobs, two at a time: {sweep_secs:.0f} s; one after another: {time.monotonic() - begin:.0f} s")


_THREE_STEPS_AN_ATTEMPT = """
import os, sys
from tandem.telemetry import track
events, attempt = track(), int(os.environ["TANDEM_ATTEMPT"])
for step in range(3):
    events.scalars(step, {"loss": attempt})
    events.episode(episode=step, total_reward=attempt, steps=10, terminated=True, truncated=False)
sys.exit(attempt == 1)
"""


def test_attempts_are_folders_of_tensorboard(tmp_path: Path) -> None:
    """Their steps begin at 0 each. A second export would double the numbers: it is refused. A full disk is reported."""
    (tmp_path / "train.py").write_text(_THREE_STEPS_AN_ATTEMPT)
    with (
        running_daemon(tmp_path / "runs", program=_DAEMON) as daemon,
        TrainerClient(daemon.address) as client,
    ):
        tandemctl = [sys.executable, "-m", "tandemctl", f"--daemon={daemon.address}"]
        command = [*tandemctl, "submit", "--restart=1", "--", sys.executable, str(tmp_path / "train.py")]
        run_id = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        list(client.episodes(run_id))  # until it has ended
        export = [*tandemctl, "export", run_id, "--format=tensorboard", f"--out={tmp_path}/board"]
        subprocess.run(export, check=True)
        for attempt in (1, 2):
            board = EventAccumulator(f"{tmp_path}/board/attempt_{attempt}").Reload()
            assert [(each.step, each.value) for each in board.Scalars("loss")] == [(step, attempt) for step in range(3)]
            returns = [(each.step, each.value) for each in board.Scalars("episode/return")]
            assert returns == [(10, attempt), (20, attempt), (30, attempt)]
        again = subprocess.run(export, check=False, capture_output=True, text=True)
        assert again.returncode == 1 and "attempt_1/events.out" in again.stderr
        shutil.rmtree(tmp_path / "board")
        full = ["prlimit", "--fsize=100", *export]
        failed = subprocess.run(full, check=False, capture_output=True, text=True)
        assert failed.returncode == 1 and "tandemctl: --out: expected a folder to write to" in failed.stderr


def _ended(client: TrainerClient) -> list[Run]:
    runs = client.runs()
    return runs if len(runs) == _JOBS and all(run.status.final for run in runs) else []


def _most_at_once(client: TrainerClient) -> int:
    """Returns the greatest number of attempts that lasted at the same time."""
    attempts = [attempt for run in client.describe().runs for attempt in run.attempts]
    spans = [(each.started, each.ended) for each in attempts if each.started and each.ended]
    assert len(spans) == _JOBS
    return max(sum(begin <= start < end for begin, end in spans) for start, _ in spans)


def _in_workers(envs: Any) -> list[list[str]]:
    return list(envs.env_method("modules"))


def test_monitors_and_evaluations_import_nothing_in_workers() -> None:
    """Although the class that they ask for is one of Stable-Baselines3, which imports torch."""
    with closing(VecMonitor(tandem.make_vec(Courier, 2, num_workers=2).as_sb3())) as envs:
        model = PPO("MultiInputPolicy", envs, n_steps=8, batch_size=8, device="cpu")
        evaluate_policy(model, envs, n_eval_episodes=2)
        assert envs.env_is_wrapped(Monitor) == [False, False]
        assert _in_workers(envs) == [[], []]


def test_a_monitor_in_a_worker_is_found() -> None:
    """The supervisor has imported its class, once, and has one thread still."""
    with closing(tandem.make_vec(lambda: Monitor(Courier()), 2, num_workers=2).as_sb3()) as envs:
        assert envs.env_is_wrapped(Monitor) == [True, True]
        supervisor = Path(f"/proc/{envs._envs._workers._process.pid}")
        assert len(list((supervisor / "task").iterdir())) == 1
        assert "libtorch" in (supervisor / "maps").read_text()


def test_a_tensor_reaches_environments_that_have_no_torch() -> None:
    """Each worker imports torch; this does not count as time of the call."""
    engine = tandem.WorkerOptions(call_timeout=1.0)
    with closing(tandem.make_vec(Courier, 2, num_workers=2, engine=engine)) as envs:
        envs.set_attr("weights", torch.zeros(3))
        assert [weights.tolist() for weights in envs.get_attr("weights")] == [[0.0] * 3] * 2
