"""One doorbell, explored at every step: no wake is lost, and each part of the protocol is needed for that.

    step here                          transport/wait/doorbell.h
    sees, announces, fences, looks,    SleepUnless, in this order; "looks" is ready()
    asks to sleep, withdraws           FutexWait: compares and falls asleep in one step; then sleepers_->fetch_sub
    stores                             what the caller of NotifyIfWaiting did before
    fences, looks for sleepers         NotifyIfWaiting
    rings, wakes                       Ring: bell_->fetch_add, FutexWakeAll

Each thread's stores wait in a buffer, first in, first out, until a step of their own writes them to memory; loads read
memory at once; a fence and a futex call wait until the buffer is empty. Buffers hold what is added to a word, so that
fetch_add is atomic but, unlike on x86, no fence: aarch64 promises no more. Sleeps have no slice here: what the code
repairs by waking up every 10 ms counts as lost. Not modelled: an owner that dies asleep (ClearSleepers).
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.model.explorer import Result, Step, explore
from tools.testing import pytest_main

SLEEPER = ("sees", "announces", "fences", "looks", "asks to sleep", "withdraws")
WAKER = ("stores", "fences", "looks for sleepers", "rings", "wakes")

# What is done otherwise -> the sleeper's and the waker's steps.
MUTATIONS = {
    "the sleeper has no fence": (("sees", "announces", "looks", "asks to sleep", "withdraws"), WAKER),
    "the waker has no fence": (SLEEPER, ("stores", "looks for sleepers", "rings", "wakes")),
    "the sleeper does not look again": (("sees", "announces", "fences", "asks to sleep", "withdraws"), WAKER),
    "the sleeper looks before it announces": (
        ("sees", "looks", "announces", "fences", "asks to sleep", "withdraws"),
        WAKER,
    ),
    "the sleeper sees the doorbell after its look": (
        ("announces", "fences", "looks", "sees", "asks to sleep", "withdraws"),
        WAKER,
    ),
    "the waker does not change the doorbell": (SLEEPER, ("stores", "fences", "looks for sleepers", "wakes")),
    "the waker wakes before it changes the doorbell": (
        SLEEPER,
        ("stores", "fences", "looks for sleepers", "wakes", "rings"),
    ),
    "the waker only changes the doorbell": (SLEEPER, ("stores", "fences", "looks for sleepers", "rings")),
    "the waker looks before it stores": (SLEEPER, ("looks for sleepers", "stores", "fences", "rings", "wakes")),
    "the sleeper does not withdraw": (
        SLEEPER[:-1],  # sleepers is never lowered: not a lost wake, but the count must end at 0
        WAKER,
    ),
}


class Thread(NamedTuple):
    """A sleeper, or the waker, which is the last of the threads."""

    at: int = 0  # index of its next step
    round: int = 1  # what a sleeper waits for; what the waker stores
    seen: int = 0  # the doorbell's value
    ready: bool = False  # what the look said: the sleeper's turn has come, or a side sleeps
    asleep: bool = False
    buffer: tuple[tuple[str, int], ...] = ()  # word, what is added to it


class State(NamedTuple):
    """The memory that all see, and the threads."""

    turn: int
    bell: int
    sleepers: int
    threads: tuple[Thread, ...]


def run(sleeper: tuple[str, ...], waker: tuple[str, ...], *, sleepers: int, rounds: int) -> Result[State]:
    """Explores threads that do these steps.

    Args:
      sleeper: Steps of each sleeper, repeated until it has seen all rounds.
      waker: Steps of the waker, repeated for each round.
      sleepers: How many there are.
      rounds: How often the waker stores; each sleeper waits for each.

    Returns:
      What was found.
    """

    def advance(state: State, index: int) -> Iterator[State]:
        thread = state.threads[index]
        is_waker = index == sleepers
        program = waker if is_waker else sleeper
        step = program[thread.at]
        following = thread._replace(at=thread.at + 1)
        if step in ("fences", "asks to sleep", "wakes") and thread.buffer:
            return  # waits for its stores to be written
        others = state.threads
        if step == "sees":
            following = following._replace(seen=state.bell)
        elif step in ("announces", "withdraws"):
            following = following._replace(buffer=(*thread.buffer, ("sleepers", 1 if step == "announces" else -1)))
        elif step == "looks":
            following = following._replace(ready=state.turn >= thread.round)
        elif step == "asks to sleep":
            following = following._replace(asleep=not thread.ready and state.bell == thread.seen)
        elif step == "stores":
            following = following._replace(buffer=(*thread.buffer, ("turn", 1)))
        elif step == "looks for sleepers":
            following = following._replace(ready=state.sleepers > 0)
        elif step == "rings" and thread.ready:
            following = following._replace(buffer=(*thread.buffer, ("bell", 1)))
        elif step == "wakes" and thread.ready:
            others = tuple(other._replace(asleep=False) for other in others)
        if following.at == len(program):
            # A sleeper's loop: it leaves only by a look of its own outside of SleepUnless.
            done = is_waker or state.turn >= thread.round
            following = Thread(0, thread.round + done, buffer=following.buffer)
        yield state._replace(threads=(*others[:index], following, *others[index + 1 :]))

    def steps(state: State) -> Iterator[Step[State]]:
        for index, thread in enumerate(state.threads):
            name = "waker" if index == sleepers else f"sleeper {index + 1}"
            if thread.buffer:
                (word, change), rest = thread.buffer[0], thread.buffer[1:]
                threads = (*state.threads[:index], thread._replace(buffer=rest), *state.threads[index + 1 :])
                written = state._replace(threads=threads)
                yield f"{name}'s store of {word} is written", written._replace(**{word: getattr(state, word) + change})
            if thread.round <= rounds and not thread.asleep:
                program = waker if index == sleepers else sleeper
                for after in advance(state, index):
                    yield f"{name} {program[thread.at]}", after

    def at_rest(state: State) -> bool:
        return all(thread.round > rounds and not thread.buffer for thread in state.threads)

    def problem_in(state: State) -> str:
        return "a sleeper is still counted" if at_rest(state) and state.sleepers != 0 else ""

    return explore(State(0, 0, 0, (Thread(),) * (sleepers + 1)), steps, problem_in, at_rest)


@pytest.mark.parametrize(("sleepers", "rounds"), [(1, 5), (2, 2)])
def test_no_wake_is_lost(sleepers: int, rounds: int) -> None:
    """Whatever the order of steps, every side sees every round, and none stays counted."""
    result = run(SLEEPER, WAKER, sleepers=sleepers, rounds=rounds)
    print(f"{sleepers} sleepers, {rounds} rounds: {result}")
    assert not result.problem, str(result)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_each_part_is_needed(mutation: str) -> None:
    """Without it one round suffices to go wrong."""
    result = run(*MUTATIONS[mutation], sleepers=1, rounds=1)
    print(f"{mutation}: {result}")
    assert result.problem


if __name__ == "__main__":
    pytest_main.run(__file__)
