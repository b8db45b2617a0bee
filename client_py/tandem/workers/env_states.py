"""The state of a Gymnasium environment with its wrappers as bytes, and back into an equal environment.

    data = pickled(env, saved)                # in a worker
    stage(env, env_id, data), commit(env_id)  # in the same or another one, before the reset that returns its results

The state is a pickle of the wrappers and of the environment, NumPy's generators and MuJoCo's model and data included.
Windows are left out: a renderer opens again. An environment with `get_state()` and `set_state(state)` of its own gives
its own part itself; the emulator of Atari does so by its own state.
"""

import io
import pickle
import sys
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import cloudpickle
import gymnasium
from gymnasium.utils import EzPickle

from tandem.environments.sealed_state import fingerprint
from tandem.errors import Unsupported


class Saved(NamedTuple):
    """What the trainer knows of an environment: its last observation and info.

    `ended`: the episode has ended, and the next step is the reset, with NEXT_STEP.
    """

    obs: Any
    info: dict[str, Any]
    ended: bool


class _Staged(NamedTuple):
    """An environment's new state, before anything has changed."""

    target: Any
    new: Any
    saved: Saved
    after: list[Callable[[], None]]  # restore parts that the old environment keeps


_staged: dict[int, _Staged] = {}


def fingerprint_of(env: gymnasium.Env[Any, Any]) -> tuple[int, str]:
    """Returns a number that equal environments have, and what it is of, for messages."""
    chain = [f"{type(each).__module__}.{type(each).__qualname__}" for each in _chain(env)]
    spaces = repr(env.observation_space), repr(env.action_space)
    return fingerprint(*chain, *spaces), " in ".join(reversed(chain))


def pickled(env: gymnasium.Env[Any, Any], env_id: int, saved: Saved) -> bytes:
    """Returns the state.

    Raises:
      Unsupported: The environment, an attribute and its type, which cannot be saved.
    """
    own = _own_state(env)
    try:
        return zlib.compress(_dumped((env, saved), own), 1)
    except Exception as error:  # of any object's __reduce__
        raise Unsupported(
            f"save_state: expected an environment that can be pickled, found {_culprit(env, own)} of environment "
            f"{env_id}: {error}; give it get_state() and set_state(state)"
        ) from error


def stage(env: gymnasium.Env[Any, Any], env_id: int, data: bytes) -> None:
    """Makes the new environment of a state; the old one is unchanged until `commit`."""
    if not hasattr(env, "__dict__"):
        raise Unsupported(f"load_state: expected an environment with a __dict__, found a {type(env).__name__}")
    after: list[Callable[[], None]] = []
    new, saved = _Unpickler(io.BytesIO(zlib.decompress(data)), env, after).load()
    _staged[env_id] = _Staged(env, new, saved, after)


def discard(env: gymnasium.Env[Any, Any], env_id: int) -> None:
    """Forgets what was staged."""
    del env
    _staged.pop(env_id, None)


def commit(resets: bool, env: gymnasium.Env[Any, Any], env_id: int) -> None:
    """Puts the new state in place; the next `reset` returns the saved results, once.

    `resets`: an episode that has ended is followed by the next one in that reset.
    """
    staged = _staged.pop(env_id)
    env.__class__, env.__dict__ = staged.new.__class__, staged.new.__dict__
    for restore in staged.after:
        restore()
    obs, info, ended = staged.saved
    if ended and resets:
        return

    def reset(**_: Any) -> tuple[Any, dict[str, Any]]:
        del env.__dict__["reset"]
        return obs, info

    def step(_: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        del env.__dict__["step"]
        first, infos = env.reset()
        return first, 0.0, False, False, infos

    env.__dict__["reset"] = reset
    if ended:
        env.__dict__["step"] = step


def _chain(env: Any) -> list[Any]:
    """Returns an environment's wrappers, the outermost first, and itself."""
    chain = [env]
    while isinstance(chain[-1], gymnasium.Wrapper):
        chain.append(chain[-1].env)
    return chain


def _own_state(env: Any) -> Any:
    """Returns the environment, without wrappers, if it saves itself; else None."""
    inner = env.unwrapped
    return (
        inner if callable(getattr(inner, "get_state", None)) and callable(getattr(inner, "set_state", None)) else None
    )


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    def __init__(self, file: io.BytesIO, own: Any) -> None:
        super().__init__(file)
        self._own = own

    def persistent_id(self, obj: Any) -> Any:
        if obj is self._own and obj is not None:
            return "own", obj.get_state()
        if "ale_py" in sys.modules and isinstance(obj, sys.modules["ale_py"].ALEInterface):
            return "ale", obj.cloneSystemState().serialize()
        return None

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if isinstance(obj, EzPickle):  # which pickles the arguments of the constructor alone
            return object.__new__, (kind,), vars(obj), None, None, _set_attributes
        if kind.__module__.startswith("pygame"):  # windows and clocks
            return type(None), ()
        if kind.__name__ == "MujocoRenderer":
            return object.__new__, (kind,), vars(obj) | {"viewer": None, "_viewers": {}}, None, None, _set_attributes
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, env: Any, after: list[Callable[[], None]]) -> None:
        super().__init__(file)
        self._env, self._after = env, after

    def persistent_load(self, pid: Any) -> Any:
        kind, state = pid
        inner = self._env.unwrapped
        if kind == "own":
            self._after.append(lambda: inner.set_state(state))
            return inner
        self._after.append(lambda: inner.ale.restoreSystemState(sys.modules["ale_py"].ALEState(state)))
        return inner.ale


def _dumped(value: Any, own: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file, own).dump(value)
    return file.getvalue()


def _set_attributes(obj: Any, attributes: dict[str, Any]) -> None:
    obj.__dict__.update(attributes)


def _culprit(env: Any, own: Any) -> str:
    """Returns the attribute that cannot be pickled, with its type."""
    for each in _chain(env):
        for name, value in vars(each).items():
            if each is own or value in (None, getattr(each, "env", None)):
                continue
            try:
                _dumped(value, own)
            except Exception:
                kind = type(value)
                return f"{type(each).__name__}.{name}, a {kind.__module__}.{kind.__qualname__},"
    return f"a {type(env).__name__}"
