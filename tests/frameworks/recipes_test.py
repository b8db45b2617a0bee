"""The recipes of client_py/examples/frameworks train: on a task in C++, and on Gymnasium's environment in Python."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from tandem import checkpoint
from tandem.testing.daemons import wait_until

_RECIPES = Path(__file__).parents[2] / "client_py" / "examples" / "frameworks"
_FRAMEWORKS = ("sb3", "sbx", "cleanrl", "torchrl", "tianshou", "rllib", "xuance")
_STEPS = 30_000
_WATCHDOG_SECS = 600


@pytest.fixture(scope="module")
def limit() -> float:
    """The 99th percentile of a random policy's returns."""
    env, returns = gymnasium.make("CartPole-v1"), []
    env.action_space.seed(0)
    for episode in range(1000):
        env.reset(seed=episode)
        done, total = False, 0.0
        while not done:
            _, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.percentile(returns, 99))


def _script(framework: str, folder: Path) -> Path:
    """SBX has the recipe of Stable-Baselines3, with another import."""
    if framework != "sbx":
        return _RECIPES / f"train_{framework}.py"
    text = (_RECIPES / "train_sb3.py").read_text("utf-8")
    assert "from stable_baselines3 import PPO, SAC\n" in text
    script = folder / "train_sbx.py"
    script.write_text(text.replace("from stable_baselines3 import", "from sbx import"))
    return script


def _train(framework: str, folder: Path, *arguments: str) -> float:
    command = [sys.executable, str(_script(framework, folder)), *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(command, cwd=folder, text=True, check=False, timeout=_WATCHDOG_SECS, **pipes)
    found = re.search(r"^return ([\d.]+)$", ran.stdout, re.MULTILINE)
    assert ran.returncode == 0 and found, ran.stdout[-4000:]
    return float(found[1])


@pytest.mark.parametrize("framework", _FRAMEWORKS)
def test_recipes_learn(framework: str, limit: float, tmp_path: Path) -> None:
    """The mean return is above nearly all returns of a random policy, and equal with both backends."""
    native, python = (
        _train(framework, tmp_path, "--steps", str(_STEPS), "--backend", backend) for backend in ("native", "python")
    )
    print(f"{framework}: {native:.1f} in C++, {python:.1f} in Python; random {limit:.1f}")
    assert min(native, python) > limit


@pytest.mark.parametrize("framework", _FRAMEWORKS)
def test_recipes_print_events_as_a_job(framework: str, tmp_path: Path) -> None:
    """Episodes, whose returns are their steps, and numbers of the training; nothing outside of a job."""
    variables = {**os.environ, "TANDEM_RUN_ID": "job"}
    command = [sys.executable, str(_script(framework, tmp_path)), "--steps", "8000"]
    out = subprocess.run(command, cwd=tmp_path, env=variables, check=True, stdout=subprocess.PIPE).stdout
    events = [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
    kinds = [event.get("event_type") for event in events]
    assert kinds.count("episode") > 50 and "scalars" in kinds
    assert all(event["total_reward"] == event["steps"] for event in events if event.get("event_type") == "episode")


def _events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def _killed(command: list[str], folder: Path, is_time: Callable[[], bool]) -> None:
    """Kills a training with its processes at a time."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=folder, start_new_session=True, **quiet) as training:
        try:
            wait_until(lambda: training.poll() is not None or is_time(), "a checkpoint", _WATCHDOG_SECS)
            assert training.returncode is None
        finally:
            os.killpg(training.pid, signal.SIGKILL)


@pytest.mark.parametrize("framework", ["torchrl", "tianshou", "rllib", "xuance"])
def test_a_killed_recipe_goes_on_from_its_checkpoint(framework: str, limit: float, tmp_path: Path) -> None:
    """It trains for the steps that are left alone, and has learned."""
    file = tmp_path / "training"
    command = [sys.executable, str(_script(framework, tmp_path)), "--checkpoint", str(file), "--steps", str(_STEPS)]
    _killed(command, tmp_path, lambda: file.exists() and checkpoint.load(file)["steps"] >= _STEPS // 3)
    begun = checkpoint.load(file)["steps"]
    variables = {**os.environ, "TANDEM_RUN_ID": "job"}
    ran = subprocess.run(command, cwd=tmp_path, env=variables, check=True, capture_output=True, text=True)
    stepped = sum(event["steps"] for event in _events(ran.stdout) if event.get("event_type") == "episode")
    assert 0 < stepped <= _STEPS - begun + 4096  # whole batches
    assert checkpoint.load(file)["steps"] > begun
    found = re.search(r"^return ([\d.]+)$", ran.stdout, re.MULTILINE)
    assert found and float(found[1]) > limit


@pytest.mark.parametrize(("framework", "algorithm"), [("sb3", "PPO"), ("sb3", "SAC"), ("sbx", "PPO"), ("sbx", "SAC")])
def test_a_killed_recipe_continues_digit_for_digit(framework: str, algorithm: str, tmp_path: Path) -> None:
    """Its numbers, such as losses, and its return are those of the undisturbed training."""
    task = ["--task=CartPole-v1", "--steps=8192"] if algorithm == "PPO" else ["--task=Pendulum-v1", "--steps=3600"]
    command = [sys.executable, str(_script(framework, tmp_path)), f"--algorithm={algorithm}", *task, "--num_envs=4"]
    variables = {**os.environ, "TANDEM_RUN_ID": "job"}

    def train(folder: Path) -> tuple[dict[int, dict[str, float]], str]:
        words = [*command, "--every=800", f"--checkpoint={folder}", "--resume"]
        out = subprocess.run(words, env=variables, check=True, stdout=subprocess.PIPE, text=True).stdout
        events = [event for event in _events(out) if event.get("event_type") == "scalars"]
        kept = ("train/", "rollout/")
        return {
            event["step"]: {name: value for name, value in event["scalars"].items() if name.startswith(kept)}
            for event in events
        }, out.splitlines()[-1]

    whole, its_return = train(tmp_path / "whole")
    killed = tmp_path / "killed" / "training"
    words = [*command, "--every=800", f"--checkpoint={killed.parent}", "--resume"]
    versions = set()

    def is_second() -> bool:
        if killed.exists():
            versions.add(killed.stat().st_mtime_ns)
        return len(versions) > 1

    _killed(words, tmp_path, is_second)
    rest, the_return = train(killed.parent)
    assert 0 < len(rest) < len(whole) and the_return == its_return
    assert any("loss" in name for values in rest.values() for name in values)
    assert rest == {step: whole[step] for step in rest}


@pytest.mark.parametrize("path", sorted(_RECIPES.glob("train_*.py")), ids=lambda path: path.stem)
def test_recipes_fit_on_a_screen(path: Path) -> None:
    """Each has at most 70 lines."""
    assert len(path.read_text("utf-8").splitlines()) <= 70


def test_torchrun_shares_gradients(tmp_path: Path) -> None:
    """Two processes learn together: episodes become longer."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        str(_RECIPES / "train_torchrun.py"),
    ]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(
        [*command, "--updates", "40"], cwd=tmp_path, text=True, check=False, timeout=_WATCHDOG_SECS, **pipes
    )
    lengths = [float(value) for value in re.findall(r"^\d+: ([\d.]+) steps", ran.stdout, re.MULTILINE)]
    assert ran.returncode == 0 and len(lengths) == 40, ran.stdout[-4000:]
    assert np.mean(lengths[-5:]) > 2 * np.mean(lengths[:3])
