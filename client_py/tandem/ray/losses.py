"""`Loss`: the end of a worker that was not asked to end, and the errors that say why."""

from typing import NamedTuple

from tandem.errors import PeerGone, TandemError


class NodeLost(PeerGone):
    """A node of the Ray cluster does not answer, or Ray has removed it; its worker's rollouts are lost."""


class WorkerLost(PeerGone):
    """The actor of a worker has ended, or an exception ended its rollout; its other rollouts are lost."""


class Loss(NamedTuple):
    """A worker that was lost. It is started again, with the next incarnation.

    Attributes:
      error: NodeLost; WorkerLost; or what the worker raised, such as PeerGone of its engine.
      node: Name, address and id of its node.
      rollouts: The number of requested rollouts that will not come.
      time: When it was noticed: seconds of `time.monotonic()`.
    """

    error: TandemError
    worker: int
    incarnation: int
    node: str
    rollouts: int
    time: float
