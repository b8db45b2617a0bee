"""`RestartingVectorEnv`: environments that outlive their engine."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine_process import EngineProcess
from tandem.errors import NEXT_OF_ENVIRONMENTS, AlreadyAttached, LayoutMismatch, NotReady, PeerGone, StepTimeout
from tandem.services.contract import SimulationContract
from tandem.vector import Mask, Obs, SharedMemoryVectorEnv, StepResults, as_floats

_log = logging.getLogger("tandem")

# An engine that dies again and again, without one answer in between, has a fault that no restart mends.
_MOST_DEATHS_IN_A_ROW = 3
_POLL_SECS = 0.01


class RestartingVectorEnv(SharedMemoryVectorEnv):
    """A `SharedMemoryVectorEnv` that starts a dead engine again; `make_vec` makes one by `EngineOptions(restart=True)`.

    The step that finds the engine dead shows every environment truncated, with reward 0 and the observation that was
    seen last, and has `infos["engine_restarted"]`. The next episodes begin as the autoreset mode says, from fresh
    random numbers. A reset that finds it dead resets every environment, whatever its mask.

    From finding a death to telling it, every call goes on where an interrupt or an error stopped the last one:

    | `_death` | `_untold` | means |
    |---|---|---|
    | None | False | the engine lives |
    | set | True | it was found dead; whoever is called next starts it again |
    | None | True | it was started again; the next results tell that, and nothing is sent until then |
    """

    def __init__(
        self,
        client: SharedMemoryClient,
        *,
        engine: EngineProcess,
        relaunch: Callable[[str], EngineProcess],
        start_timeout: float = 30.0,
        copy: bool = True,
        dtype: DTypeLike | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Takes over a client and its engine.

        Args:
          client: As for `SharedMemoryVectorEnv`.
          engine: The one that the client is attached to.
          relaunch: Starts an equal engine that serves the region of the given name.
          start_timeout: Seconds that a restarted engine may take to answer.
          copy: As for `make_vec`.
          dtype: As for `make_vec`.
          render_mode: As for `make_vec`.

        Raises:
          TandemError: As `SharedMemoryVectorEnv`.
        """
        super().__init__(client, copy=copy, dtype=dtype, render_mode=render_mode, engine=engine)
        self._relaunch = relaunch
        self._start_timeout = start_timeout
        self._described = client.description
        self._deaths_in_a_row = 0

    def _attach(self, client: SharedMemoryClient) -> None:
        super()._attach(client)
        self._seen: Obs = client.obs.astype(self._dtype)
        self._pid = os.getpid()
        self._death: PeerGone | None = None
        self._untold = False
        # Whose episode was cut short by a death and not yet followed by another.
        self._cut_short: Mask = np.zeros(self.num_envs, np.bool_)
        # Whom the last exchange resets, also while it is pending; None: it is a step.
        self._resetting: Mask | None = None

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
        if self.closed:
            raise self._closed_error("reset")
        mask, contract = self._reset_mask(options), (options or {}).get("contract")
        while True:
            self._revive()
            self._resetting = mask
            try:
                obs, infos = super().reset(seed=seed, options=None if self._untold else options)
                break
            except PeerGone as death:
                self._found_dead(death)
                self._note(contract, mask, self._seed_of_chosen(seed, mask))  # for the engine's next life
        self._answered(obs)
        if self._untold:
            _tell(infos, self.num_envs)
            self._untold = False
        return obs, infos

    def send(self, actions: ArrayLike) -> None:
        """As `SharedMemoryVectorEnv.send`.

        Args:
          actions: As there.

        Raises:
          TandemError: As there.
        """
        if not self._ready:
            raise self._not_ready_error("send")
        if self._untold:
            as_floats(self._task.action_space, self.action_space, actions)  # refuses what cannot be
            return
        flags = self._flags()
        flags[self._cut_short[: len(flags)]] = 1
        try:
            super().send(actions)
            self._resetting = None
        except PeerGone as death:
            self._found_dead(death)
        except BaseException:
            if not self._client.pending:
                flags[:] = 0
            raise

    def step(self, actions: ArrayLike) -> StepResults:
        """As `SharedMemoryVectorEnv.step`.

        Args:
          actions: As there.

        Returns:
          As `recv`.

        Raises:
          TandemError: As there.
        """
        if not self._ready:
            raise self._not_ready_error("step")
        self.send(actions)
        return self.recv()

    def recv(self) -> StepResults:
        """As `SharedMemoryVectorEnv.recv`.

        Returns:
          As there; if the engine was started again, every environment is truncated.

        Raises:
          TandemError: As there, or as `launch_engine` if the engine cannot be started again.
        """
        if self.closed:
            raise self._closed_error("recv")
        if not self._untold:
            try:
                results = super().recv()
                self._answered(results[0])
                return results
            except PeerGone as death:
                self._found_dead(death)
        self._revive()
        return self._all_truncated()

    def _flags(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The region's reset flags where the next step is to reset who was cut short; else nothing to write to."""
        client = self._client
        usable = not client.pending and not client.closed and os.getpid() == self._pid
        if usable and client.autoreset_mode is AutoresetMode.NEXT_STEP and self._cut_short.any():
            return client.resets
        return np.zeros(0, np.uint8)

    def _answered(self, obs: Obs) -> None:
        self._deaths_in_a_row = 0
        np.copyto(self._seen, obs)
        # A step resets them as well, by their flags.
        self._cut_short &= False if self._resetting is None else ~self._resetting

    def _found_dead(self, death: PeerGone) -> None:
        self._death = death
        self._untold = True
        self._deaths_in_a_row += 1

    def _revive(self) -> None:
        """Starts the engine again if it was found dead. Stopped at any point, it begins anew when called again."""
        assert self._engine is not None
        while self._death is not None:
            if self._deaths_in_a_row > _MOST_DEATHS_IN_A_ROW:
                raise PeerGone(
                    f"the engine died {self._deaths_in_a_row} times in a row without one answer in between; it is not "
                    f"started again. The last death: {self._death}"
                ) from self._death
            found = str(self._death).replace(f"; {NEXT_OF_ENVIRONMENTS}", "")
            _log.warning("starting the engine of region %r again: %s", self._client.name, found)
            self._engine.close()
            self._engine = self._relaunched()
            try:
                self._client.reconnect(self._start_timeout)
                self._renew_contracts()
            except (PeerGone, NotReady, StepTimeout) as error:
                if self._engine.poll() is None:
                    raise
                self._found_dead(PeerGone(f"the engine died before it took its client: {error}"))
                continue
            except LayoutMismatch:
                self._engine.close()
                raise
            if self._client.description != self._described:
                self._engine.close()
                raise LayoutMismatch(
                    f"region {self._client.name!r}: expected the restarted engine's task to be as before, found "
                    "another description; was the program or a model file replaced? Make the environments anew"
                )
            self._death = None

    def _relaunched(self) -> EngineProcess:
        """Starts an engine, once that of an interrupted launch, which leaves by itself, is gone."""
        deadline = time.monotonic() + self._start_timeout
        while True:
            try:
                return self._relaunch(self._client.name)
            except AlreadyAttached:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_SECS)

    def _renew_contracts(self) -> None:
        """Tells a new engine the contracts of `reset`, with their seeds, and draws its first episodes from them."""
        renewed: dict[tuple[SimulationContract, int | None], list[int]] = {}
        for env_id, its in enumerate(self._contracts):
            if its[0] != SimulationContract():
                renewed.setdefault(its, []).append(env_id)
        for (contract, seed), env_ids in renewed.items():
            self._client.agent.set_contract(contract, env_ids, seed=seed)
            self._client.reset(env_ids)

    def _all_truncated(self) -> StepResults:
        client, mode = self._client, self._client.autoreset_mode
        everybody = np.ones(self.num_envs, np.bool_)
        obs = self._seen.copy()
        infos: dict[str, Any] = {}
        if mode is AutoresetMode.SAME_STEP:
            self._stepper.expect_reset(everybody)
            obs, infos = self._stepper.reset_results()
            last = np.empty(self.num_envs, dtype=object)
            last[:] = list(self._seen.copy())
            infos |= {
                "final_obs": last,
                "_final_obs": everybody.copy(),
                "final_info": {},
                "_final_info": everybody.copy(),
            }
        else:
            self._cut_short[:] = True
        if mode is AutoresetMode.DISABLED:  # a step before their reset is refused by these
            client.truncateds[:] = client.dones[:] = 1
        _tell(infos, self.num_envs)
        self._untold = False
        return obs, np.zeros(self.num_envs), ~everybody, everybody, infos


def _tell(infos: dict[str, Any], num_envs: int) -> None:
    infos["engine_restarted"] = np.ones(num_envs, np.bool_)
    infos["_engine_restarted"] = np.ones(num_envs, np.bool_)
