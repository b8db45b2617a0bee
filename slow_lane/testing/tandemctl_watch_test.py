"""Output of `tandemctl` over time: on terminals, to pipes, to full disks, and while the daemon is killed."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from slow_lane.testing.tandemctl_fixture import (  # noqa: F401, one is a fixture
    CTL,
    DONE,
    FAILED,
    NOT_WELL,
    PREAMBLE,
    TIMEOUT_SECS,
    CtlDaemon,
    daemon_fixture,
    read_until,
    running,
)
from tandem.testing.daemons import wait_until
from tandem.testing.terminals import ENTER, LEAVE, Terminal, on_a_terminal


def test_watch_sees_the_end_of_a_run_that_is_not_kept(tmp_path: Path) -> None:
    """Runs long enough for a client that polls once a second."""
    with running(tmp_path, "--keep_runs=0") as daemon:
        program = ("--", sys.executable, "-c", PREAMBLE + "step(0); sys.exit(3)")
        assert "exited with code 3" in daemon.ctl("submit", "--watch", *program, code=NOT_WELL)


def test_run_deleted_while_watched_is_no_fault(tmp_path: Path) -> None:
    """The text reports an unknown exit status, and the exit code is not that of a failed run."""
    with running(tmp_path, "--keep_runs=0") as daemon:
        program = ("--", sys.executable, "-c", PREAMBLE + "step(0); wait_for('go')")
        words = [*CTL, "submit", "--watch", *program]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            words, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=daemon.environment
        ) as watch:
            assert watch.stdout is not None
            run_id = watch.stdout.readline().strip()
            read_until(watch, "EXECUTING")
            # SIGSTOP: the watch misses the second in which the daemon still has the ended run.
            watch.send_signal(signal.SIGSTOP)
            (tmp_path / "go").touch()
            wait_until(lambda: run_id not in daemon.ctl("list", "--json"), f"{run_id} to be forgotten")
            watch.send_signal(signal.SIGCONT)
            _, said = watch.communicate(timeout=TIMEOUT_SECS)
        assert watch.returncode == FAILED
        for part in (run_id, daemon.address, "has forgotten it", "--keep_runs", "not known", "EXECUTING", "Next: "):
            assert part in said
    # The error for a run that never existed is a different one.
    with running(tmp_path, "--keep_runs=0") as daemon:
        assert "forgotten" not in daemon.ctl("watch", run_id, code=FAILED)


def test_watch_continues_with_the_next_daemon(daemon: CtlDaemon) -> None:
    """The watch shows that it waits, continues with the next daemon, and ends with the run."""
    run_id = daemon.submit("step(0); wait_for('go'); step(1)")
    with daemon.started("watch", run_id) as watch, daemon.started("watch") as watch_all:
        read_until(watch, "EXECUTING")
        read_until(watch_all, "EXECUTING")
        daemon.kill()
        read_until(watch, "waiting for the daemon at " + daemon.address)
        read_until(watch_all, "waiting for the daemon")
        daemon.start()
        read_until(watch, "EXECUTING")
        (daemon.folder / "go").touch()
        assert "2 steps" in read_until(watch, "TERMINATED")
        assert watch.wait(TIMEOUT_SECS) == DONE
        assert run_id in read_until(watch_all, "TERMINATED")
        read_until(watch_all, "no run goes on")
        watch_all.send_signal(signal.SIGINT)
        assert watch_all.wait(TIMEOUT_SECS) == DONE


def test_logs_follow_a_run_to_its_end(daemon: CtlDaemon) -> None:
    """The daemon is killed and started again meanwhile."""
    run_id = daemon.submit("print('{1', flush=True); step(0); wait_for('go'); print('{2', flush=True); step(1)")
    daemon.await_state(run_id, "EXECUTING")
    with (
        daemon.started("logs", run_id, "--follow") as logs,
        daemon.started("logs", run_id, "--malformed", "--follow") as bad,
    ):
        assert read_until(logs, "{1") == "{1\n"
        assert read_until(bad, "{1").startswith("1: at byte 0, 2 bytes: ")
        daemon.kill()
        daemon.start()
        (daemon.folder / "go").touch()
        assert read_until(logs, "{2") == "{2\n"
        assert read_until(bad, "").startswith("2: ")
        assert logs.wait(TIMEOUT_SECS) == DONE
        assert bad.wait(TIMEOUT_SECS) == DONE


def on_its_terminal(daemon: CtlDaemon, *words: str, kind: str = "xterm") -> contextlib.AbstractContextManager[Terminal]:
    """Runs tandemctl on a new terminal, until the end of the block."""
    return on_a_terminal([*CTL, *words], environment=daemon.environment | {"TERM": kind}, folder=daemon.folder)


def test_ctrl_c_restores_the_screen(daemon: CtlDaemon) -> None:
    """The table is drawn repeatedly on the alternate screen until Ctrl-C."""
    run_id = daemon.submit("step(0); episode(0); wait_for('never')", "--max_steps=4", "--name=bar")
    daemon.await_state(run_id, "EXECUTING")
    with on_its_terminal(daemon, "watch") as terminal:
        shown = terminal.read(lambda text: text.count("\x1b[H") >= 2 and run_id in text)
        assert shown.startswith(ENTER)
        assert LEAVE not in shown
        assert "1 run: 1 EXECUTING" in shown
        terminal.type(b"\x03")
        assert terminal.read().endswith(LEAVE)
        assert terminal.process.wait() == DONE


def test_an_export_shows_its_progress_on_a_terminal(daemon: CtlDaemon) -> None:
    """The progress is removed at the end, and the cursor is visible."""
    run_id = daemon.submit("for i in range(3000): step(i)")
    daemon.ctl("watch", run_id)
    with on_its_terminal(daemon, "export", run_id, "--out=steps.csv") as terminal:
        shown = terminal.read()
        assert terminal.process.wait() == DONE
    assert re.search(r"/3000\S* events", shown)
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")
    assert (daemon.folder / "steps.csv").read_text() == daemon.ctl("export", run_id)


def test_a_dumb_terminal_gets_lines(daemon: CtlDaemon) -> None:
    """The output has no escape sequence, and a line each second, as for a pipe."""
    run_id = daemon.submit("step(0); wait_for('go')")
    daemon.await_state(run_id, "EXECUTING")
    with on_its_terminal(daemon, "watch", run_id, kind="dumb") as terminal:
        shown = terminal.read(lambda text: "EXECUTING" in text)
        (daemon.folder / "go").touch()
        shown += terminal.read()
        assert "\x1b" not in shown
        assert all(run_id in line for line in shown.splitlines())
        assert "TERMINATED" in shown.splitlines()[-1]
        assert terminal.process.wait() == DONE


def test_watch_of_one_run_leaves_its_last_page(daemon: CtlDaemon) -> None:
    """The page shows progress and episodes; the last page stays after the screen is restored."""
    run_id = daemon.submit(
        "step(0); episode(0); wait_for('go'); step(1); episode(1); raise SystemExit(1)", "--max_steps=4"
    )
    with on_its_terminal(daemon, "watch", run_id) as terminal:
        shown = terminal.read(lambda text: "25 %" in text and "EPISODE" in text)
        assert "[##########------------------------------]" in shown
        daemon.stop()
        terminal.read(lambda text: "waiting for the daemon" in text)
        daemon.start()
        (daemon.folder / "go").touch()
        rest = terminal.read()
        _, _, last = rest.rpartition(LEAVE)
        assert "FAULTED" in last
        assert re.search(r"\n +1 +0\.142857 +10 +terminated", last)
        assert terminal.process.wait() == NOT_WELL


def test_watch_ends_when_its_pipe_is_closed(daemon: CtlDaemon) -> None:
    """`tandemctl watch | head -1` closes the pipe in this way."""
    with daemon.started("watch") as watch:
        assert watch.stdout is not None
        assert "no run goes on" in watch.stdout.readline()
        watch.stdout.close()
        assert watch.wait(TIMEOUT_SECS) == DONE


def test_failed_write_to_stdout_is_reported(daemon: CtlDaemon) -> None:
    """Each command prints the error once; a submitted run's run_id is in the error."""
    run_id = daemon.submit("for i in range(300): step(i)")
    daemon.ctl("watch", run_id)
    program = ("--", "sleep", "1000")
    named: list[str] = []
    for words in (
        ["list"],
        ["list", "--json"],
        ["watch"],
        ["watch", run_id],
        ["logs", run_id],
        ["export", run_id],
        ["cancel", run_id],
        ["health"],
        ["--help"],
        ["submit", *program],
        ["submit", "--watch", *program],
    ):
        for how, reason in ((">/dev/full", "No space left on device"), (">&-", "closed")):
            shell = ["sh", "-c", f'exec "$@" {how}', "sh", *CTL, *words]
            done = subprocess.run(
                shell, stderr=subprocess.PIPE, text=True, env=daemon.environment, timeout=TIMEOUT_SECS, check=False
            )
            assert done.returncode == FAILED, (words, how, done.stderr)
            assert done.stderr.count("tandemctl: ") == 1, done.stderr
            assert "standard output" in done.stderr
            assert reason in done.stderr
            named += re.findall(r"([0-9A-Z]{26}) was submitted", done.stderr)
    assert [run_id, *named] == [run["run_id"] for run in json.loads(daemon.ctl("list", "--json"))["runs"]]
    assert len(named) == 2


def test_closed_pipe_ends_it_without_a_message(daemon: CtlDaemon) -> None:
    """SIGPIPE ends each command, as other programs; watch exits with code 0."""
    run_id = daemon.submit("for i in range(300): step(i)")
    daemon.ctl("watch", run_id)
    for words in (["list"], ["logs", run_id], ["export", run_id], ["watch"], ["watch", run_id]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*CTL, *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            env=daemon.environment,
            timeout=TIMEOUT_SECS,
            check=False,
        )
        os.close(writing)
        assert done.returncode == (DONE if words[0] == "watch" else -signal.SIGPIPE)
        assert done.stderr == ""
