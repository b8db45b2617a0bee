"""The client and the engine process: Ctrl-C, SIGSTOP, SIGKILL, reconnect, fork and threads at exit."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    EXIT_TALKING,
    HANG,
    TRIVIAL_ENGINE,
    in_forked_child,
    launch_trivial,
    nothing_left_behind,
    run_python,
    start_python,
    unique_name,
    watchdog,
)


@pytest.fixture
def engine() -> Iterator[tandem.EngineProcess]:
    """Launches a trivial engine of two environments."""
    with launch_trivial() as launched:
        yield launched


def _zeros(client: tandem.SharedMemoryClient, first: float = 0) -> NDArray[np.float32]:
    actions = np.zeros((client.num_envs, client.act_size), dtype=np.float32)
    actions[0, 0] = first
    return actions


def _until_state(pid: int, state: str) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != state:
        time.sleep(0.001)


_INTERRUPTED_TRAINER = """
import os, signal, sys, threading
import numpy as np, tandem
client = tandem.SharedMemoryClient(sys.argv[1], timeout=60, wait=sys.argv[2])
actions = np.zeros((2, 6), dtype=np.float32)
client.step(actions)
os.kill(client.engine_pid, signal.SIGSTOP)
client.send(actions)
try:
    print("waiting", flush=True)
    client.recv()
except KeyboardInterrupt:
    print("interrupted", client.pending, flush=True)
try:
    client.step(actions)
except tandem.StepPending:
    print("pending", flush=True)
os.kill(client.engine_pid, signal.SIGCONT)
obs, _, _ = client.recv()
print(int(obs[0, 0]), flush=True)
print(int(client.step(actions)[0][0, 0]), flush=True)
"""


@pytest.mark.parametrize("wait", ["spin", "adaptive", "block"])
def test_ctrl_c_ends_only_the_wait(engine: tandem.EngineProcess, wait: str) -> None:
    """KeyboardInterrupt is raised and the exchange stays pending; a later `recv` returns the results."""
    trainer = start_python(_INTERRUPTED_TRAINER, engine.name, wait)
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == "waiting\n"
    trainer.send_signal(signal.SIGINT)
    out, err = trainer.communicate()
    assert out.splitlines() == ["interrupted True", "pending", "2", "3"], err
    assert engine.poll() is None


_TRAINER_INTERRUPTED_AT_THE_LAST_MOMENT = """
import os, signal, sys
import numpy as np, tandem
client = tandem.SharedMemoryClient(sys.argv[1], timeout=60, wait="block")
actions = np.zeros((2, 6), dtype=np.float32)
client.step(actions)
frame_seq = np.memmap("/dev/shm/" + sys.argv[1], dtype=np.uint64, mode="r", offset=128, shape=(1,))

def interrupt(number, frame):
    os.kill(client.engine_pid, signal.SIGCONT)
    while frame_seq[0] != 2:
        pass
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
os.kill(client.engine_pid, signal.SIGSTOP)
client.send(actions)
try:
    print("waiting", flush=True)
    client.recv()
except KeyboardInterrupt:
    if client.pending:  # it came before the wait
        client.recv()
print(int(client.obs[0, 0]), int(client.step(actions)[0][0, 0]), flush=True)
"""


def test_ctrl_c_during_the_answer_loses_neither_signal_nor_results(engine: tandem.EngineProcess) -> None:
    """The interrupt is raised while the engine answers; the exchange is over, and the next step works."""
    trainer = start_python(_TRAINER_INTERRUPTED_AT_THE_LAST_MOMENT, engine.name)
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == "waiting\n"
    _until_state(trainer.pid, "S")
    trainer.send_signal(signal.SIGINT)
    out, err = trainer.communicate()
    assert out == "2 3\n", err


def test_engine_that_does_not_answer_a_new_client_is_a_time_out(engine: tandem.EngineProcess) -> None:
    """After SIGCONT the client slot is free, and another client attaches."""
    os.kill(engine.pid, signal.SIGSTOP)
    _until_state(engine.pid, "T")
    with pytest.raises(tandem.StepTimeout, match="did not answer a new client"):
        tandem.SharedMemoryClient(engine.name, timeout=0.05)
    os.kill(engine.pid, signal.SIGCONT)
    with tandem.SharedMemoryClient(engine.name) as client:
        client.step(_zeros(client))


def test_ctrl_c_ends_the_wait_for_an_engine() -> None:
    """KeyboardInterrupt ends the constructor's wait for a region that does not exist."""
    trainer = start_python(
        "import sys, tandem\nprint('waiting', flush=True)\ntandem.SharedMemoryClient(sys.argv[1], timeout=100)",
        unique_name(),
    )
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == "waiting\n"
    trainer.send_signal(signal.SIGINT)
    _, err = trainer.communicate()
    assert trainer.returncode == -signal.SIGINT and "KeyboardInterrupt" in err


def test_stopped_engine_is_a_time_out_that_names_its_phase(engine: tandem.EngineProcess) -> None:
    """After SIGCONT `recv` returns the results."""
    with tandem.SharedMemoryClient(engine.name, timeout=5) as client:
        client.step(_zeros(client))
        os.kill(engine.pid, signal.SIGSTOP)
        _until_state(engine.pid, "T")
        client.send(_zeros(client))
        with pytest.raises(tandem.StepTimeout, match=rf"pid {engine.pid}.* (idle|stepping) for .*recv\(\)"):
            client.recv(timeout=0.05)
        with pytest.raises(TimeoutError):
            client.recv(timeout=0)
        os.kill(engine.pid, signal.SIGCONT)
        assert client.recv()[0][0, 0] == 2


def test_killed_engine_is_gone_well_before_the_deadline(engine: tandem.EngineProcess) -> None:
    """The pending `recv` raises PeerGone, and so does every later call until `reconnect` or `close`."""
    with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
        client.send(_zeros(client, HANG))
        os.kill(engine.pid, signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(tandem.PeerGone, match=str(engine.pid)):
            client.recv()
        assert time.monotonic() - start < 30
        for call in (lambda: client.step(_zeros(client)), client.recv, client.reset):
            with pytest.raises(ConnectionError):
                call()


def test_last_output_of_a_launched_engine_is_in_the_message(engine: tandem.EngineProcess) -> None:
    """PeerGone's message has the end of the engine's log, not its beginning."""
    with tandem.SharedMemoryClient(engine.name) as client:
        with pytest.raises(tandem.PeerGone, match="line 99") as caught:
            client.step(_zeros(client, EXIT_TALKING))
        assert "line 12\n" not in str(caught.value)
        assert engine.log_tail().endswith("line 99")


def test_reconnect_finds_the_engine_started_again() -> None:
    """After `reconnect` the client has new arrays; the old arrays stay readable."""
    name = unique_name()
    with launch_trivial(name=name) as first:
        client = tandem.SharedMemoryClient(name)
        old = client.step(_zeros(client))[0]
        os.kill(first.pid, signal.SIGKILL)
        with pytest.raises(tandem.PeerGone):
            client.step(_zeros(client))
    with pytest.raises(tandem.NotReady):
        client.reconnect(timeout=0.05)
    with launch_trivial(name=name) as second:
        client.reconnect()
        assert client.engine_pid == second.pid
        assert client.obs is not old and old[0, 0] == 1
        assert client.step(_zeros(client))[0] is client.obs
        assert client.obs[0, 0] == 1
        assert client.obs.ctypes.data == client.region_address + client.offsets["obs"]
        client.close()


def test_forked_child_may_only_read(engine: tandem.EngineProcess) -> None:
    """In a forked child each call raises ForkedChild; reading arrays works, and the parent's client still steps."""
    with tandem.SharedMemoryClient(engine.name) as client:
        client.step(_zeros(client))
        for call in (lambda: client.step(_zeros(client)), client.recv, client.reset, client.reconnect, client.close):
            assert in_forked_child(lambda call=call: str(call())).startswith("ForkedChild")  # type: ignore[misc]

        def leave_with_block() -> str:
            with client:
                return f"{client.obs[0, 0]:g}"

        assert in_forked_child(leave_with_block) == "1"
        assert client.step(_zeros(client))[0][0, 0] == 2


_MULTIPROCESSING_TRAINER = """
import multiprocessing, sys
import numpy as np, tandem

def train(name, results):
    with tandem.SharedMemoryClient(name) as client:
        results.send(float(client.step(np.full((2, 6), 4, dtype=np.float32))[1][0]))

if __name__ == "__main__":
    with tandem.launch_engine("Trivial-v0", num_envs=2, server=sys.argv[1]) as engine:
        context = multiprocessing.get_context(sys.argv[2])
        ours, theirs = context.Pipe()
        with tandem.SharedMemoryClient(sys.argv[3]) as client:  # of another engine, while children are made
            if sys.argv[2] != "fork":
                try:
                    context.Process(target=train, args=(client, theirs)).start()
                except TypeError:
                    print("refused")
            child = context.Process(target=train, args=(engine.name, theirs))
            child.start()
            print(ours.recv())
            child.join()
            print(child.exitcode)
            client.step(client.actions)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_children_attach_by_name(engine: tandem.EngineProcess, tmp_path: Path, method: str) -> None:
    """A child attaches with the engine's name; where arguments are pickled, a client as an argument is refused."""
    program = tmp_path / "trainer.py"
    program.write_text(_MULTIPROCESSING_TRAINER)
    said = run_python(program, str(TRIVIAL_ENGINE), method, engine.name).splitlines()
    assert said == (["24.0", "0"] if method == "fork" else ["refused", "24.0", "0"])


def test_new_interpreter_attaches_by_name(engine: tandem.EngineProcess) -> None:
    """The client without a name argument takes the name from LUCKY_SHM_NAME."""
    program = """
import os, sys, tandem
os.environ["LUCKY_SHM_NAME"] = sys.argv[1]
with tandem.SharedMemoryClient() as client:
    print(client.name, client.num_envs)
"""
    assert run_python(program, engine.name).split() == [engine.name, "2"]


_DAEMON_THREAD_AT_EXIT = """
import sys, threading, time, tandem
client = tandem.SharedMemoryClient(sys.argv[1])
def forever():
    while True:
        client.step(client.actions)
threading.Thread(target=forever, daemon=True).start()
while client.stats().exchanges < 100:
    time.sleep(0.001)
"""


def test_daemon_thread_in_a_wait_does_not_spoil_the_interpreters_exit(engine: tandem.EngineProcess) -> None:
    """Python unwinds a daemon thread that acquires the GIL during shutdown; the binding must let it."""
    for _ in range(5):
        run_python(_DAEMON_THREAD_AT_EXIT, engine.name)


_RAISING_DAEMON_THREADS_AT_EXIT = """
import sys, threading, time, numpy as np, tandem
client = tandem.SharedMemoryClient(sys.argv[1])
raised = []
def forever(actions):
    while True:
        try:
            client.step(actions)
        except tandem.TandemError:
            raised.append(1)
            del raised[:-1000]
for actions in (None, np.full((2, 6), np.nan, np.float32), np.zeros((2, 5))):
    threading.Thread(target=forever, args=(actions,), daemon=True).start()
while len(raised) < 1000:
    time.sleep(0.001)
"""


def test_daemon_threads_that_raise_do_not_spoil_the_interpreters_exit(engine: tandem.EngineProcess) -> None:
    """The exit code is 0, also when Python unwinds a daemon thread during the construction of its error."""
    for _ in range(12):
        run_python(_RAISING_DAEMON_THREADS_AT_EXIT, engine.name)


_FORKED_DURING_A_STEP = """
import os, signal, sys, threading, time, numpy as np, tandem
client = tandem.SharedMemoryClient(sys.argv[1], timeout=60)
os.kill(client.engine_pid, signal.SIGSTOP)
stepping = threading.Thread(target=lambda: client.step(client.actions))
stepping.start()
while not client.pending:  # then the thread waits without the GIL
    time.sleep(0.001)
child = os.fork()
if child == 0:
    found = []
    for call in (lambda: client.step(client.actions), client.recv, client.close):
        try:
            call()
        except tandem.TandemError as error:
            found.append(type(error).__name__)
    print(*found, flush=True)
    os._exit(0)
os.waitpid(child, 0)
os.kill(client.engine_pid, signal.SIGCONT)
stepping.join()
"""


def test_a_child_forked_during_a_step_is_refused(engine: tandem.EngineProcess) -> None:
    """The child's calls raise ForkedChild, not ConcurrentUse: the stepping thread does not exist in the child."""
    assert run_python(_FORKED_DURING_A_STEP, engine.name).split() == ["ForkedChild"] * 3


def test_engine_is_not_polled_by_a_forked_child(engine: tandem.EngineProcess) -> None:
    """`poll` raises ForkedChild: the kernel reports the engine's exit to its parent only."""
    assert "ForkedChild" in in_forked_child(lambda: str(engine.poll()))
    assert "of a parent process" in in_forked_child(lambda: repr(engine))


_SUBINTERPRETERS = """
import sys
import threading
import _xxsubinterpreters as interpreters

def try_import():
    interpreter = interpreters.create()
    try:
        interpreters.run_string(interpreter, "import tandem._native")
        sys.stdout.write("imported\\n")
    except interpreters.RunFailedError as error:
        sys.stdout.write(f"{error}\\n")  # at once: two threads write
    interpreters.destroy(interpreter)

try_import()
threads = [threading.Thread(target=try_import) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="_xxsubinterpreters became _interpreters")
def test_a_subinterpreter_is_refused_by_an_import_error() -> None:
    """One subinterpreter, then two at once on threads: each import fails, in Tandem's code or in NumPy's."""
    first, *others = run_python(_SUBINTERPRETERS).splitlines()
    assert "ImportError" in first and "main interpreter" in first, first
    assert len(others) == 2
    assert all("ImportError" in other for other in others), others
