"""`tools/inspect` on real regions: live and killed ones; exit codes, terminals, and switches of services."""

import contextlib
import json
import os
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.testing.terminals import ENTER, LEAVE, on_a_terminal

INSPECT = Path("viz/inspect/inspect")
SERVER = Path("engine_adapter/conformance/reference/server")
SHM = Path("/dev/shm")
TIMEOUT_SECS = 120
FINE, NO_SUCH_REGION, USAGE, BROKEN, NOT_WRITTEN, NOT_SWITCHED = 0, 1, 2, 3, 4, 5


@pytest.fixture
def engine() -> Iterator[tandem.EngineProcess]:
    """Launches a reference engine."""
    with tandem.launch_engine(server=SERVER, num_envs=3, flags=("--obs_size=8", "--act_size=2")) as launched:
        yield launched


@pytest.fixture
def client(engine: tandem.EngineProcess) -> Iterator[tandem.SharedMemoryClient]:
    """Attaches a client to the engine."""
    with tandem.SharedMemoryClient(engine.name, timeout=TIMEOUT_SECS) as attached:
        yield attached


def inspect(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs the inspector to its end."""
    return subprocess.run([INSPECT, *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECS, check=False)


def inspection_of(name: str, code: int) -> dict[str, Any]:
    """Inspects a region, checks the exit code, and returns the inspection."""
    done = inspect(name, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert isinstance(seen, dict)
    return seen


def settled(name: str, count: int) -> dict[str, Any]:
    """Inspects a region until engine and workers are idle and the times of `count` steps are recorded."""
    deadline = time.monotonic() + TIMEOUT_SECS
    # They wake the client before they update phase and step times.
    while True:
        seen = inspection_of(name, FINE)
        phases = {each["phase"] for each in (seen["engine"], *seen.get("workers", []))}
        if phases == {"idle"} and seen["step_times"]["count"] >= count:
            return seen
        assert time.monotonic() < deadline


def zeros(client: tandem.SharedMemoryClient) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Returns zero actions."""
    return np.zeros((client.num_envs, client.act_size), dtype=np.float32)


def test_a_region_with_a_client_that_has_stepped(
    engine: tandem.EngineProcess, client: tandem.SharedMemoryClient
) -> None:
    """Both sides are alive; exchanges and times are counted; the text agrees with the JSON."""
    for _ in range(200):
        client.step(zeros(client))
    seen = settled(engine.name, 200)
    assert (seen["client"]["life"], seen["client"]["pid"], seen["client"]["phase"]) == ("alive", os.getpid(), "idle")
    assert (seen["frame_seq"], seen["exchange"]) == (200, "idle")
    assert seen["step_times"]["count"] == seen["round_trips"]["count"] == 200
    assert 0 < seen["step_times"]["p50_ns"] <= seen["step_times"]["p99_ns"] <= seen["step_times"]["slowest_below_ns"]
    assert sum(bucket["count"] for bucket in seen["step_times"]["buckets"]) == 200
    text = inspect(engine.name).stdout
    assert text.startswith(f"{engine.name}: OK\n")
    assert "200 done" in text
    assert f"pid {os.getpid()}, idle" in text


def test_services_are_switched_beside_the_client(client: tandem.SharedMemoryClient) -> None:
    """The region shows the new state; the slot is free again."""
    done = inspect(client.name, "--json", "--disable=agent,scene")
    assert done.returncode == FINE, done.stderr
    assert "agent" in json.loads(done.stdout)["commands"]["services_off"]
    with pytest.raises(tandem.Unsupported, match="agent"):
        client.get_schema()
    assert inspect(client.name, "--enable=agent").returncode == FINE
    assert client.get_schema().observation_size == 8
    assert inspection_of(client.name, FINE)["attendants"] == []


def test_a_service_that_the_engine_lacks_is_refused() -> None:
    """CartPole-v1 has no cameras."""
    with tandem.launch_engine("CartPole-v1") as engine:
        refused = inspect(engine.name, "--enable=camera")
        assert refused.returncode == NOT_SWITCHED and "camera" in refused.stderr


def test_switching_services_of_no_engine_is_refused() -> None:
    """Exit codes: no region, and an unknown service."""
    missing = inspect("tandem-test-nothing-here", "--enable=camera")
    assert missing.returncode == NO_SUCH_REGION and missing.stderr.endswith("Next: tools/inspect list\n")
    assert inspect("tandem-test-nothing-here", "--enable=camra").returncode == USAGE


def test_workers_of_environments_in_python_are_listed() -> None:
    """Environments, life, phase and steps of each; an attendant that pauses them."""
    with contextlib.closing(tandem.make_vec("CartPole-v1", 5, num_workers=2, backend="python")) as envs:
        name = envs.client.name
        workers = envs._workers._workers
        envs.reset(seed=0)
        for _ in range(200):
            envs.step(envs.action_space.sample())
        seen = settled(name, 201)
        assert (seen["state"], seen["problems"], seen["num_envs"]) == ("ok", [], 5)
        assert (seen["engine"]["life"], seen["engine"]["phase"]) == ("alive", "idle")
        assert seen["commands"]["services_on"] == ["agent", "scene"]
        assert [(each["life"], each["pid"], each["first_env"], each["num_envs"]) for each in seen["workers"]] == [
            ("alive", workers[0].pid, 0, 3),
            ("alive", workers[1].pid, 3, 2),
        ]
        assert [each["steps"] for each in seen["workers"]] == [603, 402]
        assert {(each["phase"], each["env"]) for each in seen["workers"]} == {("idle", None)}
        assert all(each["done"] for each in seen["workers"])
        assert seen["step_times"]["count"] == seen["round_trips"]["count"] == 201
        with tandem.Attendant(name, label="panel") as panel:
            panel.scene.pause()
            assert [each["label"] for each in inspection_of(name, FINE)["attendants"]] == ["panel"]
            assert "paused by an attendant" in inspect(name).stdout


def test_a_worker_inside_a_call_is_not_idle() -> None:
    """Its phase is "calling", with the environment."""
    with contextlib.closing(tandem.make_vec("CartPole-v1", 4, num_workers=2, backend="python")) as envs:
        envs.reset(seed=0)
        envs._workers.calls.request("sleep", lambda env, env_id: time.sleep(600.0 if env_id == 1 else 0.0))
        deadline = time.monotonic() + TIMEOUT_SECS
        while (worker := inspection_of(envs.client.name, FINE)["workers"][0])["env"] != 1:
            assert time.monotonic() < deadline
        assert worker["phase"] == "calling"
        assert " calling " in (text := inspect(envs.client.name).stdout) and ", in env 1" in text


def test_a_killed_engine(engine: tandem.EngineProcess, client: tandem.SharedMemoryClient) -> None:
    """The inspector reports the dead engine and the last exchange, and exits with code 3."""
    client.step(zeros(client))
    # An engine of another test that starts now would remove the dead region by its spare link.
    (SHM / f".{engine.name}.tandem").unlink()
    os.kill(engine.pid, signal.SIGKILL)
    while engine.poll() is None:
        time.sleep(0.001)
    try:
        seen = inspection_of(engine.name, BROKEN)
        assert (seen["engine"]["life"], seen["client"]["life"], seen["state"]) == ("dead", "alive", "broken")
        assert f"pid {engine.pid}" in seen["problems"][0]
        assert seen["frame_seq"] == 1
        done = inspect(engine.name)
        assert done.returncode == BROKEN
        assert done.stdout.startswith(f"{engine.name}: BROKEN\n")
        listed = {entry["name"]: entry for entry in json.loads(inspect("list", "--json").stdout)["entries"]}
        assert listed[engine.name]["engine"]["life"] == "dead"
    finally:
        (SHM / engine.name).unlink(missing_ok=True)


def test_exit_codes_and_errors() -> None:
    """A missing region is 1 and wrong usage 2, each with the next action; help is 0."""
    done = inspect("no-such-region-of-tandem")
    assert (done.returncode, done.stdout) == (NO_SUCH_REGION, "")
    assert "tools/inspect list" in done.stderr
    for arguments in ((), ("a", "b"), ("a", "--nonsense"), ("no/name",)):
        done = inspect(*arguments)
        assert (done.returncode, done.stdout) == (USAGE, "")
        assert "--help" in done.stderr
    done = inspect("--help")
    assert done.returncode == FINE
    assert "Exit codes" in done.stdout
    seen = inspection_of("no-such-region-of-tandem", NO_SUCH_REGION)
    assert seen["state"] == "unreadable"


def test_an_unwritable_output_is_reported(engine: tandem.EngineProcess) -> None:
    """Each command reports the error; if the pipe's reader is closed, it exits without an error."""
    asked = (
        [engine.name],
        [engine.name, "--json"],
        [engine.name, "--watch"],
        ["list"],
        ["list", "--watch"],
        ["--help"],
    )
    for arguments in asked:
        for how, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
            shell = ["sh", "-c", f'exec "$@" {how}', "sh", str(INSPECT), *arguments]
            done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_SECS, check=False)
            assert (done.returncode, done.stderr.count("tandem: ")) == (NOT_WRITTEN, 1), (arguments, how, done.stderr)
            for part in ("standard output", reason, "Next: "):
                assert part in done.stderr
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen([INSPECT, "list", "--watch"], stdout=writing, stderr=subprocess.PIPE, text=True) as watching:
        os.close(writing)
        assert watching.communicate(timeout=TIMEOUT_SECS)[1] == ""
        assert watching.returncode == FINE


def test_watching_waits_for_the_region_and_ends_on_ctrl_c() -> None:
    """Prints one line of JSON a second, from before the engine's start until SIGINT."""
    name = f"tandem-inspect-{os.getpid()}-{time.monotonic_ns()}"
    with subprocess.Popen([INSPECT, name, "--watch", "--json"], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["state"] == "unreadable"
        with tandem.launch_engine(server=SERVER, name=name, num_envs=1):
            for line in watching.stdout:
                if (seen := json.loads(line))["state"] == "ok" and seen["rates"]:
                    break
        watching.send_signal(signal.SIGINT)
        assert watching.wait(TIMEOUT_SECS) == FINE


def test_watching_restores_the_terminal(engine: tandem.EngineProcess) -> None:
    """The inspector uses the alternate screen, clipped to the window; Ctrl-Z and Ctrl-C restore the first screen."""
    words, environment = (INSPECT.absolute(), engine.name, "--watch"), os.environ | {"TERM": "xterm"}
    with on_a_terminal(words, environment=environment, rows=6, columns=40) as terminal:
        before = termios.tcgetattr(terminal.programs_side)
        seen = terminal.read(lambda text: "more lines" in text)
        assert seen.startswith(ENTER)
        terminal.type(b"\x1a")  # Ctrl-Z
        assert os.WIFSTOPPED(os.waitpid(terminal.process.pid, os.WUNTRACED)[1])
        assert (seen + terminal.read(lambda text: LEAVE in text)).endswith(LEAVE)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.read(lambda text: ENTER in text)
        terminal.type(b"\x03")  # Ctrl-C
        assert terminal.read().endswith(LEAVE)
        assert terminal.process.wait() == FINE
        assert termios.tcgetattr(terminal.programs_side) == before
