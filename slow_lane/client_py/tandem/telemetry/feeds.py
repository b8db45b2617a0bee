"""`Feed`: a method by which the daemon streams records, for a `Subscription`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tandem.telemetry.records import Episode, LifecycleEvent, MalformedLine, Run, RunStatus, Scalars, Step

Record = TypeVar("Record", covariant=True)
Event = TypeVar("Event", Step, Episode, LifecycleEvent, MalformedLine, Scalars)

# In a request of StreamEvents: no events of this stream.
_UNWANTED = 2**64 - 1
# A stream of events, as a field of StreamEvents' batches -> the field of its request.
_SINCE_FIELDS = {
    "steps": "since_step",
    "episodes": "since_episode",
    "lifecycle": "since_lifecycle",
    "malformed": "since_malformed",
    "scalars": "since_scalars",
}
# A class of events -> its stream, and the method of any gymgui.trainer.TrainerService that streams it; "": none does.
_STREAMS: dict[type, tuple[str, str]] = {
    Step: ("steps", "StreamRunSteps"),
    Episode: ("episodes", "StreamRunEpisodes"),
    LifecycleEvent: ("lifecycle", ""),
    MalformedLine: ("malformed", ""),
    Scalars: ("scalars", ""),
}


@dataclass(frozen=True)
class Feed(Generic[Record]):
    """A method that streams records: its request's fields for those after a number, and a message's records."""

    method: str
    fields: Callable[[int], dict[str, Any]]
    records: Callable[[Any], Iterable[Record]]


def run_feeds(statuses: tuple[RunStatus, ...]) -> list[Feed[Run]]:
    """Returns the methods, best first, for changes of runs' status; `statuses`: the wanted ones, none: all."""
    return [_one_by_one("WatchRuns", Run.from_message, status_filter=statuses)]


def event_feeds(kind: type[Event], run_id: str, *, follow: bool = True) -> list[Feed[Event]]:
    """Returns the methods, best first, for a run's events of one class; `follow`: whether to wait for new events.

    The second method is that of any gymgui.trainer.TrainerService, which always follows.
    """
    stream, method = _STREAMS[kind]
    feeds = [_in_blocks(stream, lambda batch: map(kind.from_message, getattr(batch, stream)), run_id, follow)]
    if follow and method:
        feeds.append(_one_by_one(method, kind.from_message, run_id=run_id))
    return feeds


@dataclass(frozen=True)
class MessageBlock:
    """Events of one stream, as the daemon's messages, and the number of the last of them."""

    messages: Sequence[Any]
    seq_id: int


def block_feed(run_id: str, stream: str) -> Feed[MessageBlock]:
    """Returns the method for all durable events of a stream, such as "steps", in blocks of messages."""

    def blocks(batch: Any) -> list[MessageBlock]:
        messages = getattr(batch, stream)
        return [MessageBlock(messages, messages[-1].seq_id)] if messages else []

    return _in_blocks(stream, blocks, run_id, follow=False)


def _in_blocks(stream: str, records: Callable[[Any], Iterable[Record]], run_id: str, follow: bool) -> Feed[Record]:
    """Makes the feed of Tandem's own daemon, in blocks: a message costs as much as several records."""
    others = {"run_id": run_id, "follow": follow, **dict.fromkeys(_SINCE_FIELDS.values(), _UNWANTED)}
    return Feed("StreamEvents", lambda since_seq: others | {_SINCE_FIELDS[stream]: since_seq}, records)


def _one_by_one(method: str, convert: Callable[[Any], Record], **fields: Any) -> Feed[Record]:
    """Makes the feed of any gymgui.trainer.TrainerService."""
    return Feed(method, lambda since_seq: {**fields, "since_seq": since_seq}, lambda message: (convert(message),))
