"""Events are printed as lines of their own, whole, whatever is in them and whatever else is printed."""

import enum
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import tandem
from tandem.arguments import shown
from tandem.telemetry import EventWriter
from tandem.telemetry.json_lines import MAX_LINE_BYTES
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tools.testing import pytest_main

_STEP: dict[str, Any] = {"episode": 0, "step_index": 0, "reward": 0.0}


@pytest.fixture
def out() -> io.StringIO:
    """What is printed."""
    return io.StringIO()


@pytest.fixture
def events(out: io.StringIO) -> EventWriter:
    """Prints to `out`."""
    return EventWriter(out, timestamps=False)


def _only(out: io.StringIO) -> dict[str, Any]:
    assert out.getvalue().count("\n") == 1 and out.getvalue().endswith("\n")
    event: dict[str, Any] = json.loads(out.getvalue())
    return event


def test_step_has_the_fields_of_the_seed(out: io.StringIO) -> None:
    """And those that were given beside them."""
    events = EventWriter(out, run_id="01ARZ3", worker_id="worker-001", timestamps=False)
    events.step(
        episode=3,
        step_index=42,
        action=1,
        observation=[0.02, -0.01],
        reward=1.0,
        terminated=True,
        agent_id="left",
        episode_seed=2**64 - 1,
        policy_label="ppo",
        backend="mujoco",
        frame_ref="frames/3.png",
        render_payload={"grid": [[0, 1]]},
    )
    assert _only(out) == {
        "event_type": "step",
        "run_id": "01ARZ3",
        "worker_id": "worker-001",
        "episode": 3,
        "step_index": 42,
        "action": 1,
        "observation": [0.02, -0.01],
        "reward": 1.0,
        "terminated": True,
        "truncated": False,
        "agent_id": "left",
        "episode_seed": 2**64 - 1,
        "policy_label": "ppo",
        "backend": "mujoco",
        "frame_ref": "frames/3.png",
        "render_payload": {"grid": [[0, 1]]},
    }


def test_episode_and_lifecycle_have_theirs(out: io.StringIO, events: EventWriter) -> None:
    """What is left out or empty is not printed."""
    events.episode(episode=0, total_reward=195, steps=195, truncated=True, metadata={"loss": np.float32(0.5)})
    events.lifecycle("checkpoint", {"path": "policy.npz"})
    events.lifecycle("run_paused")
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {
            "event_type": "episode",
            "episode": 0,
            "total_reward": 195.0,
            "steps": 195,
            "terminated": False,
            "truncated": True,
            "metadata": {"loss": 0.5},
        },
        {"event": "checkpoint", "payload": {"path": "policy.npz"}},
        {"event": "run_paused"},
    ]


def test_run_is_the_one_that_the_daemon_names(out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the program names it; an empty variable is none."""
    monkeypatch.setenv("TANDEM_RUN_ID", "of-the-daemon")
    EventWriter(out).lifecycle("a")
    EventWriter(out, run_id="own").lifecycle("b")
    monkeypatch.setenv("TANDEM_RUN_ID", "")
    EventWriter(out).lifecycle("c")
    assert [json.loads(line).get("run_id") for line in out.getvalue().splitlines()] == ["of-the-daemon", "own", None]


def test_events_say_when_they_were_made(out: io.StringIO) -> None:
    """In nanoseconds since the Unix epoch."""
    before = time.time_ns()
    EventWriter(out).step(**_STEP)
    assert before <= _only(out)["ts_unix_ns"] <= time.time_ns()


class _LikeATensor:
    """What PyTorch's and JAX's arrays have in common."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array([1.5, 2.5], dtype)


class _Move(enum.IntEnum):
    LEFT = 3


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(-7), -7),
        (np.bool_(True), True),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.longdouble(0.25), 0.25),
        (np.array([[1, 2], [3, 4]], np.uint8), [[1, 2], [3, 4]]),
        (np.array(2.5), 2.5),
        (np.zeros((0, 3)), []),
        (np.arange(6.0).reshape(2, 3)[:, ::2], [[0.0, 2.0], [3.0, 5.0]]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([1.5, None], object), [1.5, None]),
        ((np.float64(1), [np.int8(2)]), [1.0, [2]]),
        ({"camera": np.ones(2), "text": "x"}, {"camera": [1.0, 1.0], "text": "x"}),
        ({np.int64(1): 2}, {"1": 2}),
        (np.array([1.0, np.nan, np.inf, -np.inf]), [1.0, None, None, None]),
        (float("nan"), None),
        ({"deep": (1.0, [np.float32("inf")])}, {"deep": [1.0, [None]]}),
        (_LikeATensor(), [1.5, 2.5]),
        (_Move.LEFT, 3),
        ("line\nbreak \x00 \u2028 \ud800 ä", "line\nbreak \x00 \u2028 ? ä"),
        ("12345678901234567890123", "12345678901234567890123"),
        (-(2**63), -(2**63)),
    ],
    ids=repr,
)
def test_value_is_printed_as_json_has_it(value: object, printed: object, out: io.StringIO, events: EventWriter) -> None:
    """As action, as observation, and inside a mapping."""
    events.step(**_STEP, action=value, observation=value, render_payload={"inside": value})
    event = _only(out)
    assert event["observation"] == event["action"] == event["render_payload"]["inside"] == printed


def _circle() -> list[object]:
    circle: list[object] = []
    circle.append(circle)
    return circle


def _array_in_itself() -> np.ndarray[Any, Any]:
    circle = np.empty(1, object)
    circle[0] = {"again": circle}
    return circle


def _nested(depth: int, inside: object = 1) -> object:
    """Lists and mappings in turn around something."""
    for level in range(depth):
        inside = [inside] if level % 2 else {"in": inside}
    return inside


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (1j, "complex"),
        (np.array([1j]), "complex128"),
        (b"bytes", "bytes"),
        (np.array([b"bytes"]), r"\|S5"),
        (np.datetime64("2026-01-01"), "datetime64"),
        ({1, 2}, "set"),
        (object(), "object"),
        ({(1, 2): 3}, "keys"),
        (np.array([object()], object), "object"),
        (2**64, "2\\^64"),
        ([-(2**63) - 1], "2\\^63"),
        (_circle(), "circle"),
        ([float("nan"), _circle()], "circle"),
        (_array_in_itself(), "circle"),
        (_nested(64), "at most 63 deep, found more"),
        (_nested(100_000), "at most 63 deep, found more"),
        ([float("nan"), _nested(63)], "at most 63 deep, found more"),
        (_nested(32, np.zeros((1,) * 32)), "at most 63 deep, found more"),
        ([_nested(63, "]"), "[" * 70], "at most 63 deep, found more"),
    ],
    ids=shown,
)
def test_value_that_json_cannot_hold_is_refused(
    value: object, fact: str, out: io.StringIO, events: EventWriter
) -> None:
    """The message names the field; nothing is printed."""
    with pytest.raises(tandem.InvalidArgument, match=f"observation: .*{fact}.*nothing was printed"):
        events.step(**_STEP, action=1, observation=value)
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    "value",
    [
        _nested(63),
        _nested(63, []),
        _nested(62, [float("nan")]),
        _nested(31, np.zeros((1,) * 32)),
        [[1]] * 100,
        _nested(62, ["]" * 70 + '"\\{"', "[" * 70]),
    ],
    ids=shown,
)
def test_value_as_deep_as_the_daemon_takes_is_printed(value: object, out: io.StringIO, events: EventWriter) -> None:
    """With the event around it: 64; many that are beside each other count once, and those in strings not at all."""
    events.step(**_STEP, observation=value)
    assert _only(out)["observation"] is not None


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"reward": float("nan")}, "reward: expected a finite number, found nan"),
        ({"reward": np.float32("inf")}, "reward: .*inf"),
        ({"reward": "1.5"}, "reward: .*'1.5'"),
        ({"reward": None}, "reward: .*None"),
        ({"reward": np.zeros(1)}, "reward: .*array"),
        ({"reward": 10**400}, "reward: "),
        ({"reward": [[1], [2, 3]]}, r"reward: .*\[\[1\], \[2, 3\]\]"),
        ({"episode": -1}, "episode: expected an integer in 0 .. 18446744073709551615, found -1"),
        ({"episode": 1.0}, "episode: .*1.0"),
        ({"step_index": 2**64}, "step_index: "),
        ({"terminated": 1}, "terminated: expected a bool, found 1"),
        ({"truncated": "no"}, "truncated: "),
        ({"agent_id": 7}, "agent_id: expected a string"),
        ({"episode_seed": -1}, "episode_seed: "),
    ],
)
def test_field_that_cannot_be_is_refused(
    change: dict[str, Any], fact: str, out: io.StringIO, events: EventWriter
) -> None:
    """By name, with what was found; it is a ValueError, too."""
    with pytest.raises(tandem.InvalidArgument, match=fact):
        events.step(**_STEP | change)
    assert out.getvalue() == ""


def test_other_arguments_that_cannot_be_are_refused(out: io.StringIO, events: EventWriter) -> None:
    """Of episodes, lifecycle events, and the writer itself."""
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: events.episode(episode=0, total_reward=float("inf"), steps=1), "total_reward: "),
        (lambda: events.episode(episode=0, total_reward=0, steps=-1), "steps: "),
        (lambda: events.episode(episode=0, total_reward=0, steps=1, metadata=[1]), "metadata: .*mapping"),  # type: ignore[arg-type]
        (lambda: events.episode(episode=0, total_reward=0, steps=1, metadata={"episode_index": "3"}), "'3'"),
        (lambda: events.episode(episode=0, total_reward=0, steps=1, metadata={"episode_index": -1}), "index.*-1"),
        (lambda: events.lifecycle(""), "event: "),
        (lambda: events.lifecycle("a", "b"), "payload: "),  # type: ignore[arg-type]
        (lambda: EventWriter(out, run_id=7), "run_id: "),  # type: ignore[arg-type]
        (lambda: EventWriter("file.jsonl"), "stream: "),  # type: ignore[arg-type]
    ]
    for call, fact in refused:
        with pytest.raises(tandem.InvalidArgument, match=fact):
            call()
    assert out.getvalue() == ""


def _closed(file: IO[Any]) -> IO[Any]:
    file.close()
    return file


def _detached(file: Any) -> IO[Any]:
    file.detach()
    return file  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("open_stream", "fact"),
    [
        (lambda path: path.open(), "mode='r'.*for reading only"),
        (lambda path: path.open("rb"), "for reading only"),
        (lambda path: os.fdopen(os.open(path, os.O_RDONLY), "w"), "for reading only"),
        (lambda path: _closed(path.open("w")), "which is closed"),
        (lambda path: _closed(path.open("ab", buffering=0)), "which is closed"),
        (lambda path: _closed(io.StringIO()), "which is closed"),
        (lambda path: _detached(path.open("w")), "which is closed"),
        (lambda path: io.BytesIO(), "takes no text"),
        (lambda path: -77, "77"),
    ],
)
def test_stream_that_cannot_be_written_to_is_refused(
    open_stream: Callable[[Path], Any], fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, also where it is the standard output, which may be None."""
    (tmp_path / "file").touch()
    stream = open_stream(tmp_path / "file")
    with pytest.raises(tandem.InvalidArgument, match=f"^stream: expected a file open for writing, found .*{fact}"):
        EventWriter(stream)
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(tandem.InvalidArgument, match=f"^stream, which is sys.stdout: .*{fact}"):
        EventWriter()
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(tandem.InvalidArgument, match="^stream, which is sys.stdout: .*found None"):
        EventWriter()


def test_streams_of_every_kind_are_written_to(tmp_path: Path) -> None:
    """Text and bytes, appended to or not, and pipes."""
    read, write = os.pipe()
    path = tmp_path / "file"
    streams: list[IO[Any]] = [path.open("w"), path.open("ab"), path.open("r+"), path.open("wb", buffering=0)]
    for stream in [*streams, os.fdopen(write, "w")]:
        with stream:
            EventWriter(stream, timestamps=False).lifecycle("a")
            printed = os.read(read, 100) if stream.fileno() == write else path.read_bytes()
            assert printed.strip().splitlines()[-1] == b'{"event":"a"}'
    os.close(read)


@pytest.mark.parametrize("make", [lambda path: path.open("w"), lambda path: io.StringIO()], ids=["file", "memory"])
def test_stream_that_was_closed_is_told(make: Callable[[Path], IO[Any]], tmp_path: Path) -> None:
    """The descriptor may be another file's by then, which gets no event."""
    stream = make(tmp_path / "file")
    events = EventWriter(stream)
    stream.close()
    with (tmp_path / "other").open("w"), pytest.raises(tandem.InvalidArgument, match="stream: .*closed; nothing was"):
        events.lifecycle("a")
    assert (tmp_path / "other").read_bytes() == b""


def test_line_longer_than_the_daemon_takes_is_refused(out: io.StringIO, events: EventWriter) -> None:
    """The message names the field that is to blame; one that just fits is printed."""
    with pytest.raises(tandem.InvalidArgument, match=f"{MAX_LINE_BYTES}.*observation"):
        events.step(**_STEP, action=1, observation="x" * MAX_LINE_BYTES)
    assert out.getvalue() == ""
    events.step(**_STEP)
    rest = MAX_LINE_BYTES - len(out.getvalue()) - len(',"observation":""')
    out.truncate(out.seek(0))
    events.step(**_STEP, observation="x" * rest)
    assert len(out.getvalue()) == MAX_LINE_BYTES


def test_run_is_started_and_completed(out: io.StringIO, events: EventWriter) -> None:
    """The writer is the block's."""
    with events.run(env_id="CartPole-v1") as inside:
        assert inside is events
        events.lifecycle("inside")
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"event": "run_started", "payload": {"env_id": "CartPole-v1"}},
        {"event": "inside"},
        {"event": "run_completed"},
    ]


@pytest.mark.parametrize(
    ("error", "last"),
    [
        (ValueError("of no value"), ("run_failed", "ValueError: of no value")),
        (KeyboardInterrupt(), ("run_failed", "KeyboardInterrupt")),
        (SystemExit(3), ("run_failed", "SystemExit: 3")),
        (SystemExit("out of memory"), ("run_failed", "SystemExit: out of memory")),
        (SystemExit(), ("run_completed", None)),
        (SystemExit(0), ("run_completed", None)),
    ],
    ids=repr,
)
def test_exception_is_told_and_goes_on_its_way(
    error: BaseException, last: tuple[str, str | None], out: io.StringIO, events: EventWriter
) -> None:
    """A good exit is no failure."""
    with pytest.raises(type(error)) as caught, events.run():
        raise error
    assert caught.value is error
    told = json.loads(out.getvalue().splitlines()[-1])
    assert (told["event"], told.get("payload", {}).get("error")) == last


_AMONG_PRINTS = """
import ctypes, os, subprocess, sys, threading
from tandem.telemetry import EventWriter

events = EventWriter()
libc = ctypes.CDLL(None)

def others(index):
    for number in range(200):
        print("whole line", index, number)
        print("a part", end="", flush=True)
        os.write(1, b"another part")
        libc.printf(b"of a library")
        libc.fflush(None)

def own(index):
    for number in range(200):
        events.step(episode=index, step_index=number, reward=0.5, observation=[number] * 100)

threads = [threading.Thread(target=each, args=(index,)) for index in range(4) for each in (others, own)]
for thread in threads:
    thread.start()
child = subprocess.Popen([sys.executable, "-c", "for _ in range(200): print('child', end='', flush=True)"])
for thread in threads:
    thread.join()
child.wait()
"""

_ONE_AFTER_THE_OTHER = """
import os
from tandem.telemetry import EventWriter

print("before", end="", flush=True)
events = EventWriter()
events.lifecycle("first")
events.lifecycle("second")
print("not flushed", end="")
events.lifecycle("third")
os.write(1, b"half a line")
events.lifecycle("fourth")
print("a whole line")
events.lifecycle("fifth")
"""


def _run(program: str, out: IO[bytes], **options: Any) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", program], stdout=out, env=environment, **options)


@pytest.fixture
def appended(tmp_path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """A file that is appended to, as a worker's standard output is under the daemon."""
    path = tmp_path / "stdout.jsonl"
    with path.open("ab") as file:
        yield path, file


def test_events_begin_and_end_lines_whatever_stands_before_them(appended: tuple[Path, IO[bytes]]) -> None:
    """A newline goes before an event once there is another's text."""
    path, file = appended
    _run(_ONE_AFTER_THE_OTHER, file, check=True)
    lines = path.read_text().split("\n")
    kept = [json.loads(line)["event"] if line.startswith("{") else line for line in lines]
    assert kept == [
        *("before", "first", "", "second", "", "third", "half a line", "fourth"),
        *("not flusheda whole line", "", "fifth", ""),
    ]


def test_no_event_is_lost_among_the_prints_of_threads_and_children(appended: tuple[Path, IO[bytes]]) -> None:
    """Each is a line of its own, once, in its thread's order."""
    path, file = appended
    _run(_AMONG_PRINTS, file, check=True)
    seen = [json.loads(line) for line in path.read_text().split("\n") if line.startswith("{")]
    for index in range(4):
        assert [step["step_index"] for step in seen if step["episode"] == index] == list(range(200))


def test_no_line_is_empty_where_nobody_else_prints(appended: tuple[Path, IO[bytes]]) -> None:
    """As in most programs."""
    path, file = appended
    _run(
        "from tandem.telemetry import EventWriter\nevents = EventWriter()\nfor _ in range(3): events.lifecycle('a')",
        file,
    )
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["a"] * 3


def test_full_disk_is_told(tmp_path: Path) -> None:
    """As an OSError, with the system's words."""
    with open("/dev/full", "wb") as full:
        result = _run(
            "from tandem.telemetry import EventWriter\nEventWriter().lifecycle('a')", full, stderr=subprocess.PIPE
        )
    assert result.returncode != 0
    assert b"SystemCallFailed: write of an event of" in result.stderr and b"No space left" in result.stderr


def test_printing_imports_neither_grpc_nor_protobuf(out: io.StringIO) -> None:
    """A worker needs nothing but what tandem needs."""
    program = (
        "import sys, tandem.telemetry\ntandem.telemetry.EventWriter().lifecycle('a')\nsys.exit('grpc' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ).returncode
        == 0
    )


if __name__ == "__main__":
    pytest_main.run(__file__)
