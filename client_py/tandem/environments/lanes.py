"""Steps of some workers while others are in a step, too: `Halves` and `Batches`, over `Lanes`.

A lane is a step of all environments of one worker (docs/protocol.md, "Lanes").
"""

import bisect
from collections.abc import Sequence
from typing import Any

import numpy as np

from tandem.arguments import integer
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.environments.client_vector import StepResults
from tandem.environments.row_infos import Infos, chosen_infos, merged_infos
from tandem.errors import EnvFailed, InvalidArgument, NoStepPending, StepPending
from tandem.spaces.batches import Actions, Observations
from tandem.workers.infos import VectorInfos

RAISED = 1  # of a row's status; EnvStatus of schema/layout/field.h


class Lanes:
    """The lanes of a client's workers. The native client knows which are open, and which are ready.

    A lane that only resets environments belongs to `reset`: it is neither in `open` nor in `ready`, but in `resetting`
    until it is taken. `rows` has the first environment and the number of environments of each worker; `timeout` the
    seconds that a step may take.
    """

    def __init__(
        self, client: SharedMemoryClient, observations: Observations, actions: Actions, infos: VectorInfos
    ) -> None:
        """Takes the arrays of all environments."""
        self._client, self._native = client, client._native
        self._observations, self._actions, self._infos = observations, actions, infos
        self._reward, self._status = client.fields["reward", ""], client.fields["status", ""]
        # The workers of ready lanes whose EnvFailed was raised: infos, and the environments that failed.
        self._failed: dict[int, tuple[Infos | Exception, list[int]]] = {}
        self.resetting: set[int] = set()
        self.rows = self._native.worker_rows
        self.timeout = client._timeout

    @property
    def open(self) -> list[int]:
        """Workers whose step was sent, and whose results have not come."""
        return [worker for worker in self._native.open_lanes if worker not in self.resetting]

    @property
    def ready(self) -> list[int]:
        """Workers whose results have come and were not taken, the first one first."""
        ready = self._native.ready_lanes
        if not self.resetting:
            return ready
        unread = self.resetting.difference(self._failed).union(self._native.open_lanes)
        return [worker for worker in ready if worker not in unread]

    @property
    def busy(self) -> set[int]:
        """Workers whose results were not taken."""
        return {*self.open, *self.ready}

    def expect_taken(self, call: str, busy: set[int]) -> None:
        """Raises StepPending for these workers, if there are any; PeerGone: the session is known to be over."""
        if busy:
            self._native.post_lanes([])  # raises PeerGone
            found = "reset that was interrupted; reset() again" if busy & self.resetting else "step; call recv() first"
            raise StepPending(
                f"{call}: expected workers whose results were received, found workers {sorted(busy)} in a {found}"
            )

    def workers_of(self, env_ids: Sequence[int]) -> list[int]:
        """Returns the workers of some environments, ascending."""
        firsts = [first for first, _ in self.rows]
        return sorted({bisect.bisect(firsts, env_id) - 1 for env_id in env_ids})

    def env_ids(self, workers: Sequence[int]) -> list[int]:
        """Returns the environments of some workers."""
        return [env_id for worker in workers for env_id in range(self.rows[worker][0], sum(self.rows[worker]))]

    def send(self, workers: Sequence[int], env_ids: Sequence[int], actions: Any) -> None:
        """Starts steps of some workers; `env_ids` are their environments in the order of the actions.

        Raises:
          StepPending: One of them is in a step, or its results were not taken.
          InvalidArgument: With autoreset disabled: an episode has ended and was not reset.
          TandemError: As `WorkerVectorEnv.step`, without the errors of waiting.
        """
        self.expect_taken("send", {*workers} & {*self._native.open_lanes, *self.ready})
        client = self._client
        if client.pending or client.closed:
            self._native.post_lanes(workers)  # raises the reason
        if client.autoreset_mode is AutoresetMode.DISABLED:
            ids = np.asarray(env_ids)
            if (ended := ids[(client.dones[ids] != 0) & (client.resets[ids] == 0)]).size:
                raise InvalidArgument(
                    "expected no ended episode at a step with autoreset disabled, found environments "
                    f"{ended.tolist()}; nothing was sent; reset(env_ids=...) starts their next"
                )
        self._actions.write_rows(env_ids, actions)
        self._take(workers)  # a reset that was interrupted, and failures of a session before
        self._native.post_lanes(workers)

    def reset(self, env_ids: Sequence[int], seeds: Sequence[int | None]) -> Infos:
        """Resets environments, ascending, without a change of others' steps; returns the infos of their workers.

        `seeds` has one for each; []: none.

        Raises:
          StepPending: Results of these environments were not taken, and EnvFailed was not raised for them.
          EnvFailed: One raised an exception; the others were reset.
          TandemError: As `WorkerVectorEnv.reset`.
        """
        workers = self.workers_of(env_ids)
        for worker in self._failed.keys() - {*self._native.ready_lanes}:  # of a session before
            del self._failed[worker]
        failed = {env_id for _, its in self._failed.values() for env_id in its}
        untaken = self.workers_of([env_id for env_id in env_ids if env_id not in failed])
        self.expect_taken("reset", {*self.busy, *self._failed}.intersection(untaken))
        others = [worker for worker in workers if worker not in self._failed]
        self._await(workers)  # an interrupted reset
        self.resetting.update(workers)
        self._native.post_lane_resets(workers, env_ids, seeds)
        self._await(workers)
        self._take(others)
        self.resetting.difference_update(workers)
        self._native.check_lanes(workers)
        return self._infos.read(workers)

    def _await(self, workers: Sequence[int]) -> None:
        while {*workers} & {*self._native.open_lanes}:
            self._native.await_lanes(1)

    def _take(self, workers: Sequence[int]) -> None:
        for worker in workers if self._failed else ():
            self._failed.pop(worker, None)
        self._native.take_lanes(workers)
        if self.resetting:
            self.resetting.difference_update(workers)

    def await_more(self, count: int, timeout: float | None = None) -> None:
        """Waits until at least `count` of the open lanes are ready. Errors are those of a step, without EnvFailed."""
        self._native.await_lanes(count, timeout)

    def drop(self) -> None:
        """Waits for all lanes, and drops their results."""
        workers = range(len(self.rows))
        self._await(workers)
        self._take(workers)

    def results(self, workers: Sequence[int]) -> StepResults:
        """Takes the results of workers that are ready.

        Raises:
          Exception: As `VectorInfos.read`; the results are dropped.
          EnvFailed: An environment of theirs raised an exception. Nothing was taken. The next call returns the results:
            rows of such environments are truncated, with reward 0 and "env_failed" in their infos, and have the
            observation of a reset meanwhile, or any.
        """
        known = self._failed.keys() & workers if self._failed else set()
        others = [worker for worker in workers if worker not in known] if known else workers
        self._expect_no_failure(others)
        ids = self.env_ids(workers)
        index = np.asarray(ids)
        client = self._client
        infos: Infos = {}
        for each in (self._read(sorted(others)), *(self._failed[worker][0] for worker in known)):
            if isinstance(each, Exception):
                self._take(workers)
                raise each
            infos = merged_infos(infos, each) if infos else each
        truncations = client.truncateds[index].astype(bool)
        if known:
            failed = np.isin(index, [env_id for worker in known for env_id in self._failed[worker][1]])
            truncations |= failed
        infos = chosen_infos(infos, ids)
        if known:
            infos |= {"env_failed": failed, "_env_failed": failed.copy()}
        results = (
            self._observations.rows(ids),
            self._reward[index],
            client.terminateds[index].astype(bool),
            truncations,
            infos,
        )
        self._take(workers)
        return results

    def _expect_no_failure(self, workers: Sequence[int]) -> None:
        try:
            self._native.check_lanes(workers)
        except EnvFailed as error:
            for worker in workers:
                if its := [env_id for env_id in self.env_ids([worker]) if self._status[env_id] == RAISED]:
                    self._failed[worker] = self._read([worker]), its
            error.add_note("reset(env_ids=...) resets it; recv() then has the results of the others")
            raise

    def _read(self, workers: Sequence[int]) -> Infos | Exception:
        try:
            return self._infos.read(workers)
        except Exception as error:  # Gymnasium cannot batch them
            return error


class Halves:
    """Two halves of the workers, which step in turn: the trainer computes for one while the other steps."""

    def __init__(self, lanes: Lanes) -> None:
        """Takes the lanes; InvalidArgument: there is one worker only."""
        count = len(lanes.rows)
        if count < 2:
            raise InvalidArgument("half: expected two or more workers, found 1; raise num_workers")
        self._lanes = lanes
        self._workers = [list(range(count // 2)), list(range(count // 2, count))]

    def env_ids(self, half: int) -> list[int]:
        """Returns the environments of a half."""
        return self._lanes.env_ids(self._workers[integer("half", half, 0, 1)])

    def send(self, half: int, actions: Any) -> None:
        """Starts a step of a half."""
        ids = self.env_ids(half)
        self._lanes.send(self._workers[half], ids, actions)

    def recv(self, half: int, timeout: float | None = None) -> StepResults:
        """Returns the results of a half, as `WorkerVectorEnv.step`; EnvFailed as `Lanes.results`."""
        workers = self._workers[integer("half", half, 0, 1)]
        lanes = self._lanes
        while missing := {*workers} - {*lanes.ready}:
            if not missing <= {*lanes.open}:
                lanes.expect_taken("recv", missing & lanes.resetting)
                raise NoStepPending(
                    f"recv: expected a step of half {half}, found none; call send(actions, half={half})"
                )
            lanes.await_more(1, timeout)
        return lanes.results(workers)


class Batches:
    """Batches of those workers that are ready first."""

    def __init__(self, lanes: Lanes, batch_size: int) -> None:
        """Takes the lanes; InvalidArgument: batches of this size cannot be made of whole workers."""
        sizes = {count for _, count in lanes.rows}
        (size,) = sizes if len(sizes) == 1 else (0,)
        total = sum(count for _, count in lanes.rows)
        if size == 0 or not 0 < batch_size <= total or batch_size % size:
            raise InvalidArgument(
                f"batch_size: expected a multiple of the number of environments of each worker, which must be equal, "
                f"at most {total}; found {batch_size} with workers of {sorted(sizes)} environments; set num_workers"
            )
        self._lanes, self._workers_of_a_batch, self._size = lanes, batch_size // size, size

    def send(self, env_ids: list[int], actions: Any) -> None:
        """Starts steps of all environments of some workers."""
        workers = sorted({env_id // self._size for env_id in env_ids})
        if len(env_ids) != len(workers) * self._size:
            raise InvalidArgument(
                f"env_ids: expected all {self._size} environments of each worker, found only some; nothing was sent; "
                "send actions for infos['env_id'] of what recv() returned"
            )
        self._lanes.send(workers, env_ids, actions)

    def recv(self, timeout: float | None = None) -> StepResults:
        """Returns the results of the next batch; EnvFailed as `Lanes.results`."""
        lanes, count = self._lanes, self._workers_of_a_batch
        if (found := len(lanes.ready) + len(lanes.open)) < count:
            lanes.expect_taken("recv", lanes.resetting)
            raise NoStepPending(
                f"recv: expected {count} workers in a step, found {found}; call send(actions, env_ids) first"
            )
        while (missing := count - len(lanes.ready)) > 0:
            lanes.await_more(missing, timeout)
        workers = sorted(lanes.ready[:count])
        results = lanes.results(workers)
        results[4]["env_id"] = np.asarray(lanes.env_ids(workers))
        return results
