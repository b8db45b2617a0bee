"""`Feed`: a way in which the daemon streams records. What a `Subscription` asks for, and how it reads the answer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tandem.telemetry.records import Episode, Run, RunStatus, Step

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


def step_feeds(run_id: str) -> list[Feed[Step]]:
    """Says how a run's steps are asked for.

    Args:
      run_id: The run.

    Returns:
      The ways, best first.
    """
    blocks = _in_blocks("since_step", lambda batch: map(Step.from_message, batch.steps), run_id)
    return [blocks, _one_by_one("StreamRunSteps", Step.from_message, run_id=run_id)]


def episode_feeds(run_id: str) -> list[Feed[Episode]]:
    """Says how a run's episodes are asked for.

    Args:
      run_id: The run.

    Returns:
      The ways, best first.
    """
    blocks = _in_blocks("since_episode", lambda batch: map(Episode.from_message, batch.episodes), run_id)
    return [blocks, _one_by_one("StreamRunEpisodes", Episode.from_message, run_id=run_id)]


def _in_blocks(since_field: str, records: Callable[[Any], Iterable[Record]], run_id: str) -> Feed[Record]:
    """Of Tandem's own daemon: a message costs as much as several of its records."""
    streams = ("since_step", "since_episode", "since_lifecycle", "since_malformed")
    others = {"run_id": run_id, "follow": True, **dict.fromkeys(streams, _UNWANTED)}
    return Feed("StreamEvents", lambda since_seq: others | {since_field: since_seq}, records)


def _one_by_one(method: str, convert: Callable[[Any], Record], **fields: Any) -> Feed[Record]:
    """Of any gymgui.trainer.TrainerService."""
    return Feed(method, lambda since_seq: {**fields, "since_seq": since_seq}, lambda message: (convert(message),))
