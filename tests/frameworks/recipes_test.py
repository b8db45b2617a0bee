"""The recipes of client_py/examples/frameworks train: on a task in C++, and on Gymnasium's environment in Python."""

import json
import math
import os
import re
import signal
import subprocess
import sys
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


@pytest.mark.parametrize("framework", ["torchrl", "tianshou", "rllib", "xuance"])
def test_a_killed_recipe_goes_on_from_its_checkpoint(framework: str, limit: float, tmp_path: Path) -> None:
    """It trains for the steps that are left alone, and has learned."""
    file = tmp_path / "training"
    command = [sys.executable, str(_script(framework, tmp_path)), "--checkpoint", str(file), "--steps", str(_STEPS)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **quiet) as training:
        try:
            wait_until(
                lambda: (
                    training.poll() is not None or (file.exists() and checkpoint.load(file)["steps"] >= _STEPS // 3)
                ),
                "a checkpoint",
                _WATCHDOG_SECS,
            )
        finally:
            os.killpg(training.pid, signal.SIGKILL)
    begun = checkpoint.load(file)["steps"]
    variables = {**os.environ, "TANDEM_RUN_ID": "job"}
    ran = subprocess.run(command, cwd=tmp_path, env=variables, check=True, capture_output=True, text=True)
    events = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    stepped = sum(event["total_reward"] for event in events if event.get("event_type") == "episode")  # 1 each
    assert 0 < stepped <= _STEPS - begun + 4096  # whole batches
    assert checkpoint.load(file)["steps"] > begun
    found = re.search(r"^return ([\d.]+)$", ran.stdout, re.MULTILINE)
    assert found and float(found[1]) > limit


def _numbers(command: list[str], kill_at: float = math.inf) -> dict[int, dict[str, float]]:
    """Returns the numbers that a training prints, such as losses, by its steps; kills it at a number of steps."""
    found: dict[int, dict[str, float]] = {}
    variables = {**os.environ, "TANDEM_RUN_ID": "job"}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as training:
        assert training.stdout is not None
        for event in (json.loads(line) for line in training.stdout if line.startswith("{")):
            if event.get("event_type") == "scalars":
                of_step = {name: value for name, value in event["scalars"].items() if not name.startswith("time/")}
                found.setdefault(event["step"], {}).update(of_step)
                if event["step"] >= kill_at:
                    training.kill()
                    break
    return found


@pytest.mark.parametrize(("framework", "algorithm"), [("sb3", "PPO"), ("sb3", "SAC"), ("sbx", "PPO"), ("sbx", "SAC")])
def test_a_killed_recipe_continues_digit_for_digit(framework: str, algorithm: str, tmp_path: Path) -> None:
    """Its numbers are those of the undisturbed training."""
    task, steps = {"PPO": ("CartPole-v1", 8192), "SAC": ("Pendulum-v1", 3600)}[algorithm]
    options = [f"--algorithm={algorithm}", f"--task={task}", f"--steps={steps}", "--num_envs=4", "--every=800"]
    command = [sys.executable, str(_script(framework, tmp_path)), *options]
    whole = _numbers([*command, f"--checkpoint={tmp_path}/whole"])
    killed = _numbers([*command, f"--checkpoint={tmp_path}/killed"], kill_at=steps * 0.6)
    rest = _numbers([*command, f"--checkpoint={tmp_path}/killed", "--resume"])
    assert killed and 0 < len(rest) < len(whole) and any("loss" in name for of in rest.values() for name in of)
    assert {step: killed.get(step, {}) | rest.get(step, {}) for step in killed | rest} == whole


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
