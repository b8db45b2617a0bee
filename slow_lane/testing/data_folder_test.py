"""The daemon's data folder: accepted and refused folders, created files, and cleanup after a failed start."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slow_lane.testing.daemon_fixture import (
    OTHER,
    Lane,
    lane_fixture,  # noqa: F401, a fixture
    needs_users,
    watchdog,  # noqa: F401, a fixture
)
from tandem.testing.daemons import DAEMON, DEADLINE_SECS, Daemon, running_daemon


def complaint(folder: Path | str, *flags: str, command: tuple[str, ...] = (str(DAEMON),)) -> str:
    """Starts a daemon that is expected to exit with an error, and returns its text on stderr."""
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
def test_own_empty_folder_is_closed_to_other_users(tmp_path: Path, mode: int) -> None:
    """The daemon says so in one line; the next daemon of the folder has nothing to say."""
    folder = tmp_path / "mine"
    folder.mkdir()
    folder.chmod(mode)
    for lines in (1, 0):
        log = tmp_path / f"log{lines}"
        daemon = Daemon(folder, log=log)
        assert mode_of(folder) == 0o700
        assert daemon.stop() == 0
        said = [line for line in log.read_text("utf-8").splitlines() if "--data_dir" in line]
        assert len(said) == lines and all(f"mode {mode:04o}" in line for line in said), said


@pytest.mark.parametrize(("mode", "files"), [(0o1777, []), (0o770, []), (0o2775, []), (0o755, ["work"])])
def test_shared_folder_is_refused_with_a_proposed_subfolder(tmp_path: Path, mode: int, files: list[str]) -> None:
    """A folder such as /tmp, writable for others or with foreign files, must not get mode 700."""
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in files:
        (folder / name).touch()
    folder.chmod(mode)
    text = complaint(folder)
    assert mode_of(folder) == mode and [path.name for path in folder.iterdir()] == files
    assert text.endswith(f"next: --data_dir={folder}/tandem-data\n"), text
    assert "chmod" not in text, text


def test_data_folder_of_a_daemon_is_closed_to_other_users(tmp_path: Path) -> None:
    """The folder's files show that it is a data folder. One that others may write is refused: they may have."""
    folder = tmp_path / "data"
    with running_daemon(folder):
        pass
    folder.chmod(0o755)
    with running_daemon(folder):
        assert mode_of(folder) == 0o700
    folder.chmod(0o777)
    assert "0777" in complaint(folder)
    assert mode_of(folder) == 0o777


@pytest.mark.parametrize("tail", ["", "/", "/.", "//./"])
def test_symbolic_link_is_refused_with_its_target(tmp_path: Path, tail: str) -> None:
    """Trailing slashes and dots do not matter; the daemon creates nothing in the target."""
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
    """Only the last component of the path must not be a link."""
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with running_daemon(tmp_path / "link" / "data"):
        assert (tmp_path / "target" / "data" / "tandem.db").exists()


def test_file_is_refused_with_the_next_action(tmp_path: Path) -> None:
    """The path is a file, or one of its parents is a file."""
    file = tmp_path / "file"
    file.touch()
    text = complaint(file)
    assert "another file" in text and "next: --data_dir=" in text, text
    text = complaint(file / "data")
    assert "Not a directory" in text and "next: --data_dir=" in text, text
    assert file.read_bytes() == b""


@needs_users
def test_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    """Root is refused as well: the folder's owner could replace root's files."""
    folder = tmp_path / "theirs"
    folder.mkdir(0o700)
    os.chown(folder, OTHER, OTHER)
    text = complaint(folder)
    assert f"uid {OTHER}" in text and "next: " in text, text
    assert not list(folder.iterdir())


@pytest.fixture(name="open_path")
def open_path_fixture() -> Iterator[Path]:
    """Makes a folder that every user reaches. Not below tmp_path: each new pytest closes its root to other users."""
    with tempfile.TemporaryDirectory(prefix="tandem-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(name="other_users_daemon")
def others_daemon_fixture(open_path: Path) -> Iterator[tuple[str, ...]]:
    """Returns the command that starts a daemon as a user other than root."""
    program = open_path / "tandem-daemon"
    shutil.copy(DAEMON, program)
    yield ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", str(program))
    program.unlink()


@needs_users
@pytest.mark.parametrize("mode", [0o500, 0o300, 0o000])
def test_folder_that_cannot_be_written_is_refused_with_the_command(
    open_path: Path, other_users_daemon: tuple[str, ...], mode: int
) -> None:
    """For the user's own folder the error proposes chmod; for a folder in another user's, another path."""
    folder = open_path / "own"
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    folder.chmod(mode)
    text = complaint(folder, command=other_users_daemon)
    assert f"chmod 700 {folder}" in text, text
    text = complaint(open_path / "new", command=other_users_daemon)
    assert "Permission denied" in text and "next: --data_dir=" in text, text


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o000])
def test_created_folder_has_mode_700_and_its_parents_follow_the_umask(tmp_path: Path, umask: int) -> None:
    """The parents' mode depends on the umask, the data folder's does not."""
    before = os.umask(umask)
    try:
        with running_daemon(tmp_path / "a" / "b" / "data"):
            assert mode_of(tmp_path / "a" / "b" / "data") == 0o700
            assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o777 & ~umask
    finally:
        os.umask(before)


def test_daemon_that_cannot_serve_removes_its_new_files(tmp_path: Path) -> None:
    """The daemon removes the folder, its files and the created parents, but no folder that existed before."""
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
    """The failure comes late, when the sockets are open: a file may have at most 4,096 bytes."""
    limited = ("env", "--ignore-signal=XFSZ", "prlimit", "--fsize=4096:4096", str(DAEMON))
    text = complaint(tmp_path / "data", f"--socket={tmp_path}/more.sock", command=limited)
    assert text.startswith("tandem-daemon: "), text
    assert not list(tmp_path.iterdir()), text


def test_daemon_that_cannot_serve_leaves_an_existing_folder(tmp_path: Path) -> None:
    """The existing files with their runs are unchanged."""
    folder = tmp_path / "data"
    with running_daemon(folder):
        pass
    before = sorted(path.name for path in folder.iterdir())
    with socket.create_server(("127.0.0.1", 0)) as other:
        complaint(folder, f"--listen=127.0.0.1:{other.getsockname()[1]}")
    assert sorted(path.name for path in folder.iterdir()) == before


def test_second_daemon_leaves_the_folder_to_the_first(lane: Lane) -> None:
    """The second daemon changes no file."""
    run_id = lane.run("steps(1, 1); wait_for('end')")
    lane.wait_for_steps(run_id, 1)
    before = sorted(path.name for path in lane.data_dir.iterdir())
    code, text = lane.start_expecting_exit("--listen=none")
    assert code == 1 and f"pid {lane.pid}" in text, text
    assert sorted(path.name for path in lane.data_dir.iterdir()) == before
    lane.open("end")
    assert lane.healthy()
