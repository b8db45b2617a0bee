"""`tandemctl` at a real daemon: every command, a fault, a cancel, Ctrl-C, and the daemon killed and started again."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tandem.testing.daemons import Daemon, wait_until
from tools.testing import pytest_main

CTL = Path("slow_lane/ctl/tandemctl").absolute()
TIMEOUT_SECS = 120
DONE, FAILED, WRONG_USAGE, NOT_WELL = 0, 1, 2, 3

# What workers have: `wait_for("name")` returns once the test has made that file in the folder it was submitted from.
PREAMBLE = """
import json, os, sys, time
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.005)
def step(index, **more):
    print(json.dumps({"event_type": "step", "episode": index // 10, "step_index": index % 10,
                      "reward": index / 3, **more}))
def episode(index, **more):
    print(json.dumps({"event_type": "episode", "episode": index, "total_reward": index / 7, "steps": 10,
                      "terminated": True, **more}))
"""


class CtlDaemon(Daemon):
    """A daemon of the test's own, and `tandemctl` for it, which is run in `folder`."""

    def __init__(self, folder: Path, *flags: str) -> None:
        """Starts it."""
        self.folder = folder
        super().__init__(folder / "data", "--gpu_slots=2", *flags)

    @property
    def environment(self) -> dict[str, str]:
        """What tandemctl is run with."""
        return os.environ | {"TANDEM_DAEMON": self.address}

    def ctl(self, *words: str, code: int = DONE, text: str | None = None) -> str:
        """Runs tandemctl; it must end with that code. Gives what it printed, or its complaint."""
        done = subprocess.run(
            [CTL, *words],
            capture_output=True,
            text=True,
            input=text,
            cwd=self.folder,
            env=self.environment,
            timeout=TIMEOUT_SECS,
            check=False,
        )
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout if code in (DONE, NOT_WELL) else done.stderr

    def submit(self, source: str, *flags: str) -> str:
        """Submits a Python program; gives its run_id."""
        return self.ctl("submit", *flags, "--", sys.executable, "-c", PREAMBLE + source).strip()

    def run(self, run_id: str) -> dict[str, object]:
        """What `list --json` says of a run."""
        for run in json.loads(self.ctl("list", "--json"))["runs"]:
            if run["run_id"] == run_id:
                assert isinstance(run, dict)
                return run
        raise AssertionError(f"{run_id} is not listed")

    def await_run(self, run_id: str, holds: Callable[[dict[str, object]], bool]) -> dict[str, object]:
        """Waits until something holds of a run."""
        end = time.monotonic() + TIMEOUT_SECS
        while time.monotonic() < end:
            if holds(run := self.run(run_id)):
                return run
            time.sleep(0.05)
        raise AssertionError(self.run(run_id))

    def await_state(self, run_id: str, state: str) -> dict[str, object]:
        """Waits until a run is in that state."""
        return self.await_run(run_id, lambda run: run["state"] == state)

    @contextlib.contextmanager
    def started(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        """Runs tandemctl beside the test."""
        with subprocess.Popen(
            [CTL, *words], stdout=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def read_until(process: "subprocess.Popen[str]", part: str) -> str:
    """Reads lines until one has `part` in it, which it gives."""
    assert process.stdout is not None
    for line in process.stdout:
        if part in line:
            return line
    raise AssertionError(f"it ended without {part!r}, exit code {process.wait()}")


@contextlib.contextmanager
def running(folder: Path, *flags: str) -> Iterator[CtlDaemon]:
    """A daemon whose runs are ended in the end."""
    daemon = CtlDaemon(folder, *flags)
    try:
        yield daemon
    finally:
        daemon.ctl("cancel", "--all")
        daemon.stop()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[CtlDaemon]:
    """One with no flags."""
    with running(tmp_path) as started:
        yield started


def test_a_run_from_its_submission_to_its_deletion(daemon: CtlDaemon) -> None:
    """Each command says of it what the worker did."""
    run_id = daemon.submit(
        """
for i in range(25): step(i, action=[i, "a,b"])
print("a text line")
print('{"event": "run_started", "payload": {"note": "say \\\\"hi\\\\""}}')
print('{"broken": ')
for i in range(2): episode(i, agent_id="line\\nbreak")
sys.stderr.write("to stderr\\n")
""",
        "--name=first",
    )
    assert re.fullmatch(r"[0-9A-Z]{26}", run_id)
    assert "TERMINATED" in daemon.ctl("watch", run_id)
    run = daemon.run(run_id)
    assert (run["name"], run["steps"], run["episodes"], run["lifecycle"]) == ("first", 25, 2, 1)
    assert (run["malformed"], run["text_lines"], run["last_return"]) == (1, 1, 1 / 7)

    table = daemon.ctl("list")
    assert table.split("\n")[0].startswith("RUN")
    assert re.search(rf"{run_id} +first +TERMINATED .* 25 +2 +0\.142857 +1$", table, re.MULTILINE)
    assert run_id not in daemon.ctl("list", "--json", "--state=executing,faulted")

    printed = daemon.ctl("logs", run_id)
    assert len(printed.splitlines()) == 30
    assert daemon.ctl("logs", run_id, "--stderr") == "to stderr\n"
    offset = printed.index('{"broken"')
    assert daemon.ctl("logs", run_id, "--malformed").startswith(f"1: at byte {offset}, 11 bytes: ")

    steps = list(csv.DictReader(io.StringIO(daemon.ctl("export", run_id))))
    assert [float(row["reward"]) for row in steps] == [i / 3 for i in range(25)]
    assert [json.loads(row["action_json"]) for row in steps] == [[i, "a,b"] for i in range(25)]
    assert [int(row["seq_id"]) for row in steps] == list(range(1, 26))
    episodes = list(csv.DictReader(io.StringIO(daemon.ctl("export", run_id, "--episodes"), newline="")))
    assert [row["agent_id"] for row in episodes] == ["line\nbreak"] * 2
    (event,) = csv.DictReader(io.StringIO(daemon.ctl("export", run_id, "--lifecycle")))
    assert event["event"] == "run_started"
    assert json.loads(event["payload_json"]) == {"note": 'say "hi"'}

    assert daemon.ctl("delete", run_id) == f"{run_id} deleted\n"
    assert run_id in daemon.ctl("watch", run_id, code=FAILED)
    assert not (daemon.folder / "data/runs" / run_id).exists()


def test_export_to_a_file_is_whole_or_nothing(daemon: CtlDaemon) -> None:
    """A file that was there is replaced; where it cannot be, nothing is left behind."""
    run_id = daemon.submit("for i in range(3000): step(i)")
    daemon.ctl("watch", run_id)
    out = daemon.folder / "steps.csv"
    out.write_text("old")
    assert daemon.ctl("export", run_id, "--out=steps.csv") == ""
    assert out.read_text() == daemon.ctl("export", run_id)
    assert len(out.read_text().splitlines()) == 3001
    (daemon.folder / "folder").mkdir()
    assert "--out" in daemon.ctl("export", run_id, "--out=folder", code=FAILED)
    assert "nonesuch" in daemon.ctl("export", "nonesuch", "--out=none.csv", code=FAILED)
    assert "missing/x.csv" in daemon.ctl("export", run_id, "--out=missing/x.csv", code=FAILED)
    assert sorted(path.name for path in daemon.folder.glob("*")) == ["data", "folder", "steps.csv"]


def test_a_fault_is_shown_and_is_the_exit_code(daemon: CtlDaemon) -> None:
    """The reason has what the worker said last."""
    run_id = daemon.submit("step(0); raise ValueError('no such thing')", "--name=bad")
    last = daemon.ctl("watch", run_id, code=NOT_WELL)
    assert "FAULTED" in last
    assert "ValueError: no such thing" in last
    assert "ValueError: no such thing" in daemon.ctl("list", "--state=FAULTED")
    assert "Traceback" in daemon.ctl("logs", run_id, "--stderr")


def test_submit_passes_on_folder_environment_and_limits(daemon: CtlDaemon) -> None:
    """The worker is started where tandemctl was, with what it was told."""
    flags = ("--env", "A=b=c", "--env=D=", "--gpus=1", "--max_duration=90m", "--step_stride=10", "--max_steps=500")
    run_id = daemon.submit(
        """
sys.stderr.write(json.dumps([os.getcwd(), os.environ["A"], os.environ["D"], os.environ["CUDA_VISIBLE_DEVICES"]]))
for i in range(100): step(i)
""",
        *flags,
    )
    daemon.ctl("watch", run_id)
    assert json.loads(daemon.ctl("logs", run_id, "--stderr")) == [str(daemon.folder), "b=c", "", "0"]
    run = daemon.run(run_id)
    assert (run["steps"], run["steps_printed"]) == (10, 100)
    config = json.loads((daemon.folder / "data/runs" / run_id / "config.json").read_text())
    assert config["schedule"] == {"max_duration_seconds": 5400, "max_steps": 500}


def test_submit_takes_a_config(daemon: CtlDaemon) -> None:
    """From a file or from standard input; one that is wrong is refused with all that is wrong with it."""
    config = {
        "run_name": "by config",
        "entry_point": "true",
        "arguments": [],
        "environment": {},
        "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0}},
        "artifacts": {},
    }
    (daemon.folder / "config.json").write_text(json.dumps(config))
    run_id = daemon.ctl("submit", "--config=config.json").strip()
    other = daemon.ctl("submit", "--config", "-", text=json.dumps(config)).strip()
    assert run_id != other
    assert daemon.await_state(run_id, "TERMINATED")["name"] == "by config"
    assert "run_name" in daemon.ctl("submit", "--config=-", text="{}", code=FAILED)
    assert "none.json" in daemon.ctl("submit", "--config=none.json", code=FAILED)


def test_a_config_that_is_no_utf8_is_refused_before_it_is_sent(daemon: CtlDaemon) -> None:
    """With the file and the place, and in tandemctl's words alone."""
    (daemon.folder / "latin1.json").write_bytes('{"run_name": "caf\u00e9"}'.encode("latin1"))
    said = daemon.ctl("submit", "--config=latin1.json", code=FAILED)
    assert said.startswith("tandemctl: ")
    assert "0xe9 at offset 17 of latin1.json" in said
    assert "Next: " in said
    assert "protobuf" not in said


def test_submit_may_go_on_as_watch(daemon: CtlDaemon) -> None:
    """The run_id comes first, alone on its line."""
    words = ("submit", "--watch", "--", sys.executable, "-c", "print('{}'); raise SystemExit(4)")
    first, *lines = daemon.ctl(*words, code=NOT_WELL).splitlines()
    assert daemon.run(first)["malformed"] == 1
    assert f"{first} FAULTED" in lines[-1]
    assert "code 4" in lines[-1]


def test_a_run_that_is_forgotten_while_it_is_watched_is_not_blamed(tmp_path: Path) -> None:
    """Nobody knows how it ended: that is said, and the exit code is not a failed run's."""
    with running(tmp_path, "--keep_runs=0") as daemon:
        program = ("--", sys.executable, "-c", PREAMBLE + "step(0); wait_for('go')")
        words = [CTL, "submit", "--watch", *program]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            words, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=daemon.environment
        ) as watch:
            assert watch.stdout is not None
            run_id = watch.stdout.readline().strip()
            read_until(watch, "EXECUTING")
            # It sees nothing of the second in which the daemon still has the run that has ended.
            watch.send_signal(signal.SIGSTOP)
            (tmp_path / "go").touch()
            wait_until(lambda: run_id not in daemon.ctl("list", "--json"), f"{run_id} to be forgotten")
            watch.send_signal(signal.SIGCONT)
            _, said = watch.communicate(timeout=TIMEOUT_SECS)
        assert watch.returncode == FAILED
        for part in (run_id, daemon.address, "has forgotten it", "--keep_runs", "not known", "EXECUTING", "Next: "):
            assert part in said
    # One that was never there is another matter.
    with running(tmp_path, "--keep_runs=0") as daemon:
        assert "forgotten" not in daemon.ctl("watch", run_id, code=FAILED)


def test_a_program_that_is_not_there_is_refused_at_once(daemon: CtlDaemon) -> None:
    """Before there is a run."""
    assert "'nonesuch'" in daemon.ctl("submit", "--", "nonesuch", code=FAILED)
    assert json.loads(daemon.ctl("list", "--json"))["runs"] == []


def test_cancel_ends_some_or_all(daemon: CtlDaemon) -> None:
    """When it returns, they have ended; what cannot be cancelled does not keep it from the rest."""
    runs = [daemon.submit("step(0); wait_for('never')") for _ in range(3)]
    for run_id in runs:
        daemon.await_state(run_id, "EXECUTING")
    assert "nonesuch" in daemon.ctl("cancel", "nonesuch", runs[0], code=FAILED)
    assert [daemon.run(run_id)["state"] for run_id in runs] == ["TERMINATED", "EXECUTING", "EXECUTING"]
    assert sorted(daemon.ctl("cancel", "--all").split()[::2]) == sorted(runs[1:])
    for run_id in runs:
        assert daemon.run(run_id)["state"] == "TERMINATED"
        assert daemon.run(run_id)["failure_reason"] == "cancelled"
    assert daemon.ctl("cancel", runs[0]) == f"{runs[0]} ended\n"


def test_pause_stops_a_run_and_resume_lets_it_go_on(daemon: CtlDaemon) -> None:
    """What is neither executing nor paused cannot be."""
    run_id = daemon.submit("step(0); wait_for('go')")
    pid = daemon.await_state(run_id, "EXECUTING")["worker_pid"]
    assert daemon.ctl("pause", run_id) == f"{run_id} paused\n"
    assert daemon.run(run_id)["state"] == "PAUSED"
    assert Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "T"
    assert "PAUSED" in daemon.ctl("delete", run_id, code=FAILED)
    assert daemon.ctl("resume", run_id) == f"{run_id} resumed\n"
    (daemon.folder / "go").touch()
    daemon.ctl("watch", run_id)
    assert "TERMINATED" in daemon.ctl("pause", run_id, code=FAILED)


def test_a_run_says_what_it_waits_for(daemon: CtlDaemon) -> None:
    """Two GPUs, of which another run has one."""
    holder = daemon.submit("step(0); wait_for('never')", "--gpus=1")
    daemon.await_state(holder, "EXECUTING")
    waiter = daemon.submit("", "--gpus=2")
    daemon.await_run(waiter, lambda run: run["waiting_for"] == "2 GPUs")
    assert "waits for 2 GPUs" in daemon.ctl("list", "--state=initialized")
    daemon.ctl("cancel", holder)
    daemon.ctl("watch", waiter)


def test_watch_outlives_the_daemon(daemon: CtlDaemon) -> None:
    """It says that it waits, goes on with the next daemon, and ends with the run."""
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
    """Whether or not there is a daemon meanwhile."""
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


def on_a_terminal(daemon: CtlDaemon, *words: str, kind: str = "xterm") -> tuple[int, int]:
    """Runs tandemctl on a terminal of its own: its pid, and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(daemon.folder)
        os.execve(CTL, [str(CTL), *words], daemon.environment | {"TERM": kind})
    return pid, terminal


def read_screen(terminal: int, enough: Callable[[str], bool]) -> str:
    """What comes from a terminal, until that is enough or its end."""
    end = time.monotonic() + TIMEOUT_SECS
    text = ""
    while not enough(text):
        assert time.monotonic() < end, text
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            text += os.read(terminal, 1 << 16).decode()
        except OSError:  # as Linux says that the other side has closed it
            break
    return text


def exit_code(pid: int) -> int:
    """Of a child, once it has ended."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def test_ctrl_c_restores_the_screen(daemon: CtlDaemon) -> None:
    """The table is drawn on another screen, again and again, until Ctrl-C."""
    run_id = daemon.submit("step(0); episode(0); wait_for('never')", "--max_steps=4", "--name=bar")
    daemon.await_state(run_id, "EXECUTING")
    pid, terminal = on_a_terminal(daemon, "watch")
    shown = read_screen(terminal, lambda text: text.count("\x1b[H") >= 2 and run_id in text)
    assert shown.startswith(ENTER)
    assert LEAVE not in shown
    assert "1 run: 1 EXECUTING" in shown
    os.write(terminal, b"\x03")
    assert read_screen(terminal, lambda _: False).endswith(LEAVE)
    assert exit_code(pid) == DONE


def test_a_dumb_terminal_gets_lines(daemon: CtlDaemon) -> None:
    """As where standard output is none: no escape sequence, a line each second."""
    run_id = daemon.submit("step(0); wait_for('go')")
    daemon.await_state(run_id, "EXECUTING")
    pid, terminal = on_a_terminal(daemon, "watch", run_id, kind="dumb")
    shown = read_screen(terminal, lambda text: "EXECUTING" in text)
    (daemon.folder / "go").touch()
    shown += read_screen(terminal, lambda _: False)
    assert "\x1b" not in shown
    assert all(run_id in line for line in shown.splitlines())
    assert "TERMINATED" in shown.splitlines()[-1]
    assert exit_code(pid) == DONE


def test_watch_of_one_run_leaves_its_last_words(daemon: CtlDaemon) -> None:
    """Its page shows progress and episodes; the last stays when the screen is restored."""
    run_id = daemon.submit(
        "step(0); episode(0); wait_for('go'); step(1); episode(1); raise SystemExit(1)", "--max_steps=4"
    )
    pid, terminal = on_a_terminal(daemon, "watch", run_id)
    shown = read_screen(terminal, lambda text: "25 %" in text and "EPISODE" in text)
    assert "[##########------------------------------]" in shown
    daemon.stop()
    read_screen(terminal, lambda text: "waiting for the daemon" in text)
    daemon.start()
    (daemon.folder / "go").touch()
    rest = read_screen(terminal, lambda _: False)
    _, _, last = rest.rpartition(LEAVE)
    assert "FAULTED" in last
    assert re.search(r"\n +1 +0\.142857 +10 +terminated", last)
    assert exit_code(pid) == NOT_WELL


def test_watch_ends_when_nobody_reads_it(daemon: CtlDaemon) -> None:
    """As `tandemctl watch | head -1` does."""
    with daemon.started("watch") as watch:
        assert watch.stdout is not None
        assert "no run goes on" in watch.stdout.readline()
        watch.stdout.close()
        assert watch.wait(TIMEOUT_SECS) == DONE


def test_an_output_that_cannot_be_written_is_said(daemon: CtlDaemon) -> None:
    """Once, by every command, however much was to be written; what was submitted is named."""
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
            shell = ["sh", "-c", f'exec "$@" {how}', "sh", CTL, *words]
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


def test_a_pipe_that_nobody_reads_ends_it_quietly(daemon: CtlDaemon) -> None:
    """By SIGPIPE, as it does other programs; but watch, which just ends."""
    run_id = daemon.submit("for i in range(300): step(i)")
    daemon.ctl("watch", run_id)
    for words in (["list"], ["logs", run_id], ["export", run_id], ["watch"], ["watch", run_id]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [CTL, *words],
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


def test_health(daemon: CtlDaemon) -> None:
    """Who the daemon is, by each way to name it."""
    found = daemon.ctl("health")
    assert f"{daemon.address}, pid {daemon.pid}," in found
    assert "state     ok\n" in found
    socket = f"unix:{daemon.folder}/data/daemon.sock"
    assert f"pid {daemon.pid}," in daemon.ctl("health", "--daemon", socket)
    assert f"pid {daemon.pid}," in daemon.ctl("--daemon=unix:data/daemon.sock", "health")


def test_without_a_daemon_it_says_what_it_tried(tmp_path: Path) -> None:
    """Every command fails, and says how to start a daemon."""
    words = ["list", "health", "watch", "watch x", "cancel --all", "cancel x", "pause x", "delete x", "logs x"]
    for command in [*words, "logs x --malformed", "export x", "submit -- true"]:
        target = f"unix:{tmp_path}/none.sock"
        limit = 5 * TIMEOUT_SECS
        done = subprocess.run(
            [CTL, "--daemon", target, *command.split()], capture_output=True, text=True, timeout=limit, check=False
        )
        assert done.returncode == FAILED, command
        assert f"{target} (by --daemon)" in done.stderr
        assert "tandem-daemon --data_dir" in done.stderr
        assert done.stdout == ""


def test_a_stopped_daemon_is_not_called_none(daemon: CtlDaemon) -> None:
    """Within a call's deadline, and where gRPC itself gives up, by port and by socket: there is no answer."""
    run_id = daemon.submit("step(0); wait_for('never')")
    daemon.await_state(run_id, "EXECUTING")
    addresses = (daemon.address, f"unix:{daemon.folder}/data/daemon.sock")
    commands = [(*words, "--daemon", address) for words in (["list"], ["cancel", run_id]) for address in addresses]
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        asked = [subprocess.Popen([CTL, *words], stderr=subprocess.PIPE, text=True) for words in commands]
        answers = [(process.communicate(timeout=TIMEOUT_SECS)[1], process.returncode) for process in asked]
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    for words, (said, code) in zip(commands, answers, strict=True):
        assert code == FAILED
        assert f"{words[-1]} (by --daemon), found no answer" in said
        assert "Next: look whether that is a tandem-daemon, and not stopped" in said
        assert "found none" not in said


def test_a_wrong_command_line_is_told_apart(tmp_path: Path) -> None:
    """Its exit code is one of its own, and no daemon is needed to find out; nor is one for --help."""
    for words in (["list", "--nonsense"], ["cancel"], [], ["submit", "python"]):
        done = subprocess.run([CTL, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == WRONG_USAGE
        assert "--help" in done.stderr
    for words in (["--help"], ["watch", "--help"]):
        done = subprocess.run([CTL, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == DONE
        assert done.stdout.startswith("Usage: tandemctl")


def test_under_bazel_run_paths_are_the_callers(daemon: CtlDaemon) -> None:
    """`bazel run` starts it among its own files; whoever inherits its variable elsewhere is where he is."""
    inside = daemon.folder / "tandemctl.runfiles" / "tandem"
    inside.mkdir(parents=True)
    for folder, expected in ((inside, daemon.folder), (daemon.folder, daemon.folder), (Path("/"), Path("/"))):
        done = subprocess.run(
            [CTL, "submit", "--", sys.executable, "-c", "import os, sys; sys.stderr.write(os.getcwd())"],
            capture_output=True,
            text=True,
            cwd=folder,
            env=daemon.environment | {"BUILD_WORKING_DIRECTORY": str(daemon.folder)},
            check=True,
        )
        run_id = done.stdout.strip()
        daemon.ctl("watch", run_id)
        assert daemon.ctl("logs", run_id, "--stderr") == str(expected)


if __name__ == "__main__":
    pytest_main.run(__file__)
