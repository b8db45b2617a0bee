"""Steps of some workers while others are in a step, too: `Halves` and `Batches`, over `Lanes`.

A lane is a step of all environments of one worker (docs/protocol.md, "Lanes").
"""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tandem.arguments import integer
from tandem.client import AutoresetMode, SharedMemoryClient
from tandem.environments.client_vector import StepResults
from tandem.environments.row_infos import chosen_infos
from tandem.errors import EnvFailed, InvalidArgument, NoStepPending, StepPending
from tandem.spaces.batches import Actions, Observations
from tandem.workers.infos import VectorInfos


class Lanes:
    """The lanes of a client's workers. Which are open and which are ready is known to the native client alone.

    Attributes:
      rows: First environment and number of environments of each worker.
      timeout: Seconds that a step may take.
    """

    def __init__(
        self, client: SharedMemoryClient, observations: Observations, actions: Actions, infos: VectorInfos
    ) -> None:
        """Takes the arrays of all environments."""
        self._client, self._native = client, client._native
        self._observations, self._actions, self._infos = observations, actions, infos
        self._reward = client.fields["reward", ""]
        self.rows = self._native.worker_rows
        self.timeout = client._timeout

    @property
    def open(self) -> list[int]:
        """Workers whose step was sent, and whose results have not come."""
        return self._native.open_lanes

    @property
    def ready(self) -> list[int]:
        """Workers whose results have come and were not taken, the first one first."""
        return self._native.ready_lanes

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
        if busy := sorted({*workers} & {*self.open, *self.ready}):
            raise StepPending(
                f"expected workers whose results were received, found workers {busy} in a step; nothing was sent; call "
                "recv() first"
            )
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
        self._native.post_lanes(workers)

    def await_more(self, count: int, timeout: float | None = None) -> None:
        """Waits until at least `count` of the open lanes are ready.

        Raises:
          EnvFailed: An environment raised an exception; the lanes are ready nevertheless.
          TandemError: As `WorkerVectorEnv.step`.
        """
        self._native.await_lanes(count, timeout)

    def drop(self) -> None:
        """Waits for all open lanes, and drops their results."""
        while waiting := len(self.open):
            with contextlib.suppress(EnvFailed):
                self.await_more(waiting)
        self._native.take_lanes(self.ready)

    def results(self, workers: Sequence[int]) -> StepResults:
        """Takes the results of workers that are ready."""
        ids = self.env_ids(workers)
        index = np.asarray(ids)
        infos = chosen_infos(self._infos.read(sorted(workers)), ids)
        client = self._client
        results = (
            self._observations.rows(ids),
            self._reward[index],
            client.terminateds[index].astype(bool),
            client.truncateds[index].astype(bool),
            infos,
        )
        self._native.take_lanes(workers)
        return results


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
        """Returns the results of a half, as `WorkerVectorEnv.step`."""
        workers = self._workers[integer("half", half, 0, 1)]
        lanes = self._lanes
        while missing := {*workers} - {*lanes.ready}:
            if not missing <= {*lanes.open}:
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
        """Returns the results of the next batch."""
        lanes, count = self._lanes, self._workers_of_a_batch
        if (found := len(lanes.ready) + len(lanes.open)) < count:
            raise NoStepPending(
                f"recv: expected {count} workers in a step, found {found}; call send(actions, env_ids) first"
            )
        if (missing := count - len(lanes.ready)) > 0:
            lanes.await_more(missing, timeout)
        workers = sorted(lanes.ready[:count])
        results = lanes.results(workers)
        results[4]["env_id"] = np.asarray(lanes.env_ids(workers))
        return results
