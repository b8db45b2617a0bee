"""Policies of several inputs train on the engines of the SDK, by `tools/test --with torch`: the tests need torch."""

import contextlib
import subprocess
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

import tandem

_ROOT = Path(__file__).parents[2]
_ENVS = 8


@pytest.fixture(name="sdk", scope="module")
def _sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdk")
    (archive,) = (_ROOT / "bazel-bin/sdk").glob("tandem-sdk-*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "--strip-components=1"], cwd=folder, check=True)
    return folder


def _script(folder: Path, command: str) -> Path:
    script = folder / "engine.sh"
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


@pytest.fixture(name="server", params=["C", "C++", "C#", "Python"])
def _server(sdk: Path, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A program: the games, and the sample in C#."""
    if request.param == "Python":
        return _ROOT / "client_py/examples/cart_game.py"
    if request.param == "C#":
        command = f"env MONO_DISABLE_SHARED_AREA=1 LD_LIBRARY_PATH={sdk}/lib mono"
        return _script(tmp_path, f"{command} {_ROOT}/bazel-bin/sdk/csharp/CounterEngine.exe --truncate_after 50")
    name = {"C": "c_game", "C++": "cpp_game"}[request.param]
    subprocess.run(["cmake", "-S", sdk / "examples" / name, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={sdk}"], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    return _script(tmp_path, f"{tmp_path}/{name} --tick_hz 10000")


def test_a_policy_of_several_inputs_trains(server: Path) -> None:
    """The observation is a Dict with an image; a cart learns to reach its goal, a counter to be rewarded."""
    engine = tandem.EngineOptions(server=server)
    with contextlib.closing(tandem.make_vec(num_envs=_ENVS, engine=engine).as_sb3()) as envs:
        space = envs.observation_space
        assert "image" in space.spaces and space["image"].dtype == np.uint8
        normalized = VecNormalize(envs, norm_obs=False)
        model = PPO("MultiInputPolicy", normalized, n_steps=64, batch_size=128, n_epochs=4, seed=1, device="cpu")
        before, _ = evaluate_policy(model, envs, n_eval_episodes=8)
        model.learn(15_000)
        after, _ = evaluate_policy(model, envs, n_eval_episodes=8)
        assert after > before
