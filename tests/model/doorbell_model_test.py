"""A model of one doorbell, with all interleavings: no wake is lost, and each part of the protocol is necessary.

    step here                          transport/wait/doorbell.h
    sees, announces, fences, looks,    SleepUnless, in this order; "looks" is ready()
    asks to sleep, withdraws           SleepOnWord: compares and falls asleep in one step; then sleepers_->fetch_sub
    stores                             the store of NotifyIfWaiting's caller before the call
    fences, looks for sleepers         AnyWaiting
    rings, wakes                       NotifyAll: bell_->fetch_add, WakeSleepers

Each thread's stores wait in a first-in first-out buffer until a separate step writes them to memory. Loads read memory
at once. A fence and a futex call wait until the buffer is empty. A buffer holds additions to words, so that fetch_add
is atomic but no fence, unlike on x86: aarch64 guarantees no more. Sleeps have no slice in the model: a wake that the
code's 10 ms slice would repair counts as lost. Not modelled: a side that dies asleep (ClearSleepers).
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.model.explorer import Result, Step, explore

SLEEPER = ("sees", "announces", "fences", "looks", "asks to sleep", "withdraws")
WAKER = ("stores", "fences", "looks for sleepers", "rings", "wakes")

# Mutation -> the sleeper's and the waker's steps.
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
        SLEEPER[:-1],  # `sleepers` is not decremented: no wake is lost, but the count must end at 0
        WAKER,
    ),
}


class Thread(NamedTuple):
    """A sleeper, or the waker, which is the last thread."""

    at: int = 0  # the index of its next step
    round: int = 1  # the value that a sleeper waits for; the value that the waker stores
    seen: int = 0  # the doorbell's value
    ready: bool = False  # the result of a "looks" step: the sleeper's round is there, or a sleeper is counted
    asleep: bool = False
    buffer: tuple[tuple[str, int], ...] = ()  # words, each with the number to add


class State(NamedTuple):
    """The shared memory and the threads."""

    turn: int
    bell: int
    sleepers: int
    threads: tuple[Thread, ...]


def run(sleeper: tuple[str, ...], waker: tuple[str, ...], *, sleepers: int, rounds: int) -> Result[State]:
    """Explores threads with the given steps.

    Args:
      sleeper: The steps of each sleeper, repeated until it has seen all rounds.
      waker: The steps of the waker, repeated for each round.
      sleepers: The number of sleepers.
      rounds: The number of the waker's stores; each sleeper waits for each.

    Returns:
      The exploration's result.
    """

    def advance(state: State, index: int) -> Iterator[State]:
        thread = state.threads[index]
        is_waker = index == sleepers
        program = waker if is_waker else sleeper
        step = program[thread.at]
        following = thread._replace(at=thread.at + 1)
        if step in ("fences", "asks to sleep", "wakes") and thread.buffer:
            return  # waits until its buffer is empty
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
            # A sleeper's loop ends only when it finds its round outside of SleepUnless.
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
    """In every interleaving each sleeper sees each round, and no sleeper stays counted."""
    result = run(SLEEPER, WAKER, sleepers=sleepers, rounds=rounds)
    print(f"{sleepers} sleepers, {rounds} rounds: {result}")
    assert not result.problem, str(result)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_each_mutation_breaks_the_protocol(mutation: str) -> None:
    """One round and one sleeper are enough for a counterexample."""
    result = run(*MUTATIONS[mutation], sleepers=1, rounds=1)
    print(f"{mutation}: {result}")
    assert result.problem
