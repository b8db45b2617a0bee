"""`RestartingVectorEnv`: environments whose engine is started again after its death."""

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from tandem._native import NEXT_OF_ENVIRONMENTS
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.engine.process import EngineProcess
from tandem.environments.client_vector import EnvIds, GymnasiumVectorEnv, Obs, StepResults
from tandem.environments.description import has_rows
from tandem.environments.image_step import ImageStep
from tandem.environments.row_infos import copied, final_infos
from tandem.environments.vector import SharedMemoryVectorEnv
from tandem.environments.vector_arguments import Mask, Seed, as_floats, reset_mask, seed_of_chosen
from tandem.errors import AlreadyAttached, InvalidArgument, LayoutMismatch, NotReady, PeerGone, StepTimeout, Unsupported
from tandem.services.contract import SimulationContract
from tandem.spaces.trees import assign

_log = logging.getLogger("tandem")

# A restart does not help an engine that dies this often without one answer in between.
_MOST_DEATHS_IN_A_ROW = 3
_POLL_SECS = 0.01


class RestartingVectorEnv(SharedMemoryVectorEnv, GymnasiumVectorEnv):
    """A `SharedMemoryVectorEnv` that starts a dead engine again; `make_vec` makes one by `EngineOptions(restart=True)`.

    The step that finds the engine dead truncates every environment, with reward 0 and the last observation that was
    returned, and sets `infos["engine_restarted"]`. The next episodes begin by the autoreset mode, from new random
    streams. A reset that finds the engine dead resets every environment, whatever its mask.

    Until the results report a death, every call continues where an interrupt or an error stopped the last one:

    | `_death` | `_unreported` | means |
    |---|---|---|
    | None | False | the engine lives |
    | set | True | the engine was found dead; the next call starts it again |
    | None | True | the engine was started again; the next results report it, and nothing is sent until then |
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
        image_keys: Sequence[str] = ("image",),
    ) -> None:
        """Takes over a client and its engine; other arguments and errors are those of `SharedMemoryVectorEnv`.

        `relaunch` starts an equal engine that serves the region of the given name. `start_timeout` is the number of
        seconds that a restarted engine may take to answer.
        """
        if not has_rows(client):
            raise InvalidArgument(
                "EngineOptions.restart: expected False for an engine whose observations or actions are fields, found "
                "True; PeerGone says that the engine died: call make_vec again"
            )
        super().__init__(client, copy=copy, dtype=dtype, render_mode=render_mode, image_keys=image_keys, engine=engine)
        self._relaunch = relaunch
        self._start_timeout = start_timeout
        self._described = client.description
        self._deaths_in_a_row = 0
        self._loading: tuple[Sequence[bytes], list[int]] | None = None  # states for the reset that follows

    def _attach(self, client: SharedMemoryClient) -> None:
        super()._attach(client)
        state = client.obs.astype(self._dtype)
        obs: Obs = self._stepper.observations(state) if isinstance(self._stepper, ImageStep) else state
        self._seen: Obs = copied(obs)
        self._pid = os.getpid()
        self._death: PeerGone | None = None
        self._unreported = False
        # True where a death cut an episode short and no other has begun.
        self._cut_short: Mask = np.zeros(self.num_envs, np.bool_)
        # The environments that the last exchange resets, also while it is pending; None: it is a step.
        self._resetting: Mask | None = None

    def reset(
        self, *, seed: Seed = None, options: Mapping[str, Any] | None = None, env_ids: EnvIds = None
    ) -> tuple[Obs, dict[str, Any]]:
        """As `SharedMemoryVectorEnv.reset`; infos have "engine_restarted" if the engine was started again.

        Also raises the errors of `launch_engine` if the engine cannot be started again.
        """
        if self.closed:
            raise self._closed_error("reset")
        _refuse_ids(env_ids)
        mask = reset_mask(options, self.num_envs, self._reset_options)
        contracts = self._contracts_of(options, mask)
        while True:
            self._restart_engine()
            try:
                if self._loading is not None:
                    super()._stage_states(*self._loading)
                self._resetting = mask
                obs, infos = super().reset(seed=seed, options=None if self._unreported else options)
                break
            except PeerGone as death:
                self._note_death(death)
                self._note_reset(contracts, mask, seed_of_chosen(seed, mask))  # for the restarted engine
        self._loading = None
        self._answered(obs)
        if self._unreported:
            _add_restarted(infos, self.num_envs)
            self._unreported = False
        return obs, infos

    def _drop_pending(self) -> None:
        try:
            super()._drop_pending()
        except PeerGone as death:
            self._note_death(death)

    def _stage_states(self, states: Sequence[bytes], ids: list[int]) -> None:
        self._loading = states, ids  # again in an engine that `reset` has to start

    def _discard_states(self, ids: list[int]) -> None:
        self._loading = None
        super()._discard_states(ids)

    def send(self, actions: ArrayLike, env_ids: EnvIds = None) -> None:
        """As `SharedMemoryVectorEnv.send`, for all environments."""
        _refuse_ids(env_ids)
        if not self._ready:
            raise self._not_ready_error("send")
        if self._unreported:
            as_floats(self._row_actions, self.num_envs, actions)  # refuses invalid actions
            return
        flags = self._flags()
        flags[self._cut_short[: len(flags)]] = 1
        try:
            super().send(actions)
            self._resetting = None
        except PeerGone as death:
            self._note_death(death)
        except BaseException:
            if not self._client.pending:
                flags[:] = 0
            raise

    def step(self, actions: ArrayLike, env_ids: EnvIds = None) -> StepResults:
        """As `SharedMemoryVectorEnv.step`, for all environments, with the results of `recv`."""
        if not self._ready:
            raise self._not_ready_error("step")
        self.send(actions, env_ids)
        return self.recv()

    def recv(self, timeout: float | None = None) -> StepResults:
        """As `SharedMemoryVectorEnv.recv`; after a restart of the engine every environment is truncated.

        Also raises the errors of `launch_engine` if the engine cannot be started again.
        """
        if self.closed:
            raise self._closed_error("recv")
        if not self._unreported:
            try:
                results = super().recv(timeout)
                self._answered(results[0])
                return results
            except PeerGone as death:
                self._note_death(death)
        self._restart_engine()
        return self._all_truncated()

    def _flags(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Returns the region's reset flags if the next step is to set some for `_cut_short`; else an empty array."""
        client = self._client
        usable = not client.pending and not client.closed and os.getpid() == self._pid
        if usable and client.autoreset_mode is AutoresetMode.NEXT_STEP and self._cut_short.any():
            return client.resets
        return np.zeros(0, np.uint8)

    def _answered(self, obs: Obs) -> None:
        self._deaths_in_a_row = 0
        assign(self._seen, slice(None), obs)
        # A step resets all of them, by their flags.
        self._cut_short &= False if self._resetting is None else ~self._resetting

    def _note_death(self, death: PeerGone) -> None:
        self._death = death
        self._unreported = True
        self._deaths_in_a_row += 1

    def _restart_engine(self) -> None:
        """Starts the engine again if it was found dead. After an interrupt the next call starts it again."""
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
                self._note_death(PeerGone(f"the engine died before it took its client: {error}"))
                continue
            except LayoutMismatch:
                self._engine.close()
                raise
            if self._client.description != self._described:
                self._engine.close()
                raise LayoutMismatch(
                    f"region {self._client.name!r}: expected the restarted engine's task to be as before, found "
                    "another description; was the program or a model file replaced? Make new environments"
                )
            self._death = None

    def _relaunched(self) -> EngineProcess:
        """Starts an engine; waits for the end of an engine whose launch was interrupted."""
        deadline = time.monotonic() + self._start_timeout
        while True:
            try:
                return self._relaunch(self._client.name)
            except AlreadyAttached:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_SECS)

    def _renew_contracts(self) -> None:
        """Sends the contracts of `reset`, with their seeds, to a new engine, and resets their environments."""
        renewed = [(env_id, *its) for env_id, its in enumerate(self._contracts) if its[0] != SimulationContract()]
        if renewed:
            self._client._set_contracts(renewed)
            self._client.reset([env_id for env_id, *_ in renewed])

    def _all_truncated(self) -> StepResults:
        client, mode = self._client, self._client.autoreset_mode
        all_envs = np.ones(self.num_envs, np.bool_)
        obs = copied(self._seen)
        infos: dict[str, Any] = {}
        if mode is AutoresetMode.SAME_STEP:
            self._stepper.expect_reset(all_envs)
            obs, infos = self._stepper.reset_results()
            infos |= final_infos(self._seen, {}, all_envs, self.observation_space)
        else:
            self._cut_short[:] = True
        if mode is AutoresetMode.DISABLED:  # by these flags a step before their reset is refused
            client.truncateds[:] = client.dones[:] = 1
        _add_restarted(infos, self.num_envs)
        self._unreported = False
        return obs, np.zeros(self.num_envs), ~all_envs, all_envs, infos


def _refuse_ids(env_ids: EnvIds) -> None:
    if env_ids is not None:
        raise Unsupported(
            "env_ids: expected None with EngineOptions(restart=True), as a death truncates all environments together, "
            "found some; use options={'reset_mask': mask} for resets"
        )


def _add_restarted(infos: dict[str, Any], num_envs: int) -> None:
    infos["engine_restarted"] = np.ones(num_envs, np.bool_)
    infos["_engine_restarted"] = np.ones(num_envs, np.bool_)
