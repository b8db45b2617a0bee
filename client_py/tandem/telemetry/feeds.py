"""`Feed`: a way in which the daemon streams records. What a `Subscription` asks for, and how it reads the answer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tandem.telemetry.records import Episode, LifecycleEvent, MalformedLine, Run, RunStatus, Step

Record = TypeVar("Record", covariant=True)

# Of StreamEvents: a stream that is asked for what comes behind this is left out.
_UNWANTED = 2**64 - 1


@dataclass(frozen=True)
class Feed(Generic[Record]):
    """A method that streams records.

    Attributes:
      method: Its name.
      fields: Of its request for what comes after a number.
      records: Those of one of its messages, in their order.
    """

    method: str
    fields: Callable[[int], dict[str, Any]]
    records: Callable[[Any], Iterable[Record]]


def run_feeds(statuses: tuple[RunStatus, ...]) -> list[Feed[Run]]:
    """Says how the changes of runs' status are asked for.

    Args:
      statuses: Those that are wanted; none: all.

    Returns:
      The ways, best first.
    """
    return [_one_by_one("WatchRuns", Run.from_message, status_filter=statuses)]


def step_feeds(run_id: str, *, follow: bool = True) -> list[Feed[Step]]:
    """Says how a run's steps are asked for.

    Args:
      run_id: The run.
      follow: Whether to wait for those to come.

    Returns:
      The ways, best first.
    """
    blocks = _in_blocks("since_step", lambda batch: map(Step.from_message, batch.steps), run_id, follow)
    return [blocks, _one_by_one("StreamRunSteps", Step.from_message, run_id=run_id)] if follow else [blocks]


def episode_feeds(run_id: str, *, follow: bool = True) -> list[Feed[Episode]]:
    """Says how a run's episodes are asked for.

    Args:
      run_id: The run.
      follow: Whether to wait for those to come.

    Returns:
      The ways, best first.
    """
    blocks = _in_blocks("since_episode", lambda batch: map(Episode.from_message, batch.episodes), run_id, follow)
    return [blocks, _one_by_one("StreamRunEpisodes", Episode.from_message, run_id=run_id)] if follow else [blocks]


def lifecycle_feeds(run_id: str, *, follow: bool = True) -> list[Feed[LifecycleEvent]]:
    """Says how a run's lifecycle events are asked for; only Tandem's own daemon has them.

    Args:
      run_id: The run.
      follow: Whether to wait for those to come.

    Returns:
      The one way.
    """
    return [
        _in_blocks("since_lifecycle", lambda batch: map(LifecycleEvent.from_message, batch.lifecycle), run_id, follow)
    ]


def malformed_feeds(run_id: str, *, follow: bool = True) -> list[Feed[MalformedLine]]:
    """Says how a run's malformed lines are asked for; only Tandem's own daemon has them.

    Args:
      run_id: The run.
      follow: Whether to wait for those to come.

    Returns:
      The one way.
    """
    return [
        _in_blocks("since_malformed", lambda batch: map(MalformedLine.from_message, batch.malformed), run_id, follow)
    ]


@dataclass(frozen=True)
class MessageBlock:
    """Events of one stream, as the daemon's messages.

    Attributes:
      messages: In their order.
      seq_id: Of the last of them.
    """

    messages: Sequence[Any]
    seq_id: int


def block_feed(run_id: str, stream: str) -> Feed[MessageBlock]:
    """Says how a run's durable events are asked for, many at a time and as messages: for exports of all of them.

    Args:
      run_id: The run.
      stream: "steps", "episodes" or "lifecycle".

    Returns:
      The one way.
    """

    def blocks(batch: Any) -> list[MessageBlock]:
        messages = getattr(batch, stream)
        return [MessageBlock(messages, messages[-1].seq_id)] if messages else []

    return _in_blocks(f"since_{stream.removesuffix('s')}", blocks, run_id, follow=False)


def _in_blocks(since_field: str, records: Callable[[Any], Iterable[Record]], run_id: str, follow: bool) -> Feed[Record]:
    """Of Tandem's own daemon: a message costs as much as several of its records."""
    streams = ("since_step", "since_episode", "since_lifecycle", "since_malformed")
    others = {"run_id": run_id, "follow": follow, **dict.fromkeys(streams, _UNWANTED)}
    return Feed("StreamEvents", lambda since_seq: others | {since_field: since_seq}, records)


def _one_by_one(method: str, convert: Callable[[Any], Record], **fields: Any) -> Feed[Record]:
    """Of any gymgui.trainer.TrainerService."""
    return Feed(method, lambda since_seq: {**fields, "since_seq": since_seq}, lambda message: (convert(message),))
