"""The recipes of client_py/examples/frameworks train: on a task in C++, and on Gymnasium's environment in Python."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

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
    assert "from stable_baselines3 import PPO\n" in text
    script = folder / "train_sbx.py"
    script.write_text(text.replace("from stable_baselines3 import PPO\n", "from sbx import PPO\n"))
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


@pytest.mark.parametrize("path", sorted(_RECIPES.glob("train_*.py")), ids=lambda path: path.stem)
def test_recipes_fit_on_a_screen(path: Path) -> None:
    """Each has at most 60 lines."""
    assert len(path.read_text("utf-8").splitlines()) <= 60


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
