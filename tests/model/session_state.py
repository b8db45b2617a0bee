"""The session model's setting, its state, and the property of each state."""

from dataclasses import dataclass
from typing import NamedTuple

Tag = tuple[int, int]  # the client's number (from 1), the number of its exchange


@dataclass(frozen=True)
class Setting:
    """The parameters of an exploration."""

    clients: str = "TT"  # in order. T: Tandem's; F: foreign, which comes when its predecessor is forgotten
    exchanges: int = 2  # the greatest number for each client
    stranger: bool = False  # another program writes attach_request once, during a session
    early: str = ""  # F comes too early: after a "leave" between exchanges, or a "death" at any step
    mutation: str = ""  # a mutation of the engine or of a client


class State(NamedTuple):
    """The region, the two sides' private words, and ghost variables, which only the properties read."""

    # The region. There is one environment; its results are the tags of the exchanges applied since its reset.
    action_seq: int = 0
    action: Tag | None = None
    flag: Tag | None = None  # the environment's reset flag, with its seed
    kind: int = 0
    frame_seq: int = 0
    results: tuple[Tag, ...] = ()
    broken: bool = False  # exchange_status is BrokenPeer
    request: int = 0
    ack: int = 0
    locked: bool = False  # by the client
    # The engine.
    engine: str = "looks for an action"  # its next step
    own_seq: int = 0  # frame_seq_
    welcomed: int = 0
    arriving: int = 0
    took: int = 0  # kind_
    has_client: bool = False
    fresh: bool = True
    env: tuple[Tag, ...] = ()
    # The current or next client.
    who: int = 1
    client: str = "comes"  # its next step
    chose: int = 0  # the kind
    seq: int = 0
    hello: int = 0
    done: int = 0
    want: tuple[Tag, ...] = ()  # the correct results
    # Ghost variables.
    meddled: bool = False  # the stranger has written
    served: int = 0  # the client that was welcomed last
    posted: int = 0  # the client that posted action_seq
    applied: tuple[Tag, ...] = ()  # all exchanges that were ever applied
    wrong: str = ""  # a forbidden event


def problem_in(s: State) -> str:
    """Returns the problem of a state, or of a step that led to it.

    Args:
      s: The state.

    Returns:
      The problem; empty if there is none.
    """
    resets = s.engine in ("resets for the hello", "resets after it") and not s.fresh
    if resets and s.hello and s.client in ("chooses", "posts", "receives", "judges") and not s.meddled:
        return "the environment is reset during a session"
    return s.wrong
