"""`tandemctl` with a real daemon: each command, a failed run, a cancel, and a missing daemon."""

import contextlib
import csv
import io
import json
import os
import re
import signal
import sqlite3
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
    WRONG_USAGE,
    CtlDaemon,
    daemon_fixture,
)
from tandem.testing.daemons import await_stopped


def test_a_run_from_its_submission_to_its_deletion(daemon: CtlDaemon) -> None:
    """The output of each command agrees with the worker's events."""
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
    assert re.search(rf"{run_id} +first +TERMINATED .* 25 +2 +0\.0714286 of 2 +1$", table, re.MULTILINE)
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


# Prints an episode and a scalar of a learning rate and a seed; the best is lr=0.1, seed=2.
_TRAIN = """
lr, seed = float(sys.argv[1]), int(sys.argv[2])
for i in range(3): episode(i, total_reward=100 * lr + seed)
print(json.dumps({"event_type": "scalars", "step": 1, "scalars": {"loss": seed - lr}}))
"""


def _runs_of_sweep(daemon: CtlDaemon, printed: str) -> list[dict[str, object]]:
    run_ids = printed.split()
    for run_id in run_ids:
        daemon.await_state(run_id, "TERMINATED")
    return [daemon.run(run_id) for run_id in run_ids]


def test_a_grid_is_submitted_compared_and_the_best_run_found(daemon: CtlDaemon) -> None:
    """By mean return, by a scalar, as JSON, and in the list."""
    words = ["submit", "--name=grid", "--grid=lr=0.1,0.01", "--grid=seed=0..2", "--"]
    runs = _runs_of_sweep(daemon, daemon.ctl(*words, sys.executable, "-c", PREAMBLE + _TRAIN, "{lr}", "{seed}"))
    assert [run["parameters"] for run in runs] == [
        {"lr": lr, "seed": seed} for lr in ("0.1", "0.01") for seed in ("0", "1", "2")
    ]
    assert runs[0]["name"] == "grid lr=0.1 seed=0" and len({run["sweep"] for run in runs}) == 1
    sweep = f"--sweep={runs[0]['sweep']}"
    other = daemon.submit("episode(0, total_reward=1000)", "--name=other")
    daemon.await_state(other, "TERMINATED")
    assert daemon.ctl("best", sweep).strip() == runs[2]["run_id"]
    assert daemon.ctl("best").strip() == other
    assert daemon.ctl("best", sweep, "--by=loss", "--lowest").strip() == runs[0]["run_id"]
    compared = json.loads(daemon.ctl("compare", sweep, "--json"))
    assert [run["value"] for run in compared] == [12.0, 11.0, 10.0, 3.0, 2.0, 1.0]
    assert {run["episodes_counted"] for run in compared} == {3}
    lines = daemon.ctl("compare", sweep).splitlines()
    assert re.match(r"RUN +NAME +STATE +lr +seed +RETURN ", lines[0])
    assert str(runs[2]["run_id"]) in lines[1] and "12 \u00b1 0 of 3" in lines[1]
    listed = daemon.ctl("list", "--sort=return").splitlines()
    assert other in listed[1] and str(runs[2]["run_id"]) in listed[2]


_STREAMS = ("--episodes", "--scalars", "--lifecycle", "--steps")


def test_a_restarted_run_is_compared_by_its_last_attempt(daemon: CtlDaemon) -> None:
    """Neither the returns nor the numbers of the attempt before count. An export has all, and their attempts."""
    source = """
first = os.environ["TANDEM_ATTEMPT"] == "1"
for i in range(3): episode(i, total_reward=100 if first else 1)
print(json.dumps({"event_type": "scalars", "step": 1, "scalars": {"before" if first else "loss": 5}}))
if not first: print(json.dumps({"event": "ready"}))
sys.exit(first)
"""
    run_id = daemon.submit(source, "--restart=1")
    assert daemon.await_state(run_id, "TERMINATED")["mean_return"] == 1
    by = {name: json.loads(daemon.ctl("compare", f"--by={name}", "--json"))[0] for name in ("return", "loss", "before")}
    assert [by[name]["value"] for name in by] == [1, 5, None] and by["return"]["episodes_counted"] == 3
    rows = {stream: csv.DictReader(io.StringIO(daemon.ctl("export", run_id, stream))) for stream in _STREAMS}
    attempts = {stream: [row["attempt"] for row in rows[stream]] for stream in _STREAMS}
    assert attempts == {"--episodes": [*"111222"], "--scalars": [*"12"], "--lifecycle": ["2"], "--steps": []}


def test_a_sweep_file_is_submitted_with_its_options(daemon: CtlDaemon) -> None:
    """A sample for each combination; an unknown sweep is an error."""
    (daemon.folder / "sweep.toml").write_text(
        f"""
program = {json.dumps([sys.executable, "-c", PREAMBLE + _TRAIN, "{lr}", "{seed}"])}
priority = 2
seed = 1
[parameters]
seed = [1, 2]
lr = {{uniform = [0, 1]}}
""",
        "utf-8",
    )
    runs = _runs_of_sweep(daemon, daemon.ctl("sweep", "sweep.toml"))
    assert [run["parameters"]["seed"] for run in runs] == ["1", "2"]  # type: ignore[index]
    assert [run["priority"] for run in runs] == [2, 2]
    assert "'none'" in daemon.ctl("compare", "--sweep=none", code=FAILED)


_CONFIG: dict[str, object] = {
    "run_name": "by config",
    "entry_point": "true",
    "arguments": [],
    "environment": {},
    "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 0}},
    "artifacts": {},
}


def test_control_characters_of_runs_are_escaped(daemon: CtlDaemon) -> None:
    """A run's name and an argument in an error are escaped; letters of all scripts stay."""
    run_id = daemon.submit("pass", "--name=\u202egpj.exe \u00fcbung")
    daemon.ctl("watch", run_id)
    table = daemon.ctl("list")
    assert "\\xe2\\x80\\xaegpj.exe \u00fcbung" in table and "\u202e" not in table
    assert json.loads(daemon.ctl("list", "--json"))["runs"][0]["name"] == "\u202egpj.exe \u00fcbung"
    refused = daemon.ctl("cancel", "\x1b[31m", code=FAILED)
    assert "\\x1b[31m" in refused and "\x1b" not in refused
    config = _CONFIG | {"metadata": {"tandem": {"parameters": {"\x1b[2J[bold]>": 1, ">": "[bold]"}}}}
    daemon.ctl("submit", "--config=-", text=json.dumps(config))
    compared = daemon.ctl("compare", "--by=\x1b[31m/Loss")
    assert "\x1b" not in compared
    for shown in ("\\x1b[2J[bold]>", " > ", " [bold] ", " \\x1b[31m/Loss "):
        assert shown in compared


def test_export_to_a_file_is_atomic(daemon: CtlDaemon) -> None:
    """An existing file is replaced; after a failure no partial file is left."""
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
    """The failure reason has the end of the worker's stderr."""
    run_id = daemon.submit("step(0); raise ValueError('no such thing')", "--name=bad")
    last = daemon.ctl("watch", run_id, code=NOT_WELL)
    assert "FAULTED" in last
    assert "ValueError: no such thing" in last
    assert "ValueError: no such thing" in daemon.ctl("list", "--state=FAULTED")
    assert "Traceback" in daemon.ctl("logs", run_id, "--stderr")


def test_submit_sends_folder_environment_and_limits(daemon: CtlDaemon) -> None:
    """The worker starts in tandemctl's folder, with the given variables and limits."""
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
    """The file or standard input is read; an invalid configuration is refused with the invalid field's name."""
    (daemon.folder / "config.json").write_text(json.dumps(_CONFIG))
    run_id = daemon.ctl("submit", "--config=config.json").strip()
    other = daemon.ctl("submit", "--config", "-", text=json.dumps(_CONFIG)).strip()
    assert run_id != other
    assert daemon.await_state(run_id, "TERMINATED")["name"] == "by config"
    assert "run_name" in daemon.ctl("submit", "--config=-", text="{}", code=FAILED)
    assert "none.json" in daemon.ctl("submit", "--config=none.json", code=FAILED)


def test_a_config_in_invalid_utf8_is_refused_before_sending(daemon: CtlDaemon) -> None:
    """The error has the file and the offset, in tandemctl's own text."""
    (daemon.folder / "latin1.json").write_bytes('{"run_name": "caf\u00e9"}'.encode("latin1"))
    message = daemon.ctl("submit", "--config=latin1.json", code=FAILED)
    assert message.startswith("tandemctl: ")
    assert "0xe9 at offset 17 of latin1.json" in message
    assert "Next: " in message
    assert "protobuf" not in message


def test_submit_continues_as_watch(daemon: CtlDaemon) -> None:
    """The first line is the run_id alone."""
    words = ("submit", "--watch", "--", sys.executable, "-c", "print('{}'); raise SystemExit(4)")
    first, *lines = daemon.ctl(*words, code=NOT_WELL).splitlines()
    assert daemon.run(first)["malformed"] == 1
    assert f"{first} FAULTED" in lines[-1]
    assert "code 4" in lines[-1]


def test_missing_program_is_refused_at_once(daemon: CtlDaemon) -> None:
    """No run is created."""
    assert "'nonesuch'" in daemon.ctl("submit", "--", "nonesuch", code=FAILED)
    assert json.loads(daemon.ctl("list", "--json"))["runs"] == []


def test_cancel_ends_some_or_all(daemon: CtlDaemon) -> None:
    """The command returns when the runs have ended; after a failure it continues with the other runs."""
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


def test_cancel_that_cannot_be_stored_prints_the_daemons_text(daemon: CtlDaemon) -> None:
    """The daemon answers, so the text does not propose to start a daemon."""
    holder = daemon.submit("step(0); wait_for('go')", "--gpus=2")
    daemon.await_state(holder, "EXECUTING")
    waiter = daemon.submit("", "--gpus=1")
    # The test's lock stands for a disk on which no write completes.
    with contextlib.closing(sqlite3.connect(daemon.table, isolation_level=None)) as table:
        table.execute("BEGIN IMMEDIATE")
        message = daemon.ctl("cancel", waiter, code=FAILED)
        table.execute("ROLLBACK")
    assert message.startswith(f"tandemctl: {waiter}: cancelled before its start, but the cancel could not be stored")
    assert "cancel it again" in message
    assert "found none" not in message
    assert "Next: start one" not in message
    assert daemon.ctl("cancel", waiter) == f"{waiter} ended\n"


def test_pause_stops_a_run_and_resume_continues_it(daemon: CtlDaemon) -> None:
    """A run that is neither executing nor paused is refused."""
    run_id = daemon.submit("step(0); wait_for('go')")
    pid = daemon.await_state(run_id, "EXECUTING")["worker_pid"]
    assert daemon.ctl("pause", run_id) == f"{run_id} paused\n"
    assert daemon.run(run_id)["state"] == "PAUSED"
    assert isinstance(pid, int)
    await_stopped(pid)
    assert "PAUSED" in daemon.ctl("delete", run_id, code=FAILED)
    assert daemon.ctl("resume", run_id) == f"{run_id} resumed\n"
    (daemon.folder / "go").touch()
    daemon.ctl("watch", run_id)
    assert "TERMINATED" in daemon.ctl("pause", run_id, code=FAILED)


def test_waiting_run_names_the_reason(daemon: CtlDaemon) -> None:
    """The run requests two GPUs, and another run has one of them."""
    holder = daemon.submit("step(0); wait_for('never')", "--gpus=1")
    daemon.await_state(holder, "EXECUTING")
    waiter = daemon.submit("", "--gpus=2")
    daemon.await_run(waiter, lambda run: run["waiting_for"] == "2 GPUs")
    assert "waits for 2 GPUs" in daemon.ctl("list", "--state=initialized")
    daemon.ctl("cancel", holder)
    daemon.ctl("watch", waiter)


def test_health_shows_the_daemons_address_and_pid(daemon: CtlDaemon) -> None:
    """The daemon is named by variable, by socket with --daemon, and by a relative socket path."""
    found = daemon.ctl("health")
    assert f"{daemon.address}, pid {daemon.pid}," in found
    assert "state     ok\n" in found
    socket = f"unix:{daemon.folder}/data/daemon.sock"
    assert f"pid {daemon.pid}," in daemon.ctl("health", "--daemon", socket)
    assert f"pid {daemon.pid}," in daemon.ctl("--daemon=unix:data/daemon.sock", "health")


def test_missing_daemon_is_reported_with_its_address(tmp_path: Path) -> None:
    """Every command fails, with the command that starts a daemon."""
    words = ["list", "health", "watch", "watch x", "cancel --all", "cancel x", "pause x", "delete x", "logs x"]
    for command in [*words, "logs x --malformed", "export x", "submit -- true"]:
        target = f"unix:{tmp_path}/none.sock"
        limit = 5 * TIMEOUT_SECS
        done = subprocess.run(
            [*CTL, "--daemon", target, *command.split()], capture_output=True, text=True, timeout=limit, check=False
        )
        assert done.returncode == FAILED, command
        assert f"{target} (by --daemon)" in done.stderr
        assert "tandem-daemon --data_dir" in done.stderr
        assert done.stdout == ""


def test_stopped_daemon_is_reported_as_one_without_answer(daemon: CtlDaemon) -> None:
    """The error is "no answer", not "found none", by port and by socket."""
    run_id = daemon.submit("step(0); wait_for('never')")
    daemon.await_state(run_id, "EXECUTING")
    addresses = (daemon.address, f"unix:{daemon.folder}/data/daemon.sock")
    commands = [(*words, "--daemon", address) for words in (["list"], ["cancel", run_id]) for address in addresses]
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        asked = [subprocess.Popen([*CTL, *words], stderr=subprocess.PIPE, text=True) for words in commands]
        answers = [(process.communicate(timeout=TIMEOUT_SECS)[1], process.returncode) for process in asked]
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    for words, (message, code) in zip(commands, answers, strict=True):
        assert code == FAILED
        assert f"{words[-1]} (by --daemon), found no answer" in message
        assert "Next: look whether that is a tandem-daemon, and not stopped" in message
        assert "found none" not in message


def test_wrong_command_line_has_its_own_exit_code(tmp_path: Path) -> None:
    """The exit code is WRONG_USAGE, and neither it nor --help needs a daemon."""
    for words in (["list", "--nonsense"], ["cancel"], [], ["submit", "python"], ["watch", "\udcff"]):
        done = subprocess.run([*CTL, *words], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == WRONG_USAGE
        assert done.stderr.startswith("tandemctl: expected ")
        assert "--help" in done.stderr
    for words in ([*CTL, "--help"], [*CTL, "watch", "--help"], ["slow_lane/client_py/tandemctl/tandemctl", "--help"]):
        words[0] = str(Path(words[0]).absolute())
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == DONE
        assert done.stdout.startswith("Usage: tandemctl")


def test_under_bazel_run_paths_are_relative_to_the_callers_folder(daemon: CtlDaemon) -> None:
    """`bazel run` starts it in its runfiles; elsewhere BUILD_WORKING_DIRECTORY has no effect."""
    inside = daemon.folder / "tandemctl.runfiles" / "tandem"
    inside.mkdir(parents=True)
    for folder, expected in ((inside, daemon.folder), (daemon.folder, daemon.folder), (Path("/"), Path("/"))):
        done = subprocess.run(
            [*CTL, "submit", "--", sys.executable, "-c", "import os, sys; sys.stderr.write(os.getcwd())"],
            capture_output=True,
            text=True,
            cwd=folder,
            env=daemon.environment | {"BUILD_WORKING_DIRECTORY": str(daemon.folder)},
            check=True,
        )
        run_id = done.stdout.strip()
        daemon.ctl("watch", run_id)
        assert daemon.ctl("logs", run_id, "--stderr") == str(expected)
