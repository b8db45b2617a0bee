"""Replaces Tandem in the recipes of client_py/examples/frameworks by each framework's own vector environment.

In each case the one that runs in the trainer's process: for CartPole the faster one, which the frameworks recommend.
"""

import argparse
import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gymnasium

# The class, and its method that each step of the vector calls once.
_STEPS = {
    "sb3": ("stable_baselines3.common.vec_env.DummyVecEnv", "step_wait"),
    "sbx": ("stable_baselines3.common.vec_env.DummyVecEnv", "step_wait"),
    "cleanrl": ("gymnasium.vector.SyncVectorEnv", "step"),
    "torchrl": ("torchrl.envs.SerialEnv", "_step"),
    "tianshou": ("tianshou.env.DummyVectorEnv", "step"),
    "rllib": ("gymnasium.vector.SyncVectorEnv", "step"),
    "xuance": ("xuance.environment.DummyVecEnv", "step_wait"),
}


def name_of(framework: str) -> str:
    """Returns the name of a framework's own class."""
    return _STEPS[framework][0].rpartition(".")[2]


def take_own(framework: str, step: Callable[[], None]) -> None:
    """Replaces Tandem's functions in this process; then `step` is called before each step of the vector."""
    path, method = _STEPS[framework]
    module, _, name = path.rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    original = getattr(kind, method)

    def counted(self: Any, *arguments: Any, **options: Any) -> Any:
        step()
        return original(self, *arguments, **options)

    setattr(kind, method, counted)

    def functions(task: str, num_envs: int) -> list[Callable[[], Any]]:
        return [lambda: gymnasium.make(task)] * num_envs

    def make(task: str, num_envs: int, **options: Any) -> Any:
        if framework in ("sb3", "sbx"):
            from stable_baselines3.common.env_util import make_vec_env

            return SimpleNamespace(as_sb3=lambda: make_vec_env(task, num_envs))
        if framework == "torchrl":
            from torchrl.envs import GymEnv

            probe = gymnasium.make(task)
            return SimpleNamespace(
                single_observation_space=probe.observation_space,
                single_action_space=probe.action_space,
                make=lambda: kind(num_envs, lambda: GymEnv(task, categorical_action_encoding=True)),
            )
        if framework == "xuance":
            return task, num_envs
        return kind(functions(task, num_envs))

    _replace("tandem", "make_vec", make)
    if framework == "torchrl":
        importlib.import_module("torchrl.collectors")  # derives classes from the one that is replaced
        _replace("torchrl.envs", "GymWrapper", lambda vector, **options: vector.make())
    if framework == "tianshou":
        _replace("tandem.tianshou", "VectorEnv", lambda envs: envs)
    if framework == "xuance":
        _replace("tandem.xuance", "VecEnv", _xuances)
    if framework == "rllib":
        register = importlib.import_module("ray.tune.registry").register_env

        def register_own(name: str, task: str, **options: Any) -> None:
            register(name, lambda context: kind(functions(task, context["num_envs"])))

        _replace("tandem.ray", "register_env", register_own)


def _replace(module: str, name: str, value: Any) -> None:
    setattr(importlib.import_module(module), name, value)


def _xuances(made: tuple[str, int], *, seed: int) -> Any:
    from xuance.environment import make_envs

    task, num_envs = made
    return make_envs(
        argparse.Namespace(
            env_name="Classic Control",
            env_id=task,
            env_seed=seed,
            vectorize="DummyVecEnv",
            parallels=num_envs,
            render_mode="rgb_array",
            distributed_training=False,
        )
    )
