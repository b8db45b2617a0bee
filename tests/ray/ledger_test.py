"""`Ledger`: every request is counted once."""

import random

import pytest

from tandem.ray.ledger import Ledger, Ticket


def test_counts_add_up_after_random_events() -> None:
    """Requests, deliveries, stale ones and losses in random order."""
    chance, ledger, incarnations = random.Random(0), Ledger(), [0, 0, 0]
    losses = 0
    for _ in range(2000):
        worker = chance.randrange(3)
        event = chance.random()
        if event < 0.5:
            ledger.request(worker, incarnations[worker])
        elif event < 0.95 and ledger.outstanding:
            ledger.settle(chance.choice(sorted(ledger.outstanding)), stale=chance.random() < 0.2)
        elif event >= 0.95:
            losses += ledger.lose(worker, incarnations[worker])
            incarnations[worker] += 1
        assert ledger.requested == ledger.delivered + ledger.stale + ledger.lost + len(ledger.outstanding)
    assert ledger.lost == losses > 0 < ledger.stale


def test_a_rollout_that_comes_twice_is_refused() -> None:
    """So is one of an incarnation that was lost."""
    ledger = Ledger()
    first, second = ledger.request(0, 0), ledger.request(0, 0)
    assert second == Ticket(0, 0, 1)
    ledger.settle(first, stale=False)
    with pytest.raises(KeyError):
        ledger.settle(first, stale=False)
    assert ledger.lose(0, 0) == 1
    with pytest.raises(KeyError):
        ledger.settle(second, stale=False)
    assert (ledger.delivered, ledger.lost) == (1, 1)
