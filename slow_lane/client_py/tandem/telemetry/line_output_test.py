"""`EventWriter` writes each event as its own line to any writable stream, also among other output."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

import tandem
from tandem.telemetry import EventWriter
from tandem.testing.engines import watchdog  # noqa: F401, a fixture


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
    """The constructor refuses the stream, also as sys.stdout, which may be None."""
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
    """Text and binary files, with and without appending, and pipes."""
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
def test_closed_stream_is_refused(make: Callable[[Path], IO[Any]], tmp_path: Path) -> None:
    """The closed stream's descriptor may now be another file's; that file gets no event."""
    stream = make(tmp_path / "file")
    events = EventWriter(stream)
    stream.close()
    with (tmp_path / "other").open("w"), pytest.raises(tandem.InvalidArgument, match="stream: .*closed; nothing was"):
        events.lifecycle("a")
    assert (tmp_path / "other").read_bytes() == b""


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
    """A file opened for appending, as the daemon opens a worker's standard output."""
    path = tmp_path / "stdout.jsonl"
    with path.open("ab") as file:
        yield path, file


def test_each_event_is_one_complete_line(appended: tuple[Path, IO[bytes]]) -> None:
    """The writer prints a newline before an event if other text may precede it."""
    path, file = appended
    _run(_ONE_AFTER_THE_OTHER, file, check=True)
    lines = path.read_text().split("\n")
    kept = [json.loads(line)["event"] if line.startswith("{") else line for line in lines]
    assert kept == [
        *("before", "first", "", "second", "", "third", "half a line", "fourth"),
        *("not flusheda whole line", "", "fifth", ""),
    ]


def test_no_event_is_lost_among_the_prints_of_threads_and_children(appended: tuple[Path, IO[bytes]]) -> None:
    """Each event is a complete line, once, in its thread's order."""
    path, file = appended
    _run(_AMONG_PRINTS, file, check=True)
    seen = [json.loads(line) for line in path.read_text().split("\n") if line.startswith("{")]
    for index in range(4):
        assert [step["step_index"] for step in seen if step["episode"] == index] == list(range(200))


def test_no_line_is_empty_without_other_writers(appended: tuple[Path, IO[bytes]]) -> None:
    """The writer alone prints no additional newline."""
    path, file = appended
    _run(
        "from tandem.telemetry import EventWriter\nevents = EventWriter()\nfor _ in range(3): events.lifecycle('a')",
        file,
    )
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["a"] * 3


def test_full_disk_is_reported(tmp_path: Path) -> None:
    """The error has the system's text for ENOSPC."""
    with open("/dev/full", "wb") as full:
        result = _run(
            "from tandem.telemetry import EventWriter\nEventWriter().lifecycle('a')", full, stderr=subprocess.PIPE
        )
    assert result.returncode != 0
    assert b"SystemCallFailed: write of an event of" in result.stderr and b"No space left" in result.stderr
