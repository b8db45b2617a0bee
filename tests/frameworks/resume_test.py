"""Trainings that are killed and resumed equal undisturbed ones, digit for digit; run by `tools/test --with torch`."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

_STEPS = {"PPO": 4096, "SAC": 1500}
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
        weights = sum(float(each.double().sum()) for each in self.model.policy.parameters())
        returns = [episode["r"] for episode in self.model.ep_info_buffer]
        print(self.num_timesteps, repr(weights), repr(sum(returns)), flush=True)

path, name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
task, kind = ("CartPole-v1", PPO) if name == "PPO" else ("Pendulum-v1", SAC)
envs = VecNormalize(VecMonitor(tandem.make_vec(task, 4, backend="python").as_sb3()))
options = {"n_steps": 64, "n_epochs": 2} if name == "PPO" else {"learning_starts": 200, "buffer_size": 5000}
model = resumed(path, kind, envs) or kind("MlpPolicy", envs, seed=1, device="cpu", **options)
model.learn(steps - model.num_timesteps, [Checkpoints(path, 300), Curve()], reset_num_timesteps=False)
"""


def _start(path: Path, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", _TRAINING, str(path), name, str(_STEPS[name])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", list(_STEPS))
def test_a_killed_training_continues_digit_for_digit(name: str, tmp_path: Path) -> None:
    """Killed three times, in the middle of rollouts: each line of the curve equals that of the undisturbed run."""
    whole = _start(tmp_path / "whole", name)
    curve = dict(line.split(" ", 1) for line in whole.communicate()[0].splitlines())
    assert whole.returncode == 0 and len(curve) > 10
    found: dict[str, str] = {}
    for kill_after in (3, 4, 5, None):
        with _start(tmp_path / "killed", name) as training:
            assert training.stdout is not None
            for number, line in enumerate(training.stdout):
                step, rest = line.split(" ", 1)
                found[step] = rest.strip()
                assert found[step] == curve[step].strip(), step
                if kill_after is not None and number == kill_after * (1 if name == "PPO" else 60):
                    training.send_signal(signal.SIGKILL)
                    break
    assert found.keys() == curve.keys()
