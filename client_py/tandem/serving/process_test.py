"""Engines in Python in processes of their own: signals and exceptions."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem.testing import python_engines
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    start_python,
    unique_name,
    watchdog,
)
from tandem.testing.python_engines import FAIL, HANG

_PROGRAM = """
import sys
import tandem
from tandem.testing.python_engines import Counter
tandem.serve(Counter(), name=sys.argv[1])
print("after serve")
"""


@pytest.fixture
def name() -> str:
    """A region's name."""
    return unique_name()


@pytest.fixture
def engine(name: str) -> Iterator["subprocess.Popen[str]"]:
    """Starts a program that calls `serve`."""
    process = start_python(_PROGRAM, name)
    yield process
    process.terminate()
    process.communicate(timeout=30)


def _attach(name: str) -> tandem.SharedMemoryClient:
    return tandem.SharedMemoryClient(name, timeout=30, attach_timeout=60)


def _actions(first: float = 0) -> NDArray[np.float32]:
    actions = np.zeros((3, 3), np.float32)
    actions[0, 0] = first
    return actions


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_serve(engine: "subprocess.Popen[str]", name: str, number: signal.Signals) -> None:
    """The region is removed, and the program goes on."""
    with _attach(name) as client:
        client.step(_actions())
        engine.send_signal(number)
        out, err = engine.communicate(timeout=30)
        assert (engine.returncode, out) == (0, "after serve\n"), err
        assert "Traceback" not in err
        with pytest.raises(tandem.PeerGone):
            client.step(_actions())
    assert not Path("/dev/shm", name).exists()


def test_a_second_ctrl_c_ends_a_step_that_hangs(engine: "subprocess.Popen[str]", name: str) -> None:
    """It raises KeyboardInterrupt, a second after the first."""
    with _attach(name) as client:
        client.send(_actions(HANG))
        with pytest.raises(tandem.StepTimeout) as caught:
            client.recv(0.5)
        while "idle for" in str(caught.value):  # the engine had no core yet
            with pytest.raises(tandem.StepTimeout) as caught:
                client.recv(0.5)
        engine.send_signal(signal.SIGINT)
        time.sleep(3)  # the rule's second, and the time until the first is handled
        engine.send_signal(signal.SIGINT)
        _, err = engine.communicate(timeout=30)
        assert engine.returncode == -signal.SIGINT or "KeyboardInterrupt" in err
        with pytest.raises((tandem.PeerGone, tandem.EngineFailed)):
            client.recv()


def test_make_vec_starts_a_program_without_a_task() -> None:
    """It has one task, its own."""
    engine = tandem.EngineOptions(server=Path(python_engines.__file__))
    with closing(tandem.make_vec(num_envs=2, engine=engine)) as envs:
        assert envs.reset()[0].shape == (2, 2)
        assert envs.step(np.ones((2, 3), np.float32))[1].tolist() == [3, 3]


def test_an_exception_in_a_step_is_in_the_log(engine: "subprocess.Popen[str]", name: str) -> None:
    """The client gets its last line, and continues."""
    with _attach(name) as client:
        with pytest.raises(tandem.EngineFailed, match="^.*ValueError: no step for you$"):
            client.step(_actions(FAIL))
        client.step(_actions())
    engine.send_signal(signal.SIGTERM)
    _, err = engine.communicate(timeout=30)
    assert 'raise ValueError("no step for you")' in err
    assert "step failed: ValueError: no step for you" in err


def test_a_daemon_thread_ends_with_the_program(name: str) -> None:
    """The interpreter's exit stops `serve` first, which removes the region."""
    program = (
        "import sys, threading, tandem\n"
        "from tandem.testing.python_engines import Counter\n"
        "threading.Thread(target=tandem.serve, args=[Counter()], kwargs={'name': sys.argv[1]}, daemon=True).start()\n"
        "with tandem.SharedMemoryClient(sys.argv[1], timeout=60) as client:\n"
        "    client.step(client.actions)\n"
    )
    process = start_python(program, name)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert not Path("/dev/shm", name).exists()


def test_a_programs_own_handler_stays(name: str) -> None:
    """What it raises ends `serve`."""
    program = (
        "import signal, sys, tandem\n"
        "from tandem.testing.python_engines import Counter\n"
        "def stop(number, frame):\n"
        "    raise RuntimeError('mine')\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "try:\n"
        "    tandem.serve(Counter(), name=sys.argv[1])\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    process = start_python(program, name)
    with _attach(name):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "mine\n"), err


def test_an_engine_without_standard_streams_may_print(name: str) -> None:
    """What it prints is dropped."""
    program = (
        "import os, sys, tandem\n"
        "from tandem.testing.python_engines import Counter\n"
        "class Printing(Counter):\n"
        "    def __init__(self, num_envs=3):\n"
        "        super().__init__(num_envs)\n"
        "        print('made', file=sys.stderr)\n"
        "        sys.stdout.write('made')\n"
        "if sys.stdout is not None:\n"
        "    for stream in range(3):\n"
        "        os.close(stream)\n"
        "    os.execv(sys.executable, sys.orig_argv)\n"
        "tandem.serve_program(Printing, ['--name', sys.argv[1], '--num_envs=3'])\n"
    )
    process = start_python(program, name)
    with _attach(name) as client:
        assert client.step(_actions())[0][:, 0].tolist() == [1, 1, 1]
    process.terminate()
    assert process.wait(timeout=60) == 0
