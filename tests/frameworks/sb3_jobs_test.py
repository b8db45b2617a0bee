"""Trainings of Stable-Baselines3 as jobs of the daemon, on a busy machine."""

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from courier import Courier
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor

import tandem
from tandem.telemetry import Run, RunStatus, TrainerClient
from tandem.testing.daemons import running_daemon, wait_until
from tandem.testing.engines import busy_processes

_DAEMON = Path(tandem.__path__[0], "_programs", "tandem-daemon")
_JOBS = 6
_DEADLINE_SECS = 1200.0


_TRAINING = """
import tandem
from courier import Courier
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecMonitor

envs = VecMonitor(tandem.make_vec(Courier, 4, num_workers=4).as_sb3())
others = VecMonitor(tandem.make_vec(Courier, 2, num_workers=2).as_sb3())
evaluation = EvalCallback(others, n_eval_episodes=2, eval_freq=32)
PPO("MultiInputPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, device="cpu").learn(256, callback=evaluation)
"""


def test_six_jobs_two_at_a_time_beside_busy_processes(tmp_path: Path) -> None:
    """Each trains and evaluates with the default time-outs, and succeeds."""
    shutil.copy(Path(__file__).with_name("courier.py"), tmp_path)
    file = tmp_path / "train.py"
    file.write_text(_TRAINING)
    with (
        running_daemon(tmp_path / "runs", "--gpu_slots=2", program=_DAEMON) as daemon,
        TrainerClient(daemon.address) as client,
        busy_processes(2),
    ):
        submit = [sys.executable, "-m", "tandemctl", f"--daemon={daemon.address}", "submit", "--gpus=1", "--"]
        for _ in range(_JOBS):
            subprocess.run([*submit, sys.executable, str(file)], check=True)
        ended = wait_until(lambda: _ended(client), f"{_JOBS} jobs that have ended", _DEADLINE_SECS)
    assert [run.status for run in ended] == [RunStatus.TERM] * _JOBS, [run.failure_reason for run in ended]


def _ended(client: TrainerClient) -> list[Run]:
    runs = client.runs()
    return runs if len(runs) == _JOBS and all(run.status.final for run in runs) else []


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
