"""VecEnvs for Stable-Baselines3. Importing this imports torch.

SharedMemoryVecEnv  what `make_vec(...).as_sb3()` returns
SubprocVecEnv       Stable-Baselines3's class of this name, with Tandem's workers: only the import changes
Checkpoints         a callback that saves a training; `resumed` continues it
"""

import io
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

from tandem import arguments, checkpoint
from tandem.arguments import integer, one_of
from tandem.engine.options import WorkerOptions
from tandem.environments.async_vector import AsyncVectorEnv
from tandem.environments.row_infos import infos_of_each
from tandem.errors import InvalidArgument, Unsupported

__all__ = ["Checkpoints", "SharedMemoryVecEnv", "SubprocVecEnv", "resumed"]


_MASKS = "action_masks"  # the method of environments that sb3-contrib calls
_NO_STATE = ("venv", "class_attributes", "metadata", "observation_space", "action_space")  # of a VecEnvWrapper


class SharedMemoryVecEnv(VecEnv):
    """A Stable-Baselines3 VecEnv; `SharedMemoryVectorEnv.as_sb3` makes one.

    infos[i] has the task's own infos and, at an episode's end, "terminal_observation", "TimeLimit.truncated" and, in
    `reset_infos`, the next episode's infos. A column of infos named "action_mask", bool or integer [num_envs, actions],
    is what `env_method("action_masks")` returns: sb3-contrib's MaskablePPO reads it, without a call for each step.
    """

    def __init__(self, envs: Any) -> None:
        """Takes over environments whose autoreset mode is SAME_STEP; `as_sb3` changes it.

        Args:
          envs: A `SharedMemoryVectorEnv`; `close` closes it.

        Raises:
          InvalidArgument: They are wrapped, or have another autoreset mode.
        """
        is_bare = isinstance(envs, VectorEnv) and not isinstance(envs, VectorWrapper)
        if not is_bare or not hasattr(envs, "recv"):
            raise InvalidArgument(
                f"envs: expected what make_vec returned, found a {type(envs).__name__}; call as_sb3() before any "
                "wrapper, and use the wrappers of Stable-Baselines3 then, such as VecMonitor and VecNormalize"
            )
        if envs.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise InvalidArgument(
                f"envs: expected SAME_STEP autoreset, found {envs.autoreset_mode.name}; envs.as_sb3() changes it"
            )
        self._envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self.metadata = envs.metadata
        self._masks: list[Any] = [None] * envs.num_envs

    def reset(self) -> VecEnvObs:
        """Starts new episodes from the seeds that `seed` gave, by the options of `set_options`.

        In an engine the only option is "contract", a `SimulationContract`, which later episodes keep. Returns
        observations, [num_envs, obs_size].
        """
        options: list[dict[str, Any]] = self._options
        self._reset_options()
        # None where `seed` set none: the random stream of that environment continues.
        if any(options):
            obs, parts = self._envs.reset_each([each or None for each in options], seed=self._seeds)
        else:
            obs, infos = self._envs.reset(seed=self._seeds)
            parts = [(range(self.num_envs), infos)]
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for indices, infos in parts:
            each = infos_of_each(infos, self.num_envs)
            for index in indices:
                self.reset_infos[index] = each[index]
        self._note_masks(self.reset_infos)
        self._reset_seeds()
        return obs

    def step_async(self, actions: Any) -> None:
        """Starts a step; `actions` has one action for each environment."""
        space = self.action_space
        if isinstance(space, spaces.Dict | spaces.Tuple):  # Stable-Baselines3 does not batch these
            batch: Any = create_empty_array(space, self.num_envs)
            actions = concatenate(space, list(actions), batch)
        self._envs.send(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Returns obs [num_envs, obs_size], rewards float32[num_envs], dones bool[num_envs], and infos of each."""
        obs, rewards, terminations, truncations, infos = self._envs.recv()
        dones = terminations | truncations
        final_obs = infos.pop("final_obs", None)
        final_infos = infos.pop("final_info", {})
        restarted = infos.pop("engine_restarted", None)
        each = infos_of_each(infos, self.num_envs)
        self._note_masks(each)
        if final_obs is not None:
            of_ended = infos_of_each(final_infos, self.num_envs)
            for index in np.flatnonzero(dones):
                self.reset_infos[index] = each[index]
                each[index] = {
                    **of_ended[index],
                    "terminal_observation": final_obs[index],
                    "TimeLimit.truncated": bool(truncations[index] and not terminations[index]),
                }
        for index in np.flatnonzero(~dones):
            each[index]["TimeLimit.truncated"] = False
        if restarted is not None:
            for of_one in each:
                of_one["engine_restarted"] = True
        return obs, rewards.astype(np.float32), dones, each

    def get_images(self) -> Sequence[np.ndarray[Any, Any] | None]:
        """Returns an image of every environment, uint8[height, width, 3]; None for each without a render mode."""
        return self._envs.render() or [None] * self.num_envs

    def close(self) -> None:
        """Closes the environments, and their engine. A second call has no effect."""
        self._envs.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Returns an attribute of the chosen environments; in an engine, one of `SharedMemoryVectorEnv.get_attr`."""
        if attr_name == _MASKS and self._masks[0] is not None:
            return [partial(self._masks.__getitem__, index) for index in self._chosen(indices)]
        if self._in_python:
            return self._of_each(indices, self._envs.call_chosen, attr_name)
        try:
            values = self._envs.get_attr(attr_name)
        except Unsupported:
            values = (getattr(self._envs, attr_name),) * self.num_envs
        return [values[index] for index in self._chosen(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of the chosen environments; Unsupported: they are in an engine."""
        if self._in_python:
            if chosen := sorted(set(self._chosen(indices))):
                self._envs.set_chosen(chosen, attr_name, value)
        else:
            self._envs.set_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of the chosen environments; Unsupported: they are in an engine."""
        if method_name == _MASKS and self._masks[0] is not None:
            return [self._masks[index] for index in self._chosen(indices)]
        if self._in_python:
            return self._of_each(indices, self._envs.call_chosen, method_name, *method_args, **method_kwargs)
        raise Unsupported(
            f"env_method({method_name!r}): the environments are in the engine's process, not Python objects; "
            "make_vec takes the task's options"
        )

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """Returns whether each chosen environment has this wrapper; in an engine none has."""
        if self._in_python:
            return self._of_each(indices, lambda ids: self._envs.is_wrapped(wrapper_class, ids))
        return [False] * len(self._chosen(indices))

    def _note_masks(self, infos: list[dict[str, Any]]) -> None:
        self._masks = [of_one.get("action_mask") for of_one in infos]

    @property
    def _in_python(self) -> bool:
        return hasattr(self._envs, "call_chosen")

    def _chosen(self, indices: VecEnvIndices) -> list[int]:
        """Returns the environments of some indices, which may be negative; IndexError: one is out of range."""
        return [range(self.num_envs)[index] for index in self._get_indices(indices)]

    def _of_each(
        self, indices: VecEnvIndices, call: Callable[..., Sequence[Any]], *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Returns call(env_ids, ...) for these indices; an environment that comes twice is called twice."""
        left = self._chosen(indices)
        results: list[Any] = []
        while left:
            count = next((at for at in range(len(left)) if left[at] in left[:at]), len(left))
            results += call(left[:count], *args, **kwargs)
            left = left[count:]
        return results


class SubprocVecEnv(SharedMemoryVecEnv):
    """Stable-Baselines3's `SubprocVecEnv` with Tandem's workers: several environments in each process.

    An exception of an environment is `tandem.EnvFailed` with the traceback; a process that dies is `tandem.PeerGone`.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        start_method: str | None = None,
        *,
        num_workers: int | None = None,
        engine: WorkerOptions | None = None,
    ) -> None:
        """Starts the workers.

        Args:
          env_fns: A function for each environment.
          start_method: None, or one of `multiprocessing.get_all_start_methods()`. Without effect: workers are new
            programs, and no `if __name__ == "__main__"` is needed.
          num_workers: Worker processes; None: as many as cores and environments allow.
          engine: Time-outs and waiting; None: a step may take 600 s, as for `tandem.vector.AsyncVectorEnv`.

        Raises:
          TandemError: As `tandem.make_vec`.
        """
        if start_method is not None:
            one_of("start_method", start_method, tuple(multiprocessing.get_all_start_methods()))
        super().__init__(
            AsyncVectorEnv(env_fns, autoreset_mode=AutoresetMode.SAME_STEP, num_workers=num_workers, engine=engine)
        )


class Checkpoints(BaseCallback):
    """Saves a training now and then, so that a killed one continues as if nothing had happened.

    The file has the algorithm with its optimizer and replay buffer, the environments' states, the numbers of wrappers
    such as VecNormalize, and the random generators. `resumed` reads it.

        envs = tandem.make_vec("CartPole-v1", 8, backend="python").as_sb3()
        model = resumed("training", PPO, envs) or PPO("MlpPolicy", envs)
        model.learn(steps - model.num_timesteps, Checkpoints("training", 10_000), reset_num_timesteps=False)
    """

    def __init__(self, path: str | os.PathLike[str], every: int) -> None:
        """Saves to a file before a rollout, when `every` steps of all environments have passed since the last time."""
        super().__init__()
        self._path, self._every = arguments.file_path("path", path), integer("every", every, 1)

    def _on_training_start(self) -> None:
        self._saved_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.num_timesteps - self._saved_at >= self._every:
            self._saved_at = self.num_timesteps
            self.save()

    def _on_step(self) -> bool:
        return True

    def save(self) -> None:
        """Saves now."""
        model, envs = self.model, self.training_env
        algorithm, buffer = io.BytesIO(), getattr(model, "replay_buffer", None)
        model.save(algorithm)
        chain = _chain(envs)
        wrappers = [
            (type(each).__name__, {name: value for name, value in vars(each).items() if name not in _NO_STATE})
            for each in chain[:-1]
        ]
        parts = {"algorithm": algorithm.getvalue(), "wrappers": wrappers, "replay_buffer": buffer}
        parts["key"] = getattr(model, "key", None)  # of SBX's random numbers, which its load draws again
        # Of actions before `learning_starts`; the load seeds it again.
        parts["action_draws"] = model.action_space.np_random.bit_generator.state
        checkpoint.save(self._path, _unwrapped(chain), **parts)


def resumed(path: str | os.PathLike[str], kind: type[Any], envs: VecEnv) -> Any:
    """Returns the algorithm of a file of `Checkpoints`, on equal environments, which continue, too; None: no file.

    `kind` is the algorithm's class; `envs` have the same wrappers. Call `learn` with `reset_num_timesteps=False` for
    the steps that are left.

    Raises:
      InvalidArgument: `envs` has other wrappers, or the file is another checkpoint. Nothing has changed.
      TandemError: As `tandem.checkpoint.load`.
    """
    file = arguments.file_path("path", path)
    if not os.path.exists(file):
        return None
    chain = _chain(envs)
    inner = _unwrapped(chain)
    parts = checkpoint.load(file)
    if "algorithm" not in parts:
        raise InvalidArgument(f"path: expected a file of Checkpoints, found another checkpoint: {file}")
    kinds = [type(wrapper).__name__ for wrapper in chain[:-1]]
    if (expected := [name for name, _ in parts["wrappers"]]) != kinds:
        raise InvalidArgument(f"envs: expected the wrappers {expected}, found {kinds}")
    model = kind.load(io.BytesIO(parts["algorithm"]), env=envs, force_reset=False)
    infos = checkpoint.load(file, inner)["infos"]  # and the generators, which the algorithm has drawn from
    chain[-1]._note_masks(infos_of_each(infos, inner.num_envs))
    for wrapper, (_, state) in zip(chain, parts["wrappers"], strict=False):
        vars(wrapper).update(state)
    model.action_space.np_random.bit_generator.state = parts["action_draws"]
    for name in ("replay_buffer", "key"):
        if parts[name] is not None:
            setattr(model, name, parts[name])
    return model


def _chain(envs: VecEnv) -> list[VecEnv]:
    """Returns wrappers, the outermost first, and what they wrap."""
    chain = [envs]
    while isinstance(chain[-1], VecEnvWrapper):
        chain.append(chain[-1].venv)
    return chain


def _unwrapped(chain: list[VecEnv]) -> Any:
    if not isinstance(chain[-1], SharedMemoryVecEnv):
        raise InvalidArgument(f"envs: expected make_vec(...).as_sb3(), found a {type(chain[-1]).__name__}")
    return chain[-1]._envs
