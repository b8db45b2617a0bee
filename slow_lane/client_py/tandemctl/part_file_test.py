"""An output file is written completely or not at all, even if a signal ends the process."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemctl.output import Failed
from tandemctl.part_file import replaced

_START = """
import os, signal, sys, time
from tandemctl.part_file import remove_on_signals, replaced
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
remove_on_signals()
"""


@pytest.fixture(name="folder", autouse=True)
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Changes the current folder to a new one."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(os.path.abspath, filter(None, sys.path))))
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def _names() -> list[str]:
    return sorted(os.listdir())


def _export(name: str, text: str = "rows") -> None:
    with replaced(name) as write:
        write(text.encode())


def _ended(program: str, *, ignored: int | None = None) -> int:
    """Runs a program in a new process with the signal handlers installed; returns its exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", _START + program],
        preexec_fn=None if ignored is None else lambda: signal.signal(ignored, signal.SIG_IGN) and None,
    ) as process:
        return process.wait(120)


def test_file_appears_atomically() -> None:
    """The complete file replaces the previous one; an incomplete one leaves the previous file unchanged."""
    Path("out").write_text("before")
    for error in (RuntimeError, ConnectionError):  # both propagate unchanged
        with pytest.raises(error), replaced("out") as write:
            write(b"half")
            raise error
    assert (_names(), Path("out").read_text()) == (["out"], "before")
    with replaced("out") as write:
        write(b"af")
        write(b"ter")
        assert Path("out").read_text() == "before" and len(_names()) == 2
    assert (_names(), Path("out").read_text()) == (["out"], "after")


def test_mode_is_the_umasks_or_that_of_the_previous_file() -> None:
    """For a link, the mode is that of its target."""
    before = os.umask(0o027)
    _export("new")
    os.umask(before)
    assert Path("new").stat().st_mode & 0o7777 == 0o640
    Path("file").touch()
    Path("out").symlink_to("file")
    for mode in (0o600, 0o666):
        Path("file").chmod(mode)
        _export("out")
        assert Path("file").stat().st_mode & 0o7777 == mode


def test_two_writers_at_once_are_both_complete() -> None:
    """The file of the writer that ends last remains."""
    with replaced("out") as write:
        write(b"first")
        _export("out", "the second, longer")
        assert Path("out").read_text() == "the second, longer"
    assert (_names(), Path("out").read_text()) == (["out"], "first")


def test_links_are_followed_to_their_end() -> None:
    """The target of the links need not exist."""
    Path("a/b").mkdir(parents=True)
    Path("out").symlink_to("a/link")
    Path("a/link").symlink_to(Path("a/b/file").absolute())
    for text in ("new", "replaced"):
        _export("out", text)
        assert Path("out").is_symlink() and Path("a/link").is_symlink()
        assert Path("a/b/file").read_text() == text
    assert _names() == ["a", "out"]


def test_paths_other_than_files_are_refused() -> None:
    """The error has the path, and no file is created."""
    Path("folder").mkdir()
    Path("link").symlink_to("folder")
    Path("circle").symlink_to("circle")
    for name in ("folder", "link", "circle", "none/out", "x" * 300):
        with pytest.raises(Failed, match=f"^--out: expected .*{name}$"):
            _export(name)
    assert _names() == ["circle", "folder", "link"]


def test_the_longest_names_are_accepted() -> None:
    """A name of 255 bytes is accepted, also of multi-byte characters."""
    for name in ("x" * 255, "\u20ac" * 85):
        _export(name)
        os.remove(name)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_signal_leaves_no_part(number: signal.Signals) -> None:
    """The signal ends the process; the previous or completed file remains."""
    write = "with replaced('out') as write:\n    write(b'rows')\n"
    send = f"os.kill(os.getpid(), {int(number)}); time.sleep(100)"
    assert _ended(f"{write}    assert len(os.listdir()) == 1\n    {send}") == -number
    assert _names() == []
    assert _ended(f"{write}{send}") == -number
    assert (_names(), Path("out").read_text()) == (["out"], "rows")


def test_many_signals_leave_no_part() -> None:
    """SIGINT arrives at any moment of the write."""
    program = _START + "while True:\n    with replaced('out'):\n        pass\n    os.remove('out')\n"
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", program]) as process:
            while not _names():
                assert process.poll() is None
            while process.poll() is None:
                process.send_signal(signal.SIGINT)
        assert process.returncode == -signal.SIGINT
        assert _names() in ([], ["out"])
        Path("out").unlink(missing_ok=True)


def test_an_ignored_signal_stays_ignored() -> None:
    """A signal ignored at the start, as nohup does, does not end the process."""
    program = "with replaced('out') as write:\n    os.kill(os.getpid(), signal.SIGHUP)\n    write(b'rows')\n"
    assert _ended(program, ignored=signal.SIGHUP) == 0
    assert Path("out").read_text() == "rows"


def test_write_error_is_reported() -> None:
    """A limit of the file size stands for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(Failed, match="File too large: out$"):
            _export("out", "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert _names() == []
