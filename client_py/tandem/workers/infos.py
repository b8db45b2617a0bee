"""`VectorInfos`: the infos of a vector environment, from the info areas of its workers.

    infos = VectorInfos(num_envs, [InfoArea(0, 8, area_of_worker_0), InfoArea(8, 8, area_of_worker_1)], final.row)
    infos.read()  # after each exchange: what SyncVectorEnv returns

Each worker's EnvRows writes its area (schema/layout/info_area.h). The trainer unpickles what the workers have written,
and so trusts them: make areas only for workers that the trainer has started.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from tandem import _native


class InfoArea(NamedTuple):
    """The area of one worker, uint8[bytes], mapped as long as the reader lives, and its environments."""

    first_env: int
    rows: int
    area: NDArray[np.uint8]


class VectorInfos:
    """Merges infos as `gymnasium.vector.SyncVectorEnv` does: values, dtypes, masks and the order of keys."""

    def __init__(self, num_envs: int, areas: Sequence[InfoArea], final_obs: Callable[[int], Any]) -> None:
        """Takes the areas, one for each worker, in the order of their environments.

        `final_obs` returns the last observation of an environment whose episode ended with SAME_STEP, such as
        `Observations.row`. InvalidArgument: An area is too small, or its environments are not below `num_envs`.
        """
        self._reader: _native.InfoReader | None = _native.InfoReader(num_envs, areas, final_obs)
        self._final_obs = final_obs
        self._gymnasium: VectorEnv[Any, Any, Any] = VectorEnv()
        self._gymnasium.num_envs = num_envs

    def read(self, workers: Sequence[int] | None = None) -> dict[str, Any]:
        """Returns the infos of the exchange that has ended, of some workers, ascending, or of all.

        A worker that took no part in the exchange still has its earlier infos.

        Raises:
          BrokenPeer: The bytes of an area are invalid.
          Exception: What Gymnasium's own merging raises, such as ValueError for arrays of several shapes. It has a note
            with the environment. The exchange is over; the next one is legal.
        """
        assert self._reader is not None, "closed"
        infos: dict[str, Any] | None = self._reader.merged(workers)
        return self._merged_by_gymnasium(self._reader, workers) if infos is None else infos

    def rows(self) -> dict[int, dict[str, Any]]:
        """Returns each environment's info of its worker's last exchange; of an ended episode, as `read`."""
        assert self._reader is not None, "closed"
        return {env_id: info or {} for env_id, _, info in self._reader.rows(None)}

    def close(self) -> None:
        """Releases the areas; `read` must not be called any more. A second call has no effect."""
        self._reader = None

    def _merged_by_gymnasium(self, reader: _native.InfoReader, workers: Sequence[int] | None) -> dict[str, Any]:
        """Returns the infos in cases that the native reader leaves out, such as one key with values of two types."""
        infos: dict[str, Any] = {}
        for env_id, final_info, info in reader.rows(workers):
            try:
                if final_info is not None:
                    final = {"final_obs": self._final_obs(env_id), "final_info": final_info}
                    infos = self._gymnasium._add_info(infos, final, env_id)
                if info is not None:
                    infos = self._gymnasium._add_info(infos, info, env_id)
            except Exception as error:
                error.add_note(f"in the info of environment {env_id}; Gymnasium cannot batch it with the others'")
                raise
        return infos
