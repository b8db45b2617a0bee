"""`failure`: the text of an environment's exception. EnvRows (client_py/bindings/env_rows.h) calls it.

    try:
        env.step(action)
    except BaseException as error:
        text = failure(env, 3, error, 0, 17)

Its last line names the place, such as "in environment 3, my_envs.MyEnv (My-v0), episode 0, step 17", or "..., reset".
"""

import traceback
from typing import Any

import gymnasium


def failure(env: gymnasium.Env[Any, Any], env_id: int, error: BaseException, episode: int, step: int) -> str:
    """Returns the traceback, the environment's number and class, and when it failed, as text.

    The exception gets a note with the last line. It loses its traceback, which would keep the frames' objects. It is
    what `step` or `reset` of `env`, with its wrappers, raised, or what is wrong with their results. `episode` and
    `step` count from 0; step -1 is the reset.
    """
    when = "reset" if step < 0 else f"step {step}"
    text = failure_text(error, f"in environment {env_id}, {_described(env)}, episode {episode}, {when}")
    error.__traceback__ = None
    return text


def failure_text(error: BaseException, place: str) -> str:
    """Returns the traceback of any exception, with `place` as its last line."""
    try:
        error.add_note(place)
        text = "".join(traceback.format_exception(error))
        # The exceptions of a group come after its notes.
        return text if text.endswith(f"{place}\n") else f"{text}{place}\n"
    except Exception as other:  # of any exception's methods
        return f"{type(error).__name__}, of which no traceback can be made: {type(other).__name__}\n{place}\n"


def one_line(error: BaseException) -> str:
    """Returns class and text of any exception."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as other:  # of its __str__
        return f"{type(error).__name__}, whose text raises {type(other).__name__}"


def _described(env: gymnasium.Env[Any, Any]) -> str:
    """Returns the class of an environment without its wrappers, and its id."""
    try:
        inner = env.unwrapped
        spec = env.spec
    except Exception:  # of any environment's properties
        inner, spec = env, None
    name = f"{type(inner).__module__}.{type(inner).__qualname__}"
    return f"{name} ({spec.id})" if spec else name
