"""Four attendants beside a trainer at full speed: each call is answered, or refused by name; no step is lost.

The long form: TANDEM_STEPS=1000000, and the options --test_env=TANDEM_STEPS --test_timeout=3000 --test_output=all
--test_arg=-s of `bazel test`.
"""

import faulthandler
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator

import numpy as np
import pytest

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    start_python,
    unique_name,
    watchdog,
)
from tools.testing import pytest_main

STEPS = int(os.environ.get("TANDEM_STEPS", "20000"))
_TASK = "HalfCheetah-v5"

_ATTENDANT = """
import signal, sys, tandem
name, number = sys.argv[1], int(sys.argv[2])
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(True))
contract = tandem.services.SimulationContract()
answered = refused = 0
with tandem.Attendant(name, label=f"attendant {number}", timeout=100) as attendant:
    print("attached", flush=True)
    with attendant.telemetry.stream() as stream:
        while not over:
            assert attendant.mujoco.joint_state().positions.shape == (9,)
            assert attendant.get_schema().agent_name == "agent_0"
            assert attendant.scene.entity("torso").name == "torso"
            stream.newest()
            answered += 4
            for call in (
                lambda: attendant.mujoco.send_control([0.0] * 6),
                lambda: attendant.agent.set_contract(contract),
            ):
                try:
                    call()
                except tandem.AlreadyAttached as error:
                    assert "pid" in str(error), error
                    refused += 1
                else:
                    raise AssertionError("expected a refusal")
print(f"{answered} answered, {refused} refused")
"""


@pytest.fixture
def client() -> Iterator[tandem.SharedMemoryClient]:
    """Attaches a client to an engine."""
    with (
        tandem.launch_engine(_TASK, name=unique_name()) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=100) as attached,
    ):
        yield attached


def _attach(client: tandem.SharedMemoryClient, number: int) -> "subprocess.Popen[str]":
    process = start_python(_ATTENDANT, client.name, str(number))
    assert process.stdout is not None
    assert process.stdout.readline() == "attached\n", process.communicate()
    return process


def _steps(client: tandem.SharedMemoryClient, steps: int) -> float:
    """Steps, and returns the sum of the rewards."""
    client.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (1, client.act_size)).astype(np.float32)
    total = 0.0
    for _ in range(steps):
        total += float(client.step(actions)[1][0])
    return total


def _end(client: tandem.SharedMemoryClient, attendants: list["subprocess.Popen[str]"]) -> None:
    """Steps until they have ended: each may be waiting for the item of a step."""
    for attendant in attendants:
        attendant.terminate()
    while any(attendant.poll() is None for attendant in attendants):
        _steps(client, 10)


def test_four_attendants_call_beside_a_trainer(client: tandem.SharedMemoryClient) -> None:
    """The run's rewards are those of a run without attendants."""
    if STEPS > 20000:
        faulthandler.cancel_dump_traceback_later()  # the watchdog's
    alone = _steps(client, min(STEPS, 20000))
    attendants = [_attach(client, number) for number in range(4)]
    begin = time.monotonic()
    beside = _steps(client, STEPS)
    seconds = time.monotonic() - begin
    _end(client, attendants)
    for attendant in attendants:
        out, err = attendant.communicate()
        assert attendant.returncode == 0, err
        counts = re.fullmatch(r"(\d+) answered, (\d+) refused\n", out)
        assert counts and int(counts[1]) > 0 and int(counts[2]) > 0, out
        print(out.strip())
    print(f"{STEPS} steps beside four attendants: {STEPS / seconds:.0f} a second")
    if STEPS <= 20000:
        assert beside == alone


def test_attendants_that_are_killed_and_stopped_do_not_disturb(client: tandem.SharedMemoryClient) -> None:
    """At random moments of their calls; a stopped one keeps its slot, a killed one's is free for the next."""
    rng = np.random.default_rng(7)
    alone = _steps(client, 3000)
    stopped = _attach(client, 0)
    for number in range(1, 9):
        killed = _attach(client, number)
        os.kill(stopped.pid, signal.SIGSTOP if number % 2 else signal.SIGCONT)
        time.sleep(rng.uniform(0, 0.05))
        killed.kill()
        killed.communicate()
        assert _steps(client, 3000) == alone
    os.kill(stopped.pid, signal.SIGCONT)
    _end(client, [stopped])
    _, err = stopped.communicate()
    assert stopped.returncode == 0, err


if __name__ == "__main__":
    pytest_main.run(__file__)
