"""The daemon's folder: which one it takes, what it makes, and what it leaves when it cannot serve."""

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandem.testing.daemons import DAEMON, DEADLINE_SECS, running_daemon
from tests.slow_lane.daemon_fixture import (
    OTHER,
    Lane,
    lane_fixture,  # noqa: F401, a fixture
    needs_users,
    watchdog,  # noqa: F401, a fixture
)
from tools.testing import pytest_main


def complaint(folder: Path | str, *flags: str, command: tuple[str, ...] = (str(DAEMON),)) -> str:
    """Starts a daemon that is expected to give up, and returns what it wrote to stderr."""
    ended = subprocess.run(
        [*command, f"--data_dir={folder}", "--listen=127.0.0.1:0", *flags],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECS,
        check=False,
    )
    assert ended.returncode == 1, ended
    return ended.stderr


def mode_of(path: Path) -> int:
    """Returns a file's permission bits."""
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o711])
def test_folder_that_is_open_to_others_is_refused_with_the_command_that_closes_it(tmp_path: Path, mode: int) -> None:
    """It stays as it is; after the command the daemon takes it."""
    folder = tmp_path / "it's mine"
    folder.mkdir()
    folder.chmod(mode)
    text = complaint(folder)
    assert f"{mode:04o}" in text and not list(folder.iterdir()), text
    assert mode_of(folder) == mode
    command = text.rpartition("next: ")[2].strip()
    assert shlex.split(command) == ["chmod", "700", str(folder)]
    subprocess.run(command, shell=True, check=True)
    with running_daemon(folder):
        assert (folder / "tandem.db").exists()


@pytest.mark.parametrize(("mode", "files"), [(0o1777, []), (0o770, []), (0o2775, []), (0o755, ["work"])])
def test_folder_that_others_use_is_refused_with_one_in_it(tmp_path: Path, mode: int, files: list[str]) -> None:
    """As /tmp or /, which are not to be closed: a folder of all, or one with files that are no daemon's."""
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in files:
        (folder / name).touch()
    folder.chmod(mode)
    text = complaint(folder)
    assert mode_of(folder) == mode and [path.name for path in folder.iterdir()] == files
    assert text.endswith(f"next: --data_dir={folder}/tandem-data\n"), text
    assert "chmod" not in text, text


def test_daemons_folder_that_was_opened_to_others_is_refused_with_the_command(tmp_path: Path) -> None:
    """It is known by its files."""
    folder = tmp_path / "data"
    with running_daemon(folder):
        pass
    folder.chmod(0o755)
    assert complaint(folder).endswith(f"next: chmod 700 {folder}\n")


@pytest.mark.parametrize("tail", ["", "/", "/.", "//./"])
def test_symbolic_link_is_refused_with_its_target(tmp_path: Path, tail: str) -> None:
    """However the path ends; nothing is changed behind it."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.mkdir(0o700)
    link.symlink_to(target)
    text = complaint(f"{link}{tail}")
    assert "symbolic link" in text and f"--data_dir={target}" in text, text
    assert not list(target.iterdir())
    link.unlink()
    link.symlink_to(tmp_path / "nowhere")
    assert "symbolic link" in complaint(f"{link}{tail}")
    assert not (tmp_path / "nowhere").exists()


def test_link_in_the_middle_of_a_path_is_followed(tmp_path: Path) -> None:
    """As everywhere."""
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with running_daemon(tmp_path / "link" / "data"):
        assert (tmp_path / "target" / "data" / "tandem.db").exists()


def test_file_is_refused_with_the_next_action(tmp_path: Path) -> None:
    """Also where a parent is one."""
    file = tmp_path / "file"
    file.touch()
    text = complaint(file)
    assert "another file" in text and "next: --data_dir=" in text, text
    text = complaint(file / "data")
    assert "Not a directory" in text and "next: --data_dir=" in text, text
    assert file.read_bytes() == b""


@needs_users
def test_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """By root as well, whose files its owner could then replace."""
    folder = tmp_path / "theirs"
    folder.mkdir(0o700)
    os.chown(folder, OTHER, OTHER)
    text = complaint(folder)
    assert f"uid {OTHER}" in text and "next: " in text, text
    assert not list(folder.iterdir())


@pytest.fixture(name="others_daemon")
def others_daemon_fixture(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Returns the command that starts a daemon as a user other than root."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and len(parent.parts) > 2:
            parent.chmod(0o755)
    program = tmp_path / "tandem-daemon"
    shutil.copy(DAEMON, program)
    yield ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", str(program))
    program.unlink()


@needs_users
@pytest.mark.parametrize("mode", [0o500, 0o300, 0o000])
def test_folder_that_cannot_be_written_is_refused_with_the_command(
    tmp_path: Path, others_daemon: tuple[str, ...], mode: int
) -> None:
    """Where it is the user's own; where it is a parent of another, with another place."""
    folder = tmp_path / "own"
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    folder.chmod(mode)
    text = complaint(folder, command=others_daemon)
    assert f"chmod 700 {folder}" in text, text
    text = complaint(tmp_path / "new", command=others_daemon)
    assert "Permission denied" in text and "next: --data_dir=" in text, text


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_made_folder_is_closed_and_its_parents_are_as_usual(tmp_path: Path, umask: int) -> None:
    """By the umask."""
    before = os.umask(umask)
    try:
        with running_daemon(tmp_path / "a" / "b" / "data"):
            assert mode_of(tmp_path / "a" / "b" / "data") == 0o700
            assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o777 & ~umask
    finally:
        os.umask(before)


def test_daemon_that_cannot_serve_removes_its_new_files(tmp_path: Path) -> None:
    """The folder, its files and its parents; not what was there before."""
    (tmp_path / "was-there").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"--listen=127.0.0.1:{other.getsockname()[1]}"
        for flags in (
            (taken,),
            ("--socket=/no/such/x.sock",),
            ("--listen=0.0.0.0:0",),
            ("--allow_users=no-such-user",),
            (f"--socket={'x' * 200}",),
        ):
            complaint(tmp_path / "was-there" / "a" / "data", *flags)
            assert not list((tmp_path / "was-there").iterdir()), flags


def test_daemon_whose_database_fails_removes_its_new_files(tmp_path: Path) -> None:
    """Late, with its sockets at work: here each file may have 4,096 bytes."""
    limited = ("env", "--ignore-signal=XFSZ", "prlimit", "--fsize=4096:4096", str(DAEMON))
    text = complaint(tmp_path / "data", f"--socket={tmp_path}/more.sock", command=limited)
    assert text.startswith("tandem-daemon: "), text
    assert not list(tmp_path.iterdir()), text


def test_daemon_that_cannot_serve_leaves_an_existing_folder(tmp_path: Path) -> None:
    """With its runs."""
    folder = tmp_path / "data"
    with running_daemon(folder):
        pass
    before = sorted(path.name for path in folder.iterdir())
    with socket.create_server(("127.0.0.1", 0)) as other:
        complaint(folder, f"--listen=127.0.0.1:{other.getsockname()[1]}")
    assert sorted(path.name for path in folder.iterdir()) == before


def test_second_daemon_leaves_the_folder_to_the_first(lane: Lane) -> None:
    """And all of its files."""
    run_id = lane.run("steps(1, 1); wait_for('end')")
    lane.wait_for_steps(run_id, 1)
    before = sorted(path.name for path in lane.data_dir.iterdir())
    code, text = lane.start_in_vain("--listen=none")
    assert code == 1 and f"pid {lane.pid}" in text, text
    assert sorted(path.name for path in lane.data_dir.iterdir()) == before
    lane.open("end")
    assert lane.healthy()


if __name__ == "__main__":
    pytest_main.run(__file__)
