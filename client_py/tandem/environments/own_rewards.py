"""`OwnRewardsVectorEnv`: environments of an engine, with rewards, ends and observations by functions of the trainer."""

import os
import struct
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tandem._native import VectorStep
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.environments.client_vector import GymnasiumVectorEnv, StepResults
from tandem.environments.description import InfoField, has_rows
from tandem.environments.own_run import OwnRun
from tandem.environments.row_infos import final_infos, merged_infos, split_infos
from tandem.environments.sealed_state import ENGINE, fingerprint, sealed, unsealed
from tandem.environments.transition import Mask, OwnFunctions, Transition
from tandem.environments.vector import SharedMemoryVectorEnv
from tandem.errors import Unsupported

# Values of each body, geom or site in the arrays of mjData with this name. state_arrays.cc has the same numbers.
_VALUES_OF_EACH = {
    "xpos": 3,
    "xquat": 4,
    "xipos": 3,
    "subtree_com": 3,
    "cinert": 10,
    "cvel": 6,
    "cfrc_ext": 6,
    "geom_xpos": 3,
    "site_xpos": 3,
}

# Of a saved state: steps of the episode, whether it has ended, its return and last reward. An own observation follows.
_PART = struct.Struct("<q?dd")


class OwnRewardsVectorEnv(SharedMemoryVectorEnv, GymnasiumVectorEnv):
    """A `SharedMemoryVectorEnv` with functions of the trainer; `make_vec(options=TaskOptions(reward=...))` makes one.

    Its client has the autoreset mode DISABLED, as the engine does not know when an episode ends.

    `step`, `recv` and `reset` also raise what the functions raise, and InvalidArgument if one returns another shape or
    dtype than `OwnFunctions` lists. The step or reset has been made, and its results are lost.
    """

    def __init__(
        self, client: SharedMemoryClient, *, functions: OwnFunctions, mode: AutoresetMode, **options: Any
    ) -> None:
        """Takes over a client with autoreset mode DISABLED; `options` and errors are those of `SharedMemoryVectorEnv`.

        `functions` are the trainer's; `observation` is called at once, to learn its shape and dtype, and its exceptions
        come from here. `mode` is the environments' autoreset mode.

        Raises:
          Unsupported: The engine's observations or actions are fields.
          InvalidArgument: `observation` returned an array that has not a row for each environment.
        """
        if not has_rows(client):
            raise Unsupported(
                "reward, terminated, observation: expected an engine of float32 rows, found one whose observations or "
                "actions are fields; compute them in the engine's step, or in a wrapper of the vector environment"
            )
        self._functions, self._mode = functions, mode
        super().__init__(client, **options)
        if (first := self._own_step.first_observations) is not None:
            low, high = (-np.inf, np.inf) if first.dtype.kind == "f" else _limits(first.dtype)
            its = spaces.Box(low, high, first.shape[1:], first.dtype.type)
            self.single_observation_space = self._with_images(its)
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def _make_stepper(self, client: SharedMemoryClient) -> Any:
        step = super()._make_stepper(client)
        self._own_step = OwnStep(client, step, self._functions, self._mode, self._task.infos)
        return self._own_step

    def _saved_states(self, ids: list[int]) -> list[bytes]:
        states, mark = super()._saved_states(ids), self._mark()
        return [sealed(ENGINE, mark, self._own_step.part_of(i) + state) for i, state in zip(ids, states, strict=True)]

    def _stage_states(self, states: Sequence[bytes], ids: list[int]) -> None:
        mark, whose = self._mark(), "own rewards and observations"
        payloads = [unsealed(f"states[{at}]", state, ENGINE, mark, whose) for at, state in enumerate(states)]
        size = self._own_step.part_bytes
        super()._stage_states([payload[size:] for payload in payloads], ids)
        self._own_step.parts = dict(zip(ids, payloads, strict=True))

    def _mark(self) -> int:
        shown = self._own_step.first_observations
        return fingerprint("own rewards", "" if shown is None else f"{shown.dtype}{shown.shape[1:]}")

    def _discard_states(self, ids: list[int]) -> None:
        self._own_step.parts = {}
        super()._discard_states(ids)

    def _autoreset_of(self, client: SharedMemoryClient) -> AutoresetMode:
        return self._mode

    def _change_autoreset(self, mode: AutoresetMode) -> None:
        self._mode = mode
        self._attach(self._client.replaced(AutoresetMode.DISABLED))


class OwnStep:
    """The steps of environments with functions of the trainer; it has the interface of `_native.VectorStep`.

    The engine resets an environment only when it is asked to. With SAME_STEP a step in which episodes end has two
    exchanges: the step, and the resets. With NEXT_STEP the next step sets the reset flags. `first_observations` is what
    `observation` returned for the environments as they were; None: no such function.
    """

    def __init__(
        self,
        client: SharedMemoryClient,
        step: VectorStep,
        functions: OwnFunctions,
        mode: AutoresetMode,
        infos: tuple[InfoField, ...],
    ) -> None:
        """Takes the client, and its native steps without autoreset."""
        self._client, self._step, self._functions, self._mode = client, step, functions, mode
        self._pid = os.getpid()
        num_envs = client.num_envs
        self._ended = np.zeros(num_envs, np.bool_)  # and not reset yet
        # Of the exchange that was sent last: what it resets and steps.
        self._resetting = np.ones(num_envs, np.bool_)
        self._stepping = np.zeros(num_envs, np.bool_)
        self._is_unread = False  # _read_flags has not been called for it
        # Exchanges of the client before a reset: if they are no more, the reset was not sent.
        self._exchanges = -1
        # Of a step whose ended environments are being reset: its results, and those environments.
        self._ending: tuple[StepResults, Mask] | None = None
        # Without own rewards and ends, the engine's statistics hold.
        self._run = OwnRun(num_envs) if functions.reward or functions.terminated else None
        self._steps = np.zeros(num_envs, np.int64)
        self._stepped = np.zeros(num_envs, np.bool_)
        self._actions = np.zeros_like(client.actions)
        self._previous_obs, self._previous_infos = client.obs.copy(), client.infos.copy()
        self._transition = Transition(
            obs=_read_only(client.obs),
            previous_obs=_read_only(self._previous_obs),
            actions=_read_only(self._actions),
            state=_by_name(client.infos, infos),
            previous_state=_by_name(self._previous_infos, infos),
            rewards=_read_only(client.rewards),
            terminations=_read_only(client.terminateds.view(np.bool_)),
            truncations=_read_only(client.truncateds.view(np.bool_)),
            steps=_read_only(self._steps),
            stepped=_read_only(self._stepped),
        )
        self.first_observations = None
        if functions.observation is not None:
            self.first_observations = functions.observations_of(self._transition)
        self._shown = self.first_observations  # the last own observations
        self.parts: dict[int, bytes] = {}  # of saved states, for the next reset of each environment
        self.part_bytes = _PART.size + (0 if self._shown is None else self._shown[0].nbytes)

    def part_of(self, env_id: int) -> bytes:
        """Returns an environment's part of a saved state, `part_bytes` long."""
        values = (0.0, 0.0) if self._run is None else self._run.values[:, env_id]
        part = _PART.pack(self._steps[env_id], self._ended[env_id], *values)
        return part if self._shown is None else part + self._shown[env_id].tobytes()

    def step(self, actions: Any) -> StepResults:
        """Does `send`, then `recv`."""
        self.send(actions)
        return self.recv()

    def send(self, actions: Any) -> None:
        """Starts a step of all environments."""
        self._post(np.ones(len(self._steps), np.bool_), lambda: self._step.send(actions))

    def send_chosen(self, env_ids: list[int]) -> None:
        """Starts a step of some environments, with the region's own actions."""
        self._post(np.isin(np.arange(len(self._steps)), env_ids), lambda: self._step.send_chosen(env_ids))

    def _post(self, chosen: Mask, send: Any) -> None:
        client = self._client
        if client.pending or client.closed or os.getpid() != self._pid:
            send()  # raises the reason
            return
        if self._is_unread:  # an interrupt came before the results
            self._catch_up()
        flagged = np.zeros(0, np.int64)
        if self._mode is not AutoresetMode.DISABLED:
            flagged = np.flatnonzero(self._ended & chosen)
            client.resets[flagged] = 1
        resetting = (client.resets != 0) & chosen
        np.copyto(self._previous_obs, client.obs)
        np.copyto(self._previous_infos, client.infos)
        try:
            send()
        except BaseException:
            if not client.pending:
                client.resets[flagged] = 0
                raise
            self._sent(resetting, chosen & ~resetting)
            raise
        self._sent(resetting, chosen & ~resetting)

    def _sent(self, resetting: Mask, stepping: Mask) -> None:
        self._resetting, self._stepping, self._is_unread, self._ending = resetting, stepping, True, None
        self._exchanges = -1

    def recv(self, timeout: float | None = None) -> StepResults:
        """Waits for the results of what was sent, and calls the functions.

        `timeout` is for both exchanges together; None: the client's own time-out for each.
        """
        begin = time.monotonic()
        if self._ending is None:
            results = self._step.recv(timeout)
            self._read_flags()
            if not self._stepping.any():  # also a reset that had been interrupted
                return self._own_observations(results[0]), *results[1:]
            results = self._judged(*results)
            ended = self._ended & self._stepping
            if self._mode is not AutoresetMode.SAME_STEP or not ended.any():
                return results
            self._ending = (results[0].copy(), *results[1:]), ended
            if self._client.images is not None and self._client.final_images is not None:
                self._client.final_images[ended] = self._client.images[ended]  # as the engine does with SAME_STEP
            self._step.expect_reset(ended)
            self._exchanges = self._client.stats().exchanges
            self._resetting, self._stepping, self._is_unread = ended, np.zeros_like(ended), True
            self._client._native.send_reset(np.flatnonzero(ended).tolist(), [])
            if timeout is not None:
                timeout = max(timeout - (time.monotonic() - begin), 0.0)
        obs, _, _, _, reset_infos = self._step.recv(timeout)
        self._read_flags()
        results, ended = self._ending
        self._ending = None
        return self._with_final(results, ended, self._own_observations(obs), reset_infos)

    def expect_reset(self, mask: Mask) -> None:
        """Notes the environments that the next exchange resets."""
        self._catch_up()
        self._sent(mask.copy(), np.zeros_like(mask))
        self._exchanges = self._client.stats().exchanges
        self._step.expect_reset(mask)

    def reset_results(self) -> tuple[Any, dict[str, Any]]:
        """Returns the observations and infos of a reset."""
        obs, infos = self._step.reset_results()
        self._read_flags()
        obs = self._own_observations(obs)
        if self.parts and self._shown is not None:
            for env_id, part in self.parts.items():
                obs[env_id] = np.frombuffer(part, obs.dtype, obs[0].size, _PART.size).reshape(obs[0].shape)
            self._shown = obs.copy()
        self.parts = {}
        return obs, infos

    def _catch_up(self) -> None:
        """Reads the flags of an exchange whose results were not received."""
        if self._is_unread and self._client.stats().exchanges > self._exchanges:
            self._read_flags()

    def _read_flags(self) -> None:
        """Brings the trainer's arrays up to date with the exchange that has ended.

        An interrupt may come at any time; the next call then does all of it again.
        """
        client, resetting, stepping = self._client, self._resetting, self._stepping
        steps = np.where(resetting, 0, self._steps + stepping)
        np.copyto(self._stepped, stepping)
        np.copyto(self._actions, client.actions)
        self._actions[~stepping] = 0
        self._previous_obs[resetting] = client.obs[resetting]
        self._previous_infos[resetting] = client.infos[resetting]
        if self._run is not None:
            self._run.reset(resetting)
        # Without the trainer's own terminations, until its function has returned. By `client.dones` the native step
        # refuses steps of ended episodes.
        ends = client.truncateds if self._functions.terminated is not None else client.dones
        self._ended[stepping] = ends[stepping] != 0
        self._ended[resetting] = False
        for env_id, part in self.parts.items():
            steps[env_id], self._ended[env_id], *values = _PART.unpack_from(part)
            if self._run is not None:
                self._run.values[:, env_id] = values
        client.dones[:] = self._ended
        self._steps[:] = steps
        self._is_unread = False

    def _judged(
        self, obs: Any, rewards: NDArray[np.float64], terminations: Mask, truncations: Mask, infos: dict[str, Any]
    ) -> StepResults:
        """Returns results with what the functions say."""
        transition, functions = self._transition, self._functions
        terminations = functions.terminations_of(transition, terminations)
        truncations &= self._stepped
        ended = terminations | truncations
        rewards = functions.rewards_of(transition, rewards)
        obs = self._own_observations(obs)
        self._ended[self._stepping] = ended[self._stepping]
        self._client.dones[:] = self._ended
        if self._run is not None:
            infos |= self._run.add(self._stepped, rewards, ended, self._steps)
            self._run.show(self._client._native)
        return obs, rewards, terminations, truncations, infos

    def _own_observations(self, obs: Any) -> Any:
        if self._functions.observation is None:
            return obs
        own = self._functions.observations_of(self._transition, self.first_observations)
        self._shown = own.copy()  # `own` is the caller's
        return own

    def _with_final(
        self, results: StepResults, ended: Mask, reset_obs: NDArray[Any], reset_infos: dict[str, Any]
    ) -> StepResults:
        """Returns the results of a step after which some environments were reset."""
        obs, rewards, terminations, truncations, step_infos = results
        infos, final_info = split_infos(step_infos, ended)
        infos = merged_infos(infos, reset_infos) | final_infos(obs, final_info, ended)
        if self._functions.observation is not None:
            obs[ended] = reset_obs[ended]
            reset_obs, self._shown = obs, obs.copy()
        return reset_obs, rewards, terminations, truncations, infos


def _by_name(rows: NDArray[np.float64], infos: tuple[InfoField, ...]) -> Mapping[str, NDArray[np.float64]]:
    """Returns views of the columns of infos."""
    rows = _read_only(rows)
    views: dict[str, NDArray[np.float64]] = {}
    for field in infos:
        if field.length is None:
            views[field.name] = rows[:, field.first]
            continue
        columns = rows[:, field.first : field.first + field.length]
        each = _VALUES_OF_EACH.get(field.name)
        views[field.name] = columns if each is None else columns.reshape(len(rows), -1, each)
    return MappingProxyType(views)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Returns the least and the greatest value of an integer or bool dtype; as numbers: a Box refuses a bool."""
    return (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
