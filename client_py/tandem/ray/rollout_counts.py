"""`RolloutCounts`: counts each requested rollout exactly once: delivered, stale, lost, or outstanding."""

from typing import NamedTuple


class Ticket(NamedTuple):
    """Names a requested rollout, by its number among the requests to this incarnation of the worker, from 0."""

    worker: int
    incarnation: int
    number: int


class RolloutCounts:
    """requested == delivered + stale + lost + len(outstanding), at all times.

    `stale` came with weights that were too old, `lost` will not come, `outstanding` may still come.
    """

    def __init__(self) -> None:
        """Starts without requests."""
        self.requested = self.delivered = self.stale = self.lost = 0
        self.outstanding: set[Ticket] = set()
        self._next: dict[tuple[int, int], int] = {}

    def request(self, worker: int, incarnation: int) -> Ticket:
        """Counts a request."""
        number = self._next.get((worker, incarnation), 0)
        self._next[worker, incarnation] = number + 1
        ticket = Ticket(worker, incarnation, number)
        self.outstanding.add(ticket)
        self.requested += 1
        return ticket

    def settle(self, ticket: Ticket, *, stale: bool) -> None:
        """Counts a rollout that came. KeyError: it is not outstanding: it came twice, or was lost."""
        self.outstanding.remove(ticket)
        self.stale += stale
        self.delivered += not stale

    def lose(self, worker: int, incarnation: int) -> int:
        """Counts all outstanding rollouts of an incarnation, which has ended, as lost; returns their number."""
        lost = {ticket for ticket in self.outstanding if ticket[:2] == (worker, incarnation)}
        self.outstanding -= lost
        self.lost += len(lost)
        self._next.pop((worker, incarnation), None)
        return len(lost)
