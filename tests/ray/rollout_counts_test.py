"""`RolloutCounts`: every request is counted once."""

import random

import pytest

from tandem.ray.rollout_counts import RolloutCounts, Ticket


def test_counts_add_up_after_random_events() -> None:
    """Requests, deliveries, stale ones and losses in random order."""
    chance, counts, incarnations = random.Random(0), RolloutCounts(), [0, 0, 0]
    losses = 0
    for _ in range(2000):
        worker = chance.randrange(3)
        event = chance.random()
        if event < 0.5:
            counts.request(worker, incarnations[worker])
        elif event < 0.95 and counts.outstanding:
            counts.settle(chance.choice(sorted(counts.outstanding)), stale=chance.random() < 0.2)
        elif event >= 0.95:
            losses += counts.lose(worker, incarnations[worker])
            incarnations[worker] += 1
        assert counts.requested == counts.delivered + counts.stale + counts.lost + len(counts.outstanding)
    assert counts.lost == losses > 0 < counts.stale


def test_a_rollout_that_comes_twice_is_refused() -> None:
    """So is one of an incarnation that was lost."""
    counts = RolloutCounts()
    first, second = counts.request(0, 0), counts.request(0, 0)
    assert second == Ticket(0, 0, 1)
    counts.settle(first, stale=False)
    with pytest.raises(KeyError):
        counts.settle(first, stale=False)
    assert counts.lose(0, 0) == 1
    with pytest.raises(KeyError):
        counts.settle(second, stale=False)
    assert (counts.delivered, counts.lost) == (1, 1)
