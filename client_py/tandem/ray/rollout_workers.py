"""`rollout_workers`: engines on the nodes of a Ray cluster, which return whole rollouts."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import ray

from tandem.arguments import flag, integer, seconds, shown
from tandem.errors import ClientClosed, InvalidArgument, NotReady, StepTimeout
from tandem.handles import ClosesOnExit, NotPicklable
from tandem.ray.actor_pool import ActorPool, Worker
from tandem.ray.losses import Loss, NodeLost
from tandem.ray.placement import Placement
from tandem.ray.rollout import Policy, Rollout
from tandem.ray.rollout_counts import RolloutCounts, Ticket
from tandem.ray.weights import packed
from tandem.ray.worker import RolloutOptions

_LOOK_SECS = 0.25  # the longest wait for a rollout before the nodes are looked at
_GET_SECS = 30.0  # for a rollout that Ray calls ready
_OWN_OPTIONS = ("task", "num_envs", "autoreset_mode")


class RolloutStats(NamedTuple):
    """Counts since the start: requested == delivered + stale + lost + outstanding + untaken.

    Attributes:
      delivered: Rollouts that `collect` returned.
      stale: Those that came with a lag of more than `max_lag`, and were dropped.
      lost: Those that will not come, since their workers were lost.
      outstanding: Those that are being made, or wait for that.
      untaken: Those that came and that the next `collect` returns.
      greatest_lag: Of a rollout that came, dropped ones included.
      workers: The number of workers that run now.
      version: Of the weights that were published last.
      delivered_bytes: The bytes of the arrays of delivered rollouts.
    """

    requested: int
    delivered: int
    stale: int
    lost: int
    outstanding: int
    untaken: int
    greatest_lag: int
    workers: int
    version: int
    delivered_bytes: int


def rollout_workers(
    env: Any,
    *,
    nodes: int | None = None,
    num_envs: int,
    horizon: int,
    policy: Callable[[Any, Any], Policy],
    seed: int | None = None,
    max_lag: int = 2,
    synchronous: bool = False,
    env_options: Mapping[str, Any] | None = None,
    reset_options: Mapping[str, Any] | None = None,
    placement: Placement | None = None,
) -> "RolloutWorkers":
    """Starts a worker on each node of the Ray cluster, and returns these workers; `close` ends them.

    A worker is a Ray actor with an engine of its own, or with environments in Python, which it steps through shared
    memory. The policy runs in the actor, too. Only rollouts and weights cross machines. `ray.init` comes before.

    Args:
      env: As `task` of `tandem.make_vec`: a task, an id of Gymnasium's registry, or functions that make environments.
      nodes: The number of workers, each on a node of its own; None: one on each node, also on nodes that join later.
      num_envs: Environments of each worker.
      horizon: Steps of each environment in a rollout.
      policy: A function, such as a class, that makes a `Policy` from observation space and action space of one
        environment.
      seed: Environment i of worker k starts from seed + k * num_envs + i; None: random.
      max_lag: A rollout is dropped if more versions of the weights were published since its own. At most as many
        rollouts of each worker are outstanding, but at least one.
      synchronous: Whether `collect` requests a rollout of each worker and waits for all. With a seed, the rollouts then
        do not depend on the nodes.
      env_options: Further arguments of `tandem.make_vec`, such as {"threads": 2}; TaskOptions.copy has no effect.
      reset_options: Options of the reset with which a worker starts, also after a failure, such as {"contract":
        tandem.services.SimulationContract(...)} for a task in C++, whose later episodes keep the contract.
      placement: Resources and time-outs; None: all cores of each node.

    Raises:
      InvalidArgument: An invalid argument.
      NotReady: Ray was not initialised, or too few nodes have the resources.
      TandemError: A worker did not start; as `tandem.make_vec` in that worker.
    """
    where = Placement() if placement is None else placement
    if not isinstance(where, Placement):
        raise InvalidArgument(f"placement: expected a tandem.ray.Placement, found {shown(placement)}")
    if not callable(policy):
        raise InvalidArgument(f"policy: expected a function of two spaces, found {shown(policy)}")
    given = dict(env_options or {})
    if own := next((name for name in _OWN_OPTIONS if name in given), None):
        raise InvalidArgument(f"env_options: expected no {own!r}, which rollout_workers sets, found it")
    if not ray.is_initialized():
        raise NotReady("rollout_workers: expected a connection to a Ray cluster, found none; call ray.init() first")
    if not isinstance(reset_options, Mapping | None):
        raise InvalidArgument(f"reset_options: expected None or a dict, found {shown(reset_options)}")
    flag("synchronous", synchronous, after="")
    num_envs = integer("num_envs", num_envs, 1, 2**24)
    horizon = integer("horizon", horizon, 1)
    seed = None if seed is None else integer("seed", seed, 0, 2**62)

    def options(cores: int) -> RolloutOptions:
        return RolloutOptions(
            env=env,
            env_options=given,
            num_envs=num_envs,
            horizon=horizon,
            make_policy=policy,
            seed=seed,
            reset_options=None if reset_options is None else dict(reset_options),
            cores=cores,
        )

    workers = RolloutWorkers(
        options,
        where,
        None if nodes is None else integer("nodes", nodes, 1),
        max_lag=integer("max_lag", max_lag, 0),
        synchronous=synchronous,
    )
    try:
        workers._await_start()
    except BaseException:
        workers.close()
        raise
    return workers


class RolloutWorkers(ClosesOnExit, NotPicklable):
    """Workers on the nodes of a Ray cluster; `rollout_workers` makes them.

    A worker that ends, or whose node ends, costs the rollouts that were requested of it. `losses` then names it, and it
    is started again: on its node, or on a node that joins. The others go on. Not for several threads.
    """

    _instead = "they belong to the process that started them; send it the rollouts"

    def __init__(
        self,
        options: Callable[[int], RolloutOptions],
        placement: Placement,
        count: int | None,
        *,
        max_lag: int,
        synchronous: bool,
    ) -> None:
        """Starts nothing yet; call `rollout_workers` instead."""
        self._placement, self._max_lag, self._synchronous = placement, max_lag, synchronous
        self._depth = 1 if synchronous else max(1, max_lag)
        self._counts = RolloutCounts()
        self._outstanding: dict[Any, tuple[Worker, Ticket]] = {}
        self._owed: Counter[int] = Counter()  # outstanding rollouts, by the worker's index
        self._untaken: deque[Rollout] = deque()
        self._version, self._weights = 0, None
        self._greatest_lag = self._delivered_bytes = 0
        self._alone_since: float | None = None
        self._pool = ActorPool(options, placement, count, self._forget)
        self._closed = False

    @property
    def single_observation_space(self) -> Any:
        """The observation space of one environment."""
        return self._spaces[0]

    @property
    def single_action_space(self) -> Any:
        """The action space of one environment."""
        return self._spaces[1]

    @property
    def losses(self) -> list[Loss]:
        """The workers that were lost, in order."""
        return self._pool.losses

    def stats(self) -> RolloutStats:
        """Returns counts since the start."""
        counts = self._counts
        return RolloutStats(
            requested=counts.requested,
            delivered=counts.delivered - len(self._untaken),
            stale=counts.stale,
            lost=counts.lost,
            outstanding=len(counts.outstanding),
            untaken=len(self._untaken),
            greatest_lag=self._greatest_lag,
            workers=len(self._pool.running),
            version=self._version,
            delivered_bytes=self._delivered_bytes,
        )

    def publish(self, weights: Any) -> int:
        """Sends weights to all workers: up to 64 KiB in each request, more through Ray's object store. Returns at once.

        A rollout keeps the weights with which it began.

        Args:
          weights: What `Policy.load` takes, such as a dict of NumPy arrays: anything that Ray can serialise.

        Returns:
          Their version, from 1.

        Raises:
          ClientClosed: `close` was called.
        """
        self._expect_open("publish")
        self._weights = packed(weights)
        self._version += 1
        if not self._synchronous:
            for worker in self._pool.running:
                if self._owed[worker.index] > 1:  # the later ones have not begun
                    worker.refresh.remote(self._version, self._weights)
            self._request_more(self._pool.running)
        return self._version

    def collect(self, count: int | None = None, *, timeout: float | None = None) -> list[Rollout]:
        """Waits for rollouts and returns them, each once, in the order in which they came, of whichever workers.

        `count` None: as many as workers run. With `synchronous`, which takes no count: one of each worker, by its
        index; of a worker that is lost meanwhile, none. `timeout` is in seconds; None: no limit.

        Raises:
          StepTimeout: Too few came in time. The next call returns those that did.
          NodeLost: There was no worker for `Placement.rejoin_timeout`.
          TandemError: A worker failed three times in a row.
          ClientClosed: `close` was called.
        """
        self._expect_open("collect")
        limit = time.monotonic() + (float("inf") if timeout is None else seconds("timeout", timeout))
        if self._synchronous:
            if count is not None:
                raise InvalidArgument(f"count: expected None with synchronous=True, found {shown(count)}")
            return self._collect_round(limit)
        wanted = max(1, len(self._pool.running)) if count is None else integer("count", count, 1)
        self._request_more(self._pool.running)
        while len(self._untaken) < wanted:
            self._advance(limit)
            # A request that this call does not need waits for `publish`, to go with its weights. But no worker waits
            # without a request.
            short = len(self._untaken) + len(self._outstanding) < wanted
            self._request_more([worker for worker in self._pool.running if short or not self._owed[worker.index]])
        return self._taken(wanted)

    def _collect_round(self, limit: float) -> list[Rollout]:
        while not self._untaken or self._outstanding:
            if not self._outstanding:
                for worker in self._pool.running:
                    self._request(worker)
            self._advance(limit)
        return sorted(self._taken(len(self._untaken)), key=lambda rollout: rollout.worker)

    def _taken(self, count: int) -> list[Rollout]:
        rollouts = [self._untaken.popleft() for _ in range(count)]
        self._delivered_bytes += sum(rollout.nbytes for rollout in rollouts)
        return rollouts

    def _await_start(self) -> None:
        """Waits for the first start of all workers for which there are nodes."""
        pool = self._pool
        limit = time.monotonic() + self._placement.start_timeout
        while len(pool.running) < pool.wanted or pool.starting:
            if time.monotonic() > limit:
                raise NotReady(
                    f"nodes: expected {pool.wanted} with {dict(self._placement.least())} each, found "
                    f"{len(pool.running)} within {self._placement.start_timeout:g} s; start more, or ask for fewer"
                )
            self._look(limit)
        started = pool.running[0].started
        assert started is not None
        self._spaces = started.spaces

    def _advance(self, limit: float) -> None:
        """Waits for a rollout, or for the start of a worker, until `limit`, of `time.monotonic()`: StepTimeout.

        NodeLost: There was no worker for too long.
        """
        if time.monotonic() > limit:
            raise StepTimeout("collect: expected rollouts in time, found too few; call it again, or raise timeout")
        self._look(limit)
        self._expect_some_worker()

    def _expect_some_worker(self) -> None:
        if self._pool.running or self._pool.starting:
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = now if self._alone_since is None else self._alone_since
        if now - self._alone_since > self._placement.rejoin_timeout:
            latest = self._pool.losses[-1].error if self._pool.losses else None
            raise NodeLost(
                f"collect: expected a node for a worker within {self._placement.rejoin_timeout:g} s, found none; start "
                "nodes, or raise Placement.rejoin_timeout"
            ) from latest

    def _look(self, limit: float) -> None:
        """Tends the workers, and takes what has come; waits for it at most `_LOOK_SECS`."""
        self._pool.tend()
        starting = self._pool.starting
        references = [*self._outstanding, *starting]
        patience = min(_LOOK_SECS, max(limit - time.monotonic(), 0.0))
        if not references:
            time.sleep(patience)
            return
        for reference in ray.wait(references, num_returns=1, timeout=patience)[0]:
            if reference in starting:
                self._pool.finish_start(starting[reference])
            else:
                self._take(reference)

    def _request_more(self, workers: Iterable[Worker]) -> None:
        for worker in workers:
            for _ in range(self._depth - self._owed[worker.index]):
                self._request(worker)

    def _request(self, worker: Worker) -> None:
        ticket = self._counts.request(worker.index, worker.incarnation)
        reference = worker.actor.roll.remote(ticket.number, self._version, self._weights)
        self._outstanding[reference] = worker, ticket
        self._owed[worker.index] += 1

    def _take(self, reference: Any) -> None:
        """Takes a rollout that has come, or the error in its place."""
        worker, ticket = self._outstanding[reference]
        try:
            rollout: Rollout = ray.get(reference, timeout=_GET_SECS)
        except Exception as error:  # of Ray, of the environments or of the caller's policy
            self._pool.lose(worker, error)
            return
        del self._outstanding[reference]
        self._owed[worker.index] -= 1
        assert (rollout.worker, rollout.incarnation, rollout.number) == ticket
        lag = self._version - rollout.version
        self._greatest_lag = max(self._greatest_lag, lag)
        self._counts.settle(ticket, stale=lag > self._max_lag)
        worker.failures = 0
        if lag <= self._max_lag:
            object.__setattr__(rollout, "lag", lag)  # frozen for its users
            self._untaken.append(rollout)

    def _forget(self, worker: Worker) -> int:
        self._outstanding = {reference: owed for reference, owed in self._outstanding.items() if owed[0] is not worker}
        self._owed.pop(worker.index, None)
        return self._counts.lose(worker.index, worker.incarnation)

    def _expect_open(self, call: str) -> None:
        if self._closed:
            raise ClientClosed(f"{call}: expected open workers, found that close() was called; make new ones")

    def close(self) -> None:
        """Ends the workers, with their engines and regions; a second call has no effect.

        Rollouts that `collect` returned stay valid.
        """
        if not self._closed:
            self._closed = True
            self._outstanding.clear()
            self._untaken.clear()
            self._pool.close()
