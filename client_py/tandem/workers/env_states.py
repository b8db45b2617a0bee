"""The state of a Gymnasium environment with its wrappers as bytes, and back into an equal environment.

    data = pickled(env, env_id, saved)                # in a worker
    stage(env, env_id, data), commit(..., env_id)     # in the same or another one, before the reset

The state is a pickle of the wrappers and of the environment, NumPy's generators and MuJoCo's model and data included.
Windows are left out: a renderer opens again. An environment with `get_state()` and `set_state(state)` of its own gives
its own part itself; the emulator of Atari does so by its own state.
"""

import functools
import io
import math
import pickle
import re
import sys
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import cloudpickle
import gymnasium
from gymnasium.utils import EzPickle

from tandem.environments.sealed_state import fingerprint
from tandem.errors import Unsupported

_SURELY = math.log(1e-12)  # the probability that a sticky step repeats the earlier action each time


class Saved(NamedTuple):
    """What the trainer knows of an environment: its last observation and info.

    `ended`: the episode has ended, and was not followed by another one.
    """

    obs: Any
    info: dict[str, Any]
    ended: bool


class _Staged(NamedTuple):
    """An environment's new state, and the return and steps of its episode.

    `parts` are those that the old environment keeps: get, set, and a new state. `undo`, in reverse order, brings back
    the old state.
    """

    new: Any
    saved: Saved
    episode: tuple[float, int]
    parts: list[tuple[Callable[[], Any], Callable[[Any], None], Any]]
    undo: list[Callable[[], None]]


rows: Any = None  # the EnvRows of this worker, which sets both
first_env = 0
_staged: dict[int, _Staged] = {}


def fingerprint_of(env: gymnasium.Env[Any, Any]) -> tuple[int, str]:
    """Returns a number that equal environments have, and what it is of, for messages."""
    chain = [f"{type(each).__module__}.{type(each).__qualname__}" for each in _chain(env)]
    spaces = re.sub(" at 0x[0-9a-f]+", "", f"{env.observation_space} {env.action_space}")  # addresses of functions
    return fingerprint(*chain, spaces), " in ".join(reversed(chain))


def pickled(env: gymnasium.Env[Any, Any], env_id: int, saved: Saved) -> bytes:
    """Returns the state.

    Raises:
      Unsupported: The environment, an attribute and its type, which cannot be saved.
      Exception: As its own `get_state`.
    """
    *_, returns, _, steps = rows.episodes()
    episode = float(returns[env_id - first_env]), int(steps[env_id - first_env])
    own = _own_state(env)
    try:
        return zlib.compress(_dumped((env, saved, episode), own), 1)
    except Exception as error:  # of any object's __reduce__
        raise Unsupported(
            f"save_state: expected an environment that can be pickled, found {_culprit(env, own)} of environment "
            f"{env_id}: {error}; give it get_state() and set_state(state)"
        ) from error


def stage(env: gymnasium.Env[Any, Any], env_id: int, data: bytes) -> None:
    """Makes the new environment of a state; the old one is unchanged until `commit`."""
    if not hasattr(env, "__dict__"):
        raise Unsupported(f"load_state: expected an environment with a __dict__, found a {type(env).__name__}")
    unpickler = _Unpickler(io.BytesIO(zlib.decompress(data)), env)
    new, saved, episode = unpickler.load()
    _staged[env_id] = _Staged(new, saved, episode, unpickler.parts, [])


def discard(env: gymnasium.Env[Any, Any], env_id: int) -> None:
    """Forgets what was staged; after a `commit` that no reset has followed, the old state is back."""
    del env
    if (staged := _staged.pop(env_id, None)) is not None:
        for undo in reversed(staged.undo):
            undo()


def commit(resets: bool, env: gymnasium.Env[Any, Any], env_id: int) -> None:
    """Puts the new state in place; the next `reset` returns the saved results, once.

    `resets`: an episode that has ended is followed by the next one in that reset.
    """
    staged = _staged[env_id]
    for get, put, _ in staged.parts:
        staged.undo.append(functools.partial(put, get()))
    staged.undo.append(functools.partial(_become, env, env.__class__, env.__dict__))
    _become(env, staged.new.__class__, staged.new.__dict__)
    for _, put, state in staged.parts:
        put(state)
    attributes = env.__dict__
    obs, info, ended = staged.saved

    def reset(**arguments: Any) -> tuple[Any, dict[str, Any]]:
        env.__dict__ = attributes
        del _staged[env_id]
        if ended and resets:
            return env.reset(**arguments)
        rows.continue_episode(env_id - first_env, ended, *staged.episode)
        return obs, info

    env.__dict__ = {**attributes, "reset": reset}


def _become(env: Any, kind: type, attributes: dict[str, Any]) -> None:
    env.__class__, env.__dict__ = kind, attributes


def _chain(env: Any) -> list[Any]:
    """Returns an environment's wrappers, the outermost first, and itself."""
    chain = [env]
    while isinstance(chain[-1], gymnasium.Wrapper):
        chain.append(chain[-1].env)
    return chain


def _own_state(env: Any) -> tuple[Any, Any] | None:
    """Returns the environment, without wrappers, and its own state, if it saves itself."""
    inner = env.unwrapped
    if callable(getattr(inner, "get_state", None)) and callable(getattr(inner, "set_state", None)):
        return inner, inner.get_state()
    return None


def _ale_state(ale: Any) -> bytes:
    """Returns the state of an emulator of Atari.

    It lacks the last action, which a sticky step repeats: from here on that is action 0, here and in each copy.
    """
    state = ale.cloneSystemState().serialize()
    _set_ale_state(ale, state)
    return state  # type: ignore[no-any-return]  # it has no types


def _set_ale_state(ale: Any, state: bytes) -> None:
    sticky = ale.getFloat("repeat_action_probability")
    if 0 < sticky < 1:
        for _ in range(math.ceil(_SURELY / math.log(sticky))):
            ale.act(0)
    ale.restoreSystemState(sys.modules["ale_py"].ALEState(state))


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    def __init__(self, file: io.BytesIO, own: tuple[Any, Any] | None) -> None:
        super().__init__(file)
        self._own = own

    def persistent_id(self, obj: Any) -> Any:
        if self._own is not None and obj is self._own[0]:
            return "own", self._own[1]
        if "ale_py" in sys.modules and isinstance(obj, sys.modules["ale_py"].ALEInterface):
            return "ale", _ale_state(obj)
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
    def __init__(self, file: io.BytesIO, env: Any) -> None:
        super().__init__(file)
        self._inner, self.parts = env.unwrapped, []  # type: ignore[var-annotated]  # of _Staged

    def persistent_load(self, pid: Any) -> Any:
        (kind, state), inner = pid, self._inner
        if kind == "own":
            self.parts.append((inner.get_state, inner.set_state, state))
            return inner
        both = (functools.partial(call, inner.ale) for call in (_ale_state, _set_ale_state))
        self.parts.append((*both, state))
        return inner.ale


def _dumped(value: Any, own: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file, own).dump(value)
    return file.getvalue()


def _set_attributes(obj: Any, attributes: dict[str, Any]) -> None:
    obj.__dict__.update(attributes)


def _culprit(env: Any, own: tuple[Any, Any] | None) -> str:
    """Returns the attribute, or the own state, that cannot be pickled, with its type."""
    values = [] if own is None else [(f"{type(own[0]).__name__}.get_state()", own[1])]
    for each in _chain(env):
        if own is None or each is not own[0]:
            values += [
                (f"{type(each).__name__}.{name}", value)
                for name, value in vars(each).items()
                if value is not None and value is not getattr(each, "env", None)
            ]
    for name, value in values:
        try:
            _dumped(value, own)
        except Exception:
            kind = type(value)
            return f"{name}, a {kind.__module__}.{kind.__qualname__},"
    return f"a {type(env).__name__}"
