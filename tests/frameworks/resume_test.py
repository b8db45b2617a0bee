"""Trainings that are killed and resumed equal undisturbed ones, digit for digit; run by `tools/test --with torch`."""

import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

_STEPS = {"PPO": 8192, "SAC": 1500}
_KILLS = 10  # of each
_TRAINING = """
import sys
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
import tandem
from tandem.sb3 import Checkpoints, resumed

class Curve(BaseCallback):
    def _on_step(self):
        return True

    def _on_rollout_end(self):
        weights = sum(float(each.detach().double().sum()) for each in self.model.policy.parameters())
        returns = [episode["r"] for episode in self.model.ep_info_buffer]
        print(self.num_timesteps, repr(weights), repr(sum(returns)), flush=True)

path, name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
task, kind = ("CartPole-v1", PPO) if name == "PPO" else ("Pendulum-v1", SAC)
envs = VecNormalize(VecMonitor(tandem.make_vec(task, 4, backend="python").as_sb3()))
options = {"n_steps": 64, "n_epochs": 2} if name == "PPO" else {"learning_starts": 200, "buffer_size": 5000}
model = resumed(path, kind, envs) or kind("MlpPolicy", envs, seed=1, device="cpu", **options)
model.learn(steps - model.num_timesteps, [Checkpoints(path, 128), Curve()], reset_num_timesteps=False)
"""


def _start(path: Path, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", _TRAINING, str(path), name, str(_STEPS[name])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", list(_STEPS))
def test_a_training_killed_at_random_moments_continues_digit_for_digit(name: str, tmp_path: Path) -> None:
    """Each line of the curve equals that of the undisturbed run."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # of the moments
    chance = random.Random(seed)
    curve: dict[str, str] = {}
    begun = 0.0
    with _start(tmp_path / "whole", name) as training:
        assert training.stdout is not None
        for line in training.stdout:
            begun = begun or time.monotonic()
            step, curve[step] = line.split(" ", 1)
    secs = time.monotonic() - begun
    assert training.returncode == 0 and len(curve) > 10
    found: dict[str, str] = {}
    codes = []
    for at in range(_KILLS + 1):
        with _start(tmp_path / "killed", name) as training:
            assert training.stdout is not None
            killer = threading.Timer(chance.uniform(0, 1.5 * secs / _KILLS), training.kill)
            for line in training.stdout:
                if at < _KILLS and not killer.ident:
                    killer.start()
                if not line.endswith("\n"):  # cut by the kill
                    break
                step, found[step] = line.split(" ", 1)
                assert found[step] == curve[step], step
        killer.cancel()
        codes.append(training.returncode)
    assert found.keys() == curve.keys() and codes[-1] == 0
    assert codes.count(-signal.SIGKILL) >= _KILLS // 2, codes


def _curve(path: Path, kill_at: int = 0) -> dict[int, str]:
    """Runs SAC, and kills it at a number of steps; returns its lines."""
    found = {}
    with _start(path, "SAC") as training:
        assert training.stdout is not None
        for line in training.stdout:
            step, text = line.split(" ", 1)
            found[int(step)] = text
            if int(step) == kill_at:
                training.kill()
                break
    return found


def test_a_training_killed_before_its_first_update_continues_digit_for_digit(tmp_path: Path) -> None:
    """Until `learning_starts`, 200, SAC draws actions from the space; the checkpoint is of step 128."""
    whole, killed = _curve(tmp_path / "whole"), _curve(tmp_path / "killed", 160)
    rest = _curve(tmp_path / "killed")
    assert min(rest) == 132
    assert killed | rest == whole


def _recipe(name: str, folder: Path, kill_at: int, *more: str) -> dict[int, str]:
    """Runs a recipe, and kills it at a number of steps; returns the return that it printed at each number."""
    options = ["--task=Hopper-v5", "--num_envs=8", "--steps=6144", "--seed=2", "--every=1024", f"--checkpoint={folder}"]
    command = [sys.executable, f"client_py/examples/{name}.py", *options, *more]
    found: dict[int, str] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as training:
        assert training.stdout is not None
        for line in training.stdout:  # "\r" ends a line, too
            if line.strip():
                steps, _, _, mean, *_ = line.split()
                found[int(steps.replace(",", ""))] = mean
                if kill_at and max(found) >= kill_at:
                    training.send_signal(signal.SIGKILL)
                    break
    assert kill_at or training.returncode == 0
    return found


@pytest.mark.parametrize("name", ["train_ppo_cleanrl", "train_ppo_sb3"])
def test_a_killed_recipe_continues_digit_for_digit(name: str, tmp_path: Path) -> None:
    """With environments in an engine; the second run begins with the last checkpoint."""
    whole = _recipe(name, tmp_path / "whole", 0)
    killed = _recipe(name, tmp_path / "killed", 3500)
    rest = _recipe(name, tmp_path / "killed", 0, "--resume")
    assert 1024 < min(rest) <= max(killed) and max(rest) == max(whole) == 6144
    assert len(set(whole.values())) > 5
    assert killed | rest == whole
