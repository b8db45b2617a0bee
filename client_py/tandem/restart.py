"""`RestartingVectorEnv`: environments that outlive their engine."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine_process import EngineProcess
from tandem.errors import LayoutMismatch, PeerGone
from tandem.infos import add_final, collect
from tandem.vector import Obs, SharedMemoryVectorEnv, StepResults

_log = logging.getLogger("tandem")

# An engine that dies again and again, without one answer in between, has a fault that no restart mends.
_MOST_DEATHS_IN_A_ROW = 3


class RestartingVectorEnv(SharedMemoryVectorEnv):
    """A `SharedMemoryVectorEnv` that starts its engine again when it finds it dead; `make_vec(restart=True)` makes one.

    The step that finds the engine dead shows every environment truncated, with reward 0 and the observation that was
    seen last, and has `infos["engine_restarted"]`. The next episodes begin as the autoreset mode says, from fresh
    random numbers. A reset that finds it dead resets every environment, whatever its mask.
    """

    def __init__(
        self,
        client: SharedMemoryClient,
        *,
        engine: EngineProcess,
        relaunch: Callable[[str], EngineProcess],
        copy: bool = True,
        dtype: DTypeLike | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Takes over a client and its engine.

        Args:
          client: As for `SharedMemoryVectorEnv`.
          engine: The one that the client is attached to.
          relaunch: Starts an equal engine that serves the region of the given name.
          copy: As for `make_vec`.
          dtype: As for `make_vec`.
          render_mode: As for `make_vec`.

        Raises:
          TandemError: As `SharedMemoryVectorEnv`.
        """
        super().__init__(client, copy=copy, dtype=dtype, render_mode=render_mode, engine=engine)
        self._relaunch = relaunch
        self._seen: Obs = client.obs.astype(self._dtype)
        # Found by `send`, to be told by `recv`.
        self._death: PeerGone | None = None
        self._deaths_in_a_row = 0
        # Whose episode was cut short by a death and not yet followed by another.
        self._cut_short = np.zeros(self.num_envs, np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Obs, dict[str, Any]]:
        """As `SharedMemoryVectorEnv.reset`.

        Args:
          seed: As there.
          options: As there.

        Returns:
          As there; infos have "engine_restarted" if the engine was.

        Raises:
          TandemError: As there, or as `launch_engine` if the engine cannot be started again.
        """
        try:
            obs, infos = super().reset(seed=seed, options=options)
        except PeerGone as death:
            self._revive(death)
            obs, infos = super().reset(seed=seed)
            self._tell(infos)
        self._answered(obs)
        self._cut_short &= ~self._resetting
        return obs, infos

    def send(self, actions: ArrayLike) -> None:
        """As `SharedMemoryVectorEnv.send`.

        Args:
          actions: As there.

        Raises:
          TandemError: As there.
        """
        if self._cut_short.any() and not self._client.pending:
            self._client.resets[self._cut_short] = 1
        try:
            super().send(actions)
        except PeerGone as death:
            self._death = death

    def recv(self) -> StepResults:
        """As `SharedMemoryVectorEnv.recv`.

        Returns:
          As there; if the engine was started again, every environment is truncated.

        Raises:
          TandemError: As there, or as `launch_engine` if the engine cannot be started again.
        """
        try:
            if self._death is not None:
                raise self._death
            results = super().recv()
        except PeerGone as death:
            self._revive(death)
            return self._all_truncated()
        self._answered(results[0])
        self._cut_short[:] = False
        return results

    def _ended(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return super()._ended() | self._cut_short

    def _answered(self, obs: Obs) -> None:
        self._deaths_in_a_row = 0
        np.copyto(self._seen, obs)

    def _revive(self, death: PeerGone) -> None:
        assert self._engine is not None
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row > _MOST_DEATHS_IN_A_ROW:
            raise PeerGone(
                f"the engine died {self._deaths_in_a_row} times in a row without one answer in between; it is not "
                f"started again. The last death: {death}"
            ) from death
        _log.warning("starting the engine of region %r again: %s", self._client.name, death)
        described = self._client.description
        self._engine.close()
        self._engine = self._relaunch(self._client.name)
        self._client.reconnect()
        if self._client.description != described:
            raise LayoutMismatch(
                f"region {self._client.name!r}: expected the restarted engine's task to be as before, found another "
                "description; was the program or a model file replaced? Make the environments anew"
            )
        self._death = None

    def _all_truncated(self) -> StepResults:
        everybody = np.ones(self.num_envs, np.bool_)
        infos: dict[str, Any] = {}
        if self._client.autoreset_mode is AutoresetMode.SAME_STEP:
            obs = self._observe()
            infos = collect(self._task.infos, self._client.infos, ~everybody, everybody)
            add_final(infos, everybody, self._seen, (), self._client.final_infos)
        else:
            obs = self._seen.copy()
            self._cut_short[:] = True
        self._tell(infos)
        return obs, np.zeros(self.num_envs), ~everybody, everybody, infos

    def _tell(self, infos: dict[str, Any]) -> None:
        infos["engine_restarted"] = np.ones(self.num_envs, np.bool_)
        infos["_engine_restarted"] = np.ones(self.num_envs, np.bool_)
