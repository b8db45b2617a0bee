"""`register_env`: vector environments of Tandem in RLlib's runners, by configuration alone."""

import importlib
from collections.abc import Mapping
from typing import Any

import gymnasium

from tandem.environments.make_vec import make_vec
from tandem.errors import InvalidArgument


class _Contracted(gymnasium.vector.VectorWrapper):
    """Sets a contract by the first reset."""

    def __init__(self, envs: Any, contract: Any) -> None:
        super().__init__(envs)
        self._options: dict[str, Any] | None = {"contract": contract}

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        options = {**self._options, **(options or {})} if self._options else options
        results = self.env.reset(seed=seed, options=options)
        self._options = None
        return results


def register_env(name: str, env: Any, **options: Any) -> None:
    """Registers environments for RLlib: each of its runners, also on other nodes, makes one engine for all of its own.

    tandem.ray.register_env("cheetah", "HalfCheetah-v5")
    config.environment("cheetah").env_runners(
        num_envs_per_env_runner=16, gym_env_vectorize_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT
    )

    `env` and `options` are `task` and further arguments of `tandem.make_vec`. RLlib needs autoreset mode NEXT_STEP, the
    default. RLlib gives resets no options: `env_config` may have "contract", which the first reset of each runner's
    environments sets, for all their episodes.
    """

    def create(context: Mapping[str, Any]) -> Any:
        if "num_envs" not in context:
            raise InvalidArgument(
                f"{name}: expected a vector environment, found that RLlib asks for a single one; pass "
                "gym_env_vectorize_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT to config.env_runners"
            )
        envs = make_vec(env, context["num_envs"], **options)
        contract = context.get("contract")
        return envs if contract is None else _Contracted(envs, contract)

    # Ray's tune needs more packages than Ray.
    importlib.import_module("ray.tune.registry").register_env(name, create)
