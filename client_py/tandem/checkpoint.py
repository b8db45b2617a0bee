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
import time
from typing import Any

import numpy as np

from tandem import arguments
from tandem.environments.sealed_state import CHECKPOINT, sealed, unsealed
from tandem.errors import InvalidArgument, SystemCallFailed

__all__ = ["load", "save"]

_LEFT_SECS = 3600  # without a write: the file of a killed writer


def save(path: str | os.PathLike[str], envs: Any = None, **parts: Any) -> None:
    """Writes a checkpoint, in place of an earlier one; after a kill or a full disk the earlier one is whole.

    What a killed writer has left beside the file is removed by a later call, after an hour.

    Args:
      path: The file, of one training alone: of two, each replaces what the other has saved.
      envs: What `make_vec` returned, also wrapped; None: without environments. Wrappers are parts of your own.
      parts: Values that can be pickled, such as the state of a policy and of its optimizer; with environments not
        named "obs" or "infos". The generators of NumPy, Python and, if it is imported, torch are saved by themselves.

    Raises:
      SystemCallFailed: The file cannot be written; nothing has changed.
      InvalidArgument: A part cannot be pickled, or has the name of another.
      TandemError: As `save_state` of the environments.
    """
    file_path = arguments.file_path("path", path)
    if envs is not None and not parts.keys().isdisjoint(("obs", "infos")):
        raise InvalidArgument("parts: expected others than obs and infos, which load returns of the environments")
    content = {
        "states": None if envs is None else _unwrapped(envs).save_state(),
        "generators": _generators(),
        "parts": parts,
    }
    try:
        data = sealed(CHECKPOINT, 0, pickle.dumps(content, pickle.HIGHEST_PROTOCOL))
    except Exception as error:  # of any object's __reduce__
        raise InvalidArgument(f"parts: expected values that can be pickled, found others: {error}") from error
    try:
        _replace(file_path, data)
    except OSError as error:
        raise SystemCallFailed(f"checkpoint: {error.strerror}; the earlier one is unchanged: {file_path}") from error


def load(path: str | os.PathLike[str], envs: Any = None) -> dict[str, Any]:
    """Puts a checkpoint in place, and returns its parts; "obs" and "infos" are the environments' last ones.

    Args:
      path: The file.
      envs: Environments equal to those that were saved; None: their states are left out.

    Raises:
      InvalidArgument: The file is damaged, no checkpoint, or without states; or a part cannot be unpickled.
      SystemCallFailed: It cannot be read.
      TandemError: As `load_state` of the environments.
    """
    file_path = arguments.file_path("path", path)
    try:
        with open(file_path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SystemCallFailed(f"checkpoint: {error.strerror}: {file_path}") from error
    payload = unsealed("checkpoint", data, CHECKPOINT, 0, "Tandem")
    try:
        content = pickle.loads(payload)
        states, generators, parts = content["states"], content["generators"], dict(content["parts"])
    except Exception as error:  # of any object's __setstate__, or of an import
        raise InvalidArgument(f"checkpoint: expected parts of known classes, found others: {error}") from error
    if envs is not None:
        if states is None:
            raise InvalidArgument("checkpoint: expected states of environments, found none; call load(path)")
        parts["obs"], parts["infos"] = _unwrapped(envs).load_state(states)
    _set_generators(generators)
    return parts


def _unwrapped(envs: Any) -> Any:
    its = getattr(envs, "unwrapped", None)
    if not hasattr(its, "save_state"):
        raise InvalidArgument(f"envs: expected what make_vec returned, found a {type(envs).__name__}")
    return its


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
    folder, name = os.path.split(os.path.realpath(path))  # a link stays one
    prefix = f".{name[:40]}-"
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _remove_left(directory, prefix)
        part = f"{prefix}{os.urandom(8).hex()}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=directory)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=directory)
            raise
        os.fsync(directory)
    finally:
        os.close(directory)


def _remove_left(directory: int, prefix: str) -> None:
    for name in os.listdir(directory):
        if name.startswith(prefix) and name.endswith(".part"):
            with contextlib.suppress(OSError):  # of another process, which has removed it
                if time.time() - os.stat(name, dir_fd=directory).st_mtime > _LEFT_SECS:
                    os.unlink(name, dir_fd=directory)
