"""What the session model consists of: its setting, its state, and what must hold in each state."""

from dataclasses import dataclass
from typing import NamedTuple

Tag = tuple[int, int]  # which client (from 1), the number of its exchange


@dataclass(frozen=True)
class Setting:
    """What is explored."""

    clients: str = "TT"  # one after the other. T: Tandem's; F: foreign, which comes once its predecessor is forgotten
    exchanges: int = 2  # of each client, at most
    stranger: bool = False  # writes attach_request once, during a session
    early: str = ""  # F comes too early, after a "leave" between exchanges or a "death" anywhere
    mutation: str = ""  # one of the engine's or the client's


class State(NamedTuple):
    """The region, the private words of the two sides, and ghosts, which only the properties see."""

    # The region. There is one environment; its results are the tags that were applied to it since its reset.
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
    # The client that is there or comes next.
    who: int = 1
    client: str = "comes"  # its next step
    chose: int = 0  # the kind
    seq: int = 0
    hello: int = 0
    done: int = 0
    want: tuple[Tag, ...] = ()  # the results that are right
    # Ghosts.
    meddled: bool = False  # the stranger has been here
    served: int = 0  # the client welcomed last
    posted: int = 0  # the client whose exchange action_seq is
    applied: tuple[Tag, ...] = ()  # whatever was applied, ever
    wrong: str = ""  # what must not have happened


def problem_in(s: State) -> str:
    """Says what must not be; steps have noted what must not happen.

    Args:
      s: The state.

    Returns:
      The problem; empty if there is none.
    """
    resets = s.engine in ("resets for the hello", "resets after it") and not s.fresh
    if resets and s.hello and s.client in ("chooses", "posts", "receives", "judges") and not s.meddled:
        return "the environment is reset during a session"
    return s.wrong
