"""The live scene of environments in workers that have MuJoCo's `model` and `data`.

    supervisor: a viewer watches, a snapshot is due  ->  the order `message`
    workers:    poses of the watched environments  ->  their rows in the buffer, a memory file
    supervisor: all workers have answered  ->  one snapshot in the scene's segment

engine_adapter/host/workers_scene.h is the supervisor's half, and describes the buffer. The package mujoco belongs to
the environments: this module does not import it.
"""

import contextlib
import mmap
import sys
import time
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tandem._native import EnvRows
from tandem.workers.env_failures import one_line

_TEXT_BYTES = 199  # of an error, in UTF-8
_UNKNOWN_TIME = 2  # a flag of a row: schema/layout/scene.h
_HEAD = np.dtype(
    [("saves", np.uint64), ("version", np.uint64), ("seconds", np.float64)]
    + [("mujoco", "S32"), ("error", f"S{_TEXT_BYTES + 1}")]
)
# Arrays of a model that its picture depends on.
_DRAWN = (
    *("geom_bodyid", "geom_size", "geom_pos", "geom_quat", "geom_rgba", "geom_matid", "geom_group", "mat_rgba"),
    *("skin_rgba", "hfield_size", "hfield_data", "light_pos", "light_dir", "light_diffuse", "light_active"),
)


def mujoco_of(env: gymnasium.Env[Any, Any]) -> tuple[Any, Any] | None:
    """Returns MuJoCo's model and data of an environment; None: it has none."""
    with contextlib.suppress(Exception):  # of any environment's properties, or another module of that name
        mujoco: Any = sys.modules["mujoco"]
        inner: Any = env.unwrapped
        if isinstance(inner.model, mujoco.MjModel) and isinstance(inner.data, mujoco.MjData):
            return inner.model, inner.data
    return None


def nodes_of(envs: Sequence[gymnasium.Env[Any, Any]]) -> int:
    """Returns the number of bodies, without the world, of the largest model; 0: no environment has one."""
    return max((found[0].nbody - 1 for found in map(mujoco_of, envs) if found is not None), default=0)


class ScenePlan(NamedTuple):
    """The shape of the buffer: environments of the run, and bodies of each."""

    num_envs: int
    nodes: int

    @property
    def row(self) -> Any:
        """The dtype of a row."""
        numbers = ("sim_time", "episode_return", "reward")
        return np.dtype(
            [("env", np.uint32), ("flags", np.uint32), ("episode", np.uint64), ("step", np.uint64)]
            + [(name, np.float64) for name in numbers]
            + [("poses", np.float32, (self.nodes, 7)), ("padding", np.uint8, 4 * self.nodes % 8)]
        )

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return _HEAD.itemsize + self.num_envs * (16 + int(self.row.itemsize))


class ScenePoser:
    """A worker's part: copies the poses of its environments that the supervisor wants."""

    def __init__(
        self,
        fd: int,
        model_file: str,
        plan: ScenePlan,
        first_env: int,
        envs: Sequence[gymnasium.Env[Any, Any]],
        rows: EnvRows,
        rewards: NDArray[np.float64],
    ) -> None:
        """Maps the buffer `fd`. The worker has these environments, of which `first_env` is the first.

        `model_file` is the path of the file for models; `rows` has the episodes, `rewards` float64[envs] the last ones.
        """
        memory, own = mmap.mmap(fd, plan.size), slice(first_env, first_env + len(envs))
        words = np.frombuffer(memory, np.uint64, 2 * plan.num_envs, _HEAD.itemsize)
        self._head = np.frombuffer(memory, _HEAD, 1)
        self._wanted, self._copied = (part[own] for part in np.split(words, 2))
        self._places = np.frombuffer(memory, plan.row, offset=_HEAD.itemsize + words.nbytes)[own]
        self._model_file, self._first_env, self._envs = model_file, first_env, envs
        self._rows, self._rewards = rows, rewards
        self._model: Any = None  # that this worker has saved last; with its version, and the number of that save
        self._saved = 0, 0
        self._looks_at = 0.0  # monotonic seconds, for changes of that model

    def copy(self) -> None:
        """Copies, if other copies are wanted."""
        wanted = self._wanted.copy()
        rows = np.flatnonzero(wanted != self._copied)
        if not len(rows):
            return
        begin = time.monotonic()
        *_, returns, episodes, steps = self._rows.episodes()
        for row in rows.tolist():
            place = self._places[row]
            place["env"], place["flags"] = self._first_env + row, 0
            place["episode"], place["step"] = episodes[row], steps[row]
            place["episode_return"], place["reward"] = returns[row], self._rewards[row]
            self._pose(self._envs[row], place, draws=wanted[row] % 2 == 1)
        if (wanted[rows] % 2 == 1).any():
            self._head["seconds"] = time.monotonic() - begin
        self._copied[:] = wanted

    def _pose(self, env: gymnasium.Env[Any, Any], place: Any, draws: bool) -> None:
        poses = place["poses"]
        poses[:] = np.nan
        try:
            found = mujoco_of(env)
            if found is None:
                raise TypeError("expected an environment whose `unwrapped` has MuJoCo's model and data, found none")
            model, data = found
            if model.nbody - 1 > len(poses):
                raise ValueError(f"expected at most {len(poses)} bodies, as at the start, found {model.nbody - 1}")
            poses[: model.nbody - 1, :3] = data.xpos[1:]
            poses[: model.nbody - 1, 3:] = data.xquat[1:, [1, 2, 3, 0]]
            place["sim_time"] = data.time
            if draws:
                self._draw(model)
        except Exception as error:  # of any environment's properties
            place["sim_time"], place["flags"] = 0, _UNKNOWN_TIME
            if draws:
                text = one_line(error).encode(errors="replace")[:_TEXT_BYTES]
                self._head["error"], self._head["version"] = text, zlib.crc32(text)

    def _draw(self, model: Any) -> None:
        """Saves a model that the file does not have. Looks for changes ten times a second: height fields are large."""
        now = time.monotonic()
        if self._model is model and now < self._looks_at and self._saved[1] == int(self._head["saves"][0]):
            return
        self._looks_at = now + 0.1
        version = model.nbody
        for name in _DRAWN:
            version = zlib.crc32(np.ascontiguousarray(getattr(model, name)).data, version)
        head = self._head
        if self._model is not model or self._saved != (version, int(head["saves"][0])):
            mujoco = sys.modules["mujoco"]
            mujoco.mj_saveModel(model, self._model_file, None)
            head["saves"] += 1
            head["mujoco"] = mujoco.mj_versionString().encode()
            self._model, self._saved = model, (version, int(head["saves"][0]))
        head["version"], head["error"] = version, b""
