"""`ActorPool`: the actors of the workers: places them on nodes, starts them, notices their ends, starts them again."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tandem.errors import InvalidArgument, NotReady, TandemError, Unsupported
from tandem.ray.losses import Loss, NodeLost, WorkerLost
from tandem.ray.nodes import Node, live_nodes
from tandem.ray.placement import Placement
from tandem.ray.worker import RolloutOptions, RolloutWorker, Started

_TEND_SECS = 1.0
_MOST_FAILURES = 3  # in a row, of one worker

_VARIABLES = {
    # Otherwise Ray kills the engine with its actor, before the engine removes its region. Engines end by themselves.
    "RAY_kill_child_processes_on_worker_exit": "0",
    # Otherwise worker and engine have niceness 15, and lose their cores to any other process.
    "RAY_worker_niceness": "0",
    # Results of up to so many bytes come in the reply to the request, into the store that Ray has in the caller's
    # process. Through the raylets' stores, a rollout of 0.5 MB needs some 15 ms of CPU time more.
    "RAY_max_direct_call_object_size": str(1 << 20),
}

_Actor = ray.remote(concurrency_groups={"refresh": 1})(RolloutWorker)


@dataclass(eq=False)
class Worker:
    """A worker: from `ActorPool.start` on it has a node and an actor, until it is lost.

    `index` is its place in the pool, `incarnation` how often it was started before. `refresh` is Ray's method for
    `RolloutWorker.refresh`, which runs beside a rollout and returns nothing; `starting` Ray's reference to the result
    of its start, and `deadline` that start's, of `time.monotonic()`. `failures` counts the losses since its last
    rollout, those of nodes not counted.
    """

    index: int
    incarnation: int = -1
    node: Node | None = None
    actor: Any = None
    refresh: Any = None
    starting: Any = None
    started: Started | None = None
    deadline: float = 0.0
    failures: int = 0

    def end(self) -> None:
        """Ends the actor, if there is one; the worker then waits for a node."""
        if self.actor is not None and ray.is_initialized():
            ray.kill(self.actor)
        self.node = self.actor = self.refresh = self.starting = self.started = None


class ActorPool:
    """The workers, by index, whose number grows with the cluster if the caller set none, and their losses in order."""

    def __init__(
        self,
        options: Callable[[int], RolloutOptions],
        placement: Placement,
        count: int | None,
        forget: Callable[[Worker], int],
    ) -> None:
        """Starts nothing yet; `tend` does.

        `options` returns the options for a number of cores. `count` None: one worker for each node that can have one.
        `forget` counts the rollouts that a lost worker owes, and returns their number.
        """
        self._options, self._placement, self._count, self._forget = options, placement, count, forget
        self.workers = [Worker(index) for index in range(count or 0)]
        self.losses: list[Loss] = []
        self._next_tend = 0.0

    @property
    def running(self) -> list[Worker]:
        """The workers that have started."""
        return [worker for worker in self.workers if worker.started is not None]

    @property
    def starting(self) -> dict[Any, Worker]:
        """The workers that start now, by Ray's reference."""
        return {worker.starting: worker for worker in self.workers if worker.starting is not None}

    @property
    def wanted(self) -> int:
        """The least number of workers that the caller asked for."""
        return self._count or 1

    def tend(self) -> None:
        """Loses workers whose nodes are gone, starts those without one; once a second. Errors as `lose`."""
        now = time.monotonic()
        if now < self._next_tend:
            return
        nodes = live_nodes()
        for worker in self.workers:
            if worker.node is not None and worker.node.id not in nodes:
                self.lose(worker, NodeLost(f"{_named(worker)}: Ray has removed its node"))
            elif worker.starting is not None and now > worker.deadline:
                self.lose(worker, self._late(worker))
        usable = self._usable(nodes)
        for worker in self.workers:
            if worker.node is None and (node := next(usable, None)) is not None:
                self._start(worker, node)
        if self._count is None:
            for node in usable:
                self.workers.append(Worker(len(self.workers)))
                self._start(self.workers[-1], node)
        self._next_tend = time.monotonic() + _TEND_SECS

    def _usable(self, nodes: dict[str, Node]) -> Iterator[Node]:
        """Yields the nodes that can get a worker now, again and again where nodes are shared."""
        least = self._placement.least()
        fitting = [node for node in nodes.values() if node.has(least)]
        if not self._placement.share_nodes:
            taken = {worker.node.id for worker in self.workers if worker.node is not None}
            yield from (node for node in fitting if node.id not in taken and node.answers())
            return
        free = {node.id: {name: node.resources[name] - self._used(node, name) for name in least} for node in fitting}
        for node in fitting:
            while all(free[node.id][name] >= amount for name, amount in least.items()) and node.answers():
                yield node
                for name, amount in least.items():
                    free[node.id][name] -= amount

    def _used(self, node: Node, name: str) -> float:
        taken = self._placement.taken(node.resources).get(name, 0.0)
        return taken * sum(worker.node is not None and worker.node.id == node.id for worker in self.workers)

    def _start(self, worker: Worker, node: Node) -> None:
        taken = dict(self._placement.taken(node.resources))
        cores = int(taken.pop("CPU"))
        worker.node, worker.incarnation = node, worker.incarnation + 1
        worker.actor = _Actor.options(
            num_cpus=cores,
            num_gpus=taken.pop("GPU", 0.0),
            resources=taken,
            max_restarts=0,
            runtime_env={"env_vars": _VARIABLES},
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
        ).remote(self._options(cores), worker.index, worker.incarnation)
        worker.refresh = worker.actor.refresh.options(concurrency_group="refresh", num_returns=0)
        worker.starting = worker.actor.start.remote()
        worker.deadline = time.monotonic() + self._placement.start_timeout

    def finish_start(self, worker: Worker) -> None:
        """Takes the result of a start that has ended. Errors as `lose`."""
        reference, worker.starting = worker.starting, None
        try:
            worker.started = ray.get(reference)
        except Exception as error:  # of Ray, of make_vec or of the caller's policy
            self.lose(worker, error)

    def lose(self, worker: Worker, error: Exception) -> None:
        """Ends a worker after an error, and notes the loss; `tend` starts it again.

        Raises what cannot be repaired: an invalid argument, or the same worker's third failure in a row.
        """
        reason = _reason(worker, error)
        node, in_start = worker.node, worker.started is None
        assert node is not None
        worker.end()
        loss = Loss(reason, worker.index, worker.incarnation, node.host, self._forget(worker), time.monotonic())
        self.losses.append(loss)
        self._next_tend = 0.0  # it is started again without delay
        if isinstance(reason, NodeLost):
            return
        worker.failures += 1
        if worker.failures >= _MOST_FAILURES or (in_start and isinstance(reason, InvalidArgument | Unsupported)):
            raise reason from error

    def _late(self, worker: Worker) -> NotReady:
        return NotReady(
            f"{_named(worker)}: expected its start within {self._placement.start_timeout:g} s, found none; other "
            f"actors may hold the resources that it takes, {dict(self._placement.least())}: `ray status` shows them; "
            "or raise Placement.start_timeout"
        )

    def close(self) -> None:
        """Ends all workers; a second call has no effect."""
        for worker in self.workers:
            worker.end()


def _named(worker: Worker) -> str:
    host = "no node" if worker.node is None else worker.node.host
    return f"rollout worker {worker.index}, incarnation {worker.incarnation}, on {host}"


def _reason(worker: Worker, error: Exception) -> TandemError:
    """Returns an error of Ray as one of Tandem, which names the worker."""
    if isinstance(error, TandemError) and not isinstance(error, RayTaskError):
        return error
    cause = error.cause if isinstance(error, RayTaskError) else None
    if isinstance(cause, TandemError):
        return cause
    # The kernel of a node whose raylet is stopped still accepts connections; Ray may have removed such a node.
    if cause is None and worker.node is not None and not (worker.node.answers() and worker.node.id in live_nodes()):
        return NodeLost(f"{_named(worker)}: its node does not answer")
    what = type(error).__name__ if cause is None else repr(cause)
    return WorkerLost(f"{_named(worker)}: expected a rollout, found {what}:\n{error}")
