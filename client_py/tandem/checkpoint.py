"""Checkpoints of a training: one file with the environments' states, the random generators, and the trainer's parts.

    parts = tandem.checkpoint.load(path, envs) if path.exists() else {}
    ...
    tandem.checkpoint.save(path, envs, policy=policy.state_dict(), update=update)

A training that is killed between two calls of `save` goes on from the last one as if nothing had happened. The file
contains pickles, and so is a program: load only your own.
"""

import contextlib
import os
import pickle
import random
import sys
import tempfile
from typing import Any

import numpy as np

from tandem import arguments
from tandem.environments.sealed_state import CHECKPOINT, sealed, unsealed
from tandem.errors import InvalidArgument, SystemCallFailed

__all__ = ["load", "save"]


def save(path: str | os.PathLike[str], envs: Any = None, **parts: Any) -> None:
    """Writes a checkpoint, in place of an earlier one; after a kill or a full disk the earlier one is whole.

    Args:
      path: The file.
      envs: What `make_vec` returned, also wrapped; None: without environments. Wrappers are parts of your own.
      parts: Values that can be pickled, such as the state of a policy and of its optimizer. The generators of NumPy,
        Python and, if it is imported, torch are saved by themselves.

    Raises:
      SystemCallFailed: The file cannot be written; nothing has changed.
      InvalidArgument: A part cannot be pickled.
      TandemError: As `save_state` of the environments.
    """
    arguments.path("path", path)
    content = {
        "states": None if envs is None else envs.unwrapped.save_state(),
        "generators": _generators(),
        "parts": parts,
    }
    try:
        data = sealed(CHECKPOINT, 0, pickle.dumps(content, pickle.HIGHEST_PROTOCOL))
    except Exception as error:  # of any object's __reduce__
        raise InvalidArgument(f"parts: expected values that can be pickled, found others: {error}") from error
    try:
        _replace(os.fsdecode(path), data)
    except OSError as error:
        raise SystemCallFailed(
            f"checkpoint: {error.strerror}; the earlier one is unchanged: {os.fsdecode(path)}"
        ) from error


def load(path: str | os.PathLike[str], envs: Any = None) -> dict[str, Any]:
    """Puts a checkpoint in place, and returns its parts; "obs" and "infos" are the environments' last ones.

    Args:
      path: The file.
      envs: Environments equal to those that were saved; None: their states are left out.

    Raises:
      InvalidArgument: The file is damaged, or no checkpoint.
      SystemCallFailed: It cannot be read.
      TandemError: As `load_state` of the environments.
    """
    arguments.path("path", path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SystemCallFailed(f"checkpoint: {error.strerror}: {os.fsdecode(path)}") from error
    content = pickle.loads(unsealed("checkpoint", data, CHECKPOINT, 0, "Tandem"))
    parts: dict[str, Any] = dict(content["parts"])
    if envs is not None and content["states"] is not None:
        parts["obs"], parts["infos"] = envs.unwrapped.load_state(content["states"])
    _set_generators(content["generators"])
    return parts


def _generators() -> dict[str, Any]:
    states: dict[str, Any] = {"numpy": np.random.get_state(), "python": random.getstate()}
    if torch := sys.modules.get("torch"):
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_generators(states: dict[str, Any]) -> None:
    np.random.set_state(states["numpy"])
    random.setstate(states["python"])
    if "torch" in states:
        import torch

        torch.set_rng_state(states["torch"])
        if "cuda" in states and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(states["cuda"])


def _replace(path: str, data: bytes) -> None:
    """Writes a new file beside `path`, which gets its name when it is on the disk."""
    folder = os.path.dirname(path) or "."
    descriptor, part = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)[:100]}-")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
