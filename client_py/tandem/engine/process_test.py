"""Launching engine processes and closing them."""

import gc
import os
import pickle
import re
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem import errors
from tandem.testing.engines import (  # noqa: F401, the fixtures
    TRIVIAL_ENGINE,
    in_forked_child,
    launch_trivial,
    nothing_left_behind,
    start_python,
    unique_name,
    watchdog,
)


def _regions(name: str) -> list[str]:
    return [path.name for path in Path("/dev/shm").iterdir() if name in path.name]


def _gone(pid: int) -> bool:
    """Returns whether a process has exited; its parent may not have reaped it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def _until_gone(pid: int, name: str) -> None:
    while not _gone(pid) or _regions(name):
        time.sleep(0.001)


def test_closed_engine_leaves_nothing() -> None:
    """After `close` there is no process, no zombie and no region; a second `close` has no effect."""
    engine = launch_trivial()
    assert _regions(engine.name)
    assert engine.poll() is None and "running" in repr(engine)
    engine.close()
    engine.close()
    assert engine.poll() == 0 and "ended with 0" in repr(engine)
    assert not Path(f"/proc/{engine.pid}").exists()
    assert not _regions(engine.name)


def _descriptors() -> dict[str, str]:
    """Returns the target of each file descriptor of this process."""
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        try:
            found[link.name] = os.readlink(link)
        except FileNotFoundError:
            pass  # the descriptor of /proc/self/fd itself
    return found


def test_closed_engine_leaves_no_descriptor_while_it_is_referenced() -> None:
    """The end of the engine's log stays readable after `close`."""
    before = _descriptors()
    engine = tandem.launch_engine("CartPole-v1", name=unique_name())
    assert _descriptors() != before
    engine.close()
    assert _descriptors() == before
    assert "serving" in engine.log_tail() and "stopped" in engine.log_tail()


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\nexec sleep 60\n", "#!/no/such/shell\n"])
def test_an_engine_that_does_not_start_leaves_no_descriptor(tmp_path: Path, script: str) -> None:
    """The descriptors are closed although the error, with its traceback's frames, is still referenced."""
    server = tmp_path / "server"
    server.write_text(script)
    server.chmod(0o755)
    before = _descriptors()
    with pytest.raises(tandem.EngineStartFailed) as caught:
        tandem.launch_engine("x", name=unique_name(), server=server, timeout=0.1)
    assert _descriptors() == before, caught.value


def test_a_launch_without_room_for_a_pipe_leaves_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log file, created before the pipe, is closed as well."""

    def no_pipe() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    before = _descriptors()
    monkeypatch.setattr("tandem.engine.child_linux.os.pipe", no_pipe)
    with pytest.raises(tandem.EngineStartFailed, match="ulimit -n") as caught:
        launch_trivial()
    assert _descriptors() == before, caught.value


def test_closed_environments_leave_no_descriptor_also_after_a_restart() -> None:
    """Ten environments stay referenced after `close`; each restarted its engine once."""
    warm = tandem.make_vec("CartPole-v1", num_envs=2)  # opens descriptors that stay open
    warm.close()
    before = _descriptors()
    kept = []
    for _ in range(10):
        envs: Any = tandem.make_vec("CartPole-v1", num_envs=2, engine=tandem.EngineOptions(restart=True))
        kept.append(envs)
        envs.reset()
        os.kill(envs._engine.pid, signal.SIGKILL)
        assert envs.step(envs.action_space.sample())[4]["engine_restarted"].all()
        envs.close()
        assert _descriptors() == before
    assert len(kept) == 10


def test_engine_leaves_when_the_with_block_raises() -> None:
    """The exception propagates, and the engine exits with code 0."""
    with pytest.raises(ZeroDivisionError):
        with launch_trivial() as engine:
            raise ZeroDivisionError
    assert engine.poll() == 0


def test_collected_engine_exits() -> None:
    """The garbage collector closes an unreferenced engine."""
    engine = launch_trivial()
    pid, name = engine.pid, engine.name
    del engine
    gc.collect()
    assert not Path(f"/proc/{pid}").exists() and not _regions(name)


def test_killed_engine_leaves_no_region() -> None:
    """`close` removes the region that the killed engine left."""
    with launch_trivial() as engine:
        os.kill(engine.pid, signal.SIGKILL)
    assert engine.poll() == -signal.SIGKILL
    assert not _regions(engine.name)


def test_stopped_engine_is_closed_as_well() -> None:
    """`close` continues an engine stopped by SIGSTOP, and the engine exits with code 0."""
    with launch_trivial() as engine:
        os.kill(engine.pid, signal.SIGSTOP)
    assert engine.poll() == 0


def test_engine_of_a_thread_that_blocks_signals_leaves_by_itself() -> None:
    """The engine does not inherit the blocked SIGINT and SIGTERM."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    try:
        with tandem.launch_engine("CartPole-v1", name=unique_name()) as engine:
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert engine.poll() == 0


def test_engine_that_ignores_the_request_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ignores SIGTERM; the start fails after its time-out, and SIGKILL follows."""
    monkeypatch.setattr("tandem.engine.process._GRACE_SECS", 0.1)
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
    server.chmod(0o755)
    with pytest.raises(tandem.EngineStartFailed, match="within 0.3 s; raise start_timeout of EngineOp"):
        tandem.launch_engine("x", name=unique_name(), server=server, timeout=0.3)


def test_engine_runs_in_a_session_of_its_own() -> None:
    """A terminal's Ctrl-C does not reach the engine."""
    with launch_trivial() as engine:
        assert os.getsid(engine.pid) == engine.pid != os.getsid(0)


def test_two_engines_run_at_once() -> None:
    """Each engine gets its own generated name."""
    with (
        tandem.launch_engine("Trivial-v0", num_envs=1, server=TRIVIAL_ENGINE) as first,
        tandem.launch_engine("Trivial-v0", num_envs=3, server=TRIVIAL_ENGINE) as second,
        tandem.SharedMemoryClient(first.name) as training,
        tandem.SharedMemoryClient(second.name) as evaluation,
    ):
        assert first.name != second.name
        assert (training.num_envs, evaluation.num_envs) == (1, 3)
        training.send(np.zeros((1, 6), dtype=np.float32))
        evaluation.step(np.zeros((3, 6), dtype=np.float32))
        training.recv()


def test_seed_reaches_the_engine() -> None:
    """Environment i starts from seed + i."""
    with (
        tandem.launch_engine("Trivial-v0", num_envs=2, seed=8, server=TRIVIAL_ENGINE) as engine,
        tandem.SharedMemoryClient(engine.name) as client,
    ):
        np.testing.assert_array_equal(client.obs[:, 1], [8, 9])


def test_task_options_and_limit_reach_the_engine() -> None:
    """The shipped server gives no reward for a step and truncates after 2 steps."""
    with (
        tandem.launch_engine(
            "CartPole-v1", task_options={"sutton_barto_reward": np.True_}, max_episode_steps=2, name=unique_name()
        ) as engine,
        tandem.SharedMemoryClient(engine.name) as client,
    ):
        actions = np.ones((1, 1), dtype=np.float32)
        ends = [(float(rewards[0]), bool(dones[0])) for _, rewards, dones in (client.step(actions) for _ in range(2))]
        assert ends == [(0, False), (0, True)]
        assert client.truncateds[0] == 1


def test_no_limit_differs_from_the_tasks_default() -> None:
    """Limit 0 is passed to the engine, None is not; Pendulum-v1's default limit is 200 steps."""
    for limit, ends in ((None, 1), (0, 0)):
        with (
            tandem.launch_engine("Pendulum-v1", max_episode_steps=limit, name=unique_name()) as engine,
            tandem.SharedMemoryClient(engine.name) as client,
        ):
            actions = np.zeros((1, 1), dtype=np.float32)
            assert sum(int(client.step(actions)[2][0]) for _ in range(210)) == ends


@pytest.mark.parametrize(
    ("options", "words"),
    [({"task": "NoSuch-v0"}, "NoSuch-v0"), ({"model": "/no/such.xml"}, "/no/such.xml"), ({"flags": ("--x",)}, "x")],
)
def test_engine_that_fails_to_start_is_quoted(options: dict[str, object], words: str) -> None:
    """The exception has the engine's exit code and the end of its log."""
    task = options.pop("task", "Trivial-v0")
    with pytest.raises(tandem.EngineStartFailed, match=words) as caught:
        tandem.launch_engine(task, server=TRIVIAL_ENGINE, **options)  # type: ignore[arg-type]
    assert caught.value.exit_code in (1, 2)
    assert words in caught.value.log_tail


def test_a_refusal_is_reported_where_exit_codes_are_not() -> None:
    """With SIGCHLD ignored the kernel keeps no exit code; the engine's refusal still becomes InvalidArgument."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(tandem.InvalidArgument, match="^task: unknown task"):
            tandem.launch_engine("Ant-v4")
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("kind", sorted({*errors.__all__} - {"TandemError", "EngineFailed"}))
def test_an_error_of_the_table_keeps_its_type(kind: str, tmp_path: Path) -> None:
    """As for environments in Python; the text is the engine's, with keywords."""
    server = tmp_path / "server"
    server.write_text(f"#!/bin/sh\necho 'tandem 10:00:00.000 error: {kind}: --num_envs: no room' >&2\nexit 1\n")
    server.chmod(0o755)
    with pytest.raises(getattr(tandem, kind, getattr(errors, kind)), match="num_envs: no room$") as caught:
        tandem.launch_engine("x", name=unique_name(), server=server)
    assert type(caught.value).__name__ == kind


_OUT_OF_ROOM = """
import resource, tandem
resource.setrlimit(resource.RLIMIT_FSIZE, (2**26, 2**26))
for task, num_envs in (("CartPole-v1", 2_000_000), ("Humanoid-v5", 60_000)):
    try:
        tandem.make_vec(task, num_envs)
    except tandem.OutOfSharedMemory as error:
        print(task, error)
"""


def test_an_engine_without_room_is_out_of_shared_memory() -> None:
    """Also if its environments would take longer than start_timeout: the room is looked at before they are made."""
    output, _ = start_python(_OUT_OF_ROOM).communicate()
    first, second = output.splitlines()
    assert re.match("CartPole-v1 the region needs ", first)
    assert re.match("Humanoid-v5 (the region needs|60000 environments need) ", second)


def test_missing_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the path and the variable TANDEM_ENGINE_SERVER."""
    monkeypatch.setenv("TANDEM_ENGINE_SERVER", "/no/such/server")
    with pytest.raises(tandem.EngineStartFailed, match="/no/such/server.*TANDEM_ENGINE_SERVER"):
        tandem.launch_engine("Trivial-v0")


def test_missing_gateway_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the engine, which starts it."""
    monkeypatch.setenv("TANDEM_GATEWAY", "/no/such/gateway")
    with pytest.raises(tandem.Unsupported, match="grpc: .* found none at /no/such/gateway.*TANDEM_GATEWAY"):
        tandem.launch_engine("CartPole-v1", grpc="127.0.0.1:0")


def test_file_that_is_not_a_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file exists, but is not executable."""
    server = tmp_path / "server"
    server.write_text("no program")
    monkeypatch.setenv("TANDEM_ENGINE_SERVER", str(server))
    with pytest.raises(tandem.EngineStartFailed, match="cannot be run"):
        tandem.launch_engine("Trivial-v0")


def test_program_that_is_not_a_server_is_reported() -> None:
    """The program /bin/true exits without serving a region."""
    with pytest.raises(tandem.EngineStartFailed, match="exit code 0"):
        tandem.launch_engine("Trivial-v0", server="/bin/true")


def test_name_in_use_is_refused() -> None:
    """The error has the pid of the engine with this name; that engine still runs."""
    with launch_trivial() as engine:
        with pytest.raises(tandem.AlreadyAttached, match=str(engine.pid)):
            launch_trivial(name=engine.name)
        assert engine.poll() is None


def test_an_invalid_region_name_is_refused() -> None:
    """The error is InvalidArgument, and no process is started."""
    with pytest.raises(tandem.InvalidArgument, match="a/b"):
        tandem.launch_engine("Trivial-v0", name="a/b")


def test_engine_process_can_not_be_pickled() -> None:
    """The TypeError has the engine's name, which a process can pass on instead."""
    with launch_trivial() as engine, pytest.raises(TypeError, match=engine.name):
        pickle.dumps(engine)


def test_forked_child_leaves_its_parents_engine_alone() -> None:
    """`close` in a forked child does not end the engine, nor does the child's exit."""
    with launch_trivial() as engine:

        def close() -> str:
            engine.close()
            return "closed"

        assert in_forked_child(close) == "closed"
        assert engine.poll() is None


_LAUNCHER = """
import os, sys, time, tandem
engine = tandem.launch_engine("Trivial-v0", name=sys.argv[1], server=sys.argv[2])
if sys.argv[3] == "fork" and os.fork() == 0:
    print(engine.pid, flush=True)
    sys.stdin.read()
    os._exit(0)
if sys.argv[3] != "fork":
    print(engine.pid, flush=True)
if sys.argv[3] != "exit":
    time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["exit", "kill", "terminate", "fork"])
def test_engine_leaves_when_its_launcher_ends(how: str) -> None:
    """The launcher exits, is killed or terminated, or is killed while its forked child lives."""
    name = unique_name()
    launcher = start_python(_LAUNCHER, name, str(TRIVIAL_ENGINE), how)
    assert launcher.stdout is not None
    pid = int(launcher.stdout.readline())
    if how == "terminate":
        launcher.terminate()
    elif how != "exit":
        launcher.kill()
    launcher.wait()
    _until_gone(pid, name)
    launcher.communicate()


_SERVER_THAT_ONLY_WAITS = """#!/bin/bash
echo $$ >{folder}/new
mv {folder}/new {folder}/pid
fd=${{!#}}
read -r _ <&"${{fd#--launcher_fd=}}"
"""


def test_ctrl_c_while_launching_leaves_nothing(tmp_path: Path) -> None:
    """SIGINT during `launch_engine` ends the engine that was starting."""
    server = tmp_path / "server"
    server.write_text(_SERVER_THAT_ONLY_WAITS.format(folder=tmp_path))
    server.chmod(0o755)
    launcher = start_python(_LAUNCHER, unique_name(), str(server), "exit")
    while not (tmp_path / "pid").exists():
        time.sleep(0.001)
    launcher.send_signal(signal.SIGINT)
    _, err = launcher.communicate()
    assert launcher.returncode == -signal.SIGINT and "KeyboardInterrupt" in err
    _until_gone(int((tmp_path / "pid").read_text()), "no region")


@pytest.mark.parametrize("bad", ["a\0b", "a\ud800"])
@pytest.mark.parametrize("argument", ["task", "name", "model", "server", "frames", "flags"])
def test_texts_that_no_program_takes_are_refused(argument: str, bad: str) -> None:
    """The error has the argument's name, and no process is started."""
    arguments: dict[str, Any] = {"task": "CartPole-v1", "name": unique_name(), argument: bad}
    if argument == "flags":
        arguments["flags"] = (bad,)
    with pytest.raises((tandem.InvalidArgument, tandem.EngineStartFailed)) as caught:
        tandem.launch_engine(**arguments)
    assert argument == "server" or argument in str(caught.value)
    assert "\0" not in str(caught.value) and str(caught.value).isprintable()


def test_an_argument_beyond_the_kernels_limit_is_refused_with_advice() -> None:
    """The kernel's limit for one argument is 32 pages, 128 KiB with pages of 4 KiB."""
    limit = 32 * os.sysconf("SC_PAGESIZE")
    with pytest.raises(tandem.InvalidArgument, match=f"task_options: expected at most {limit - 1} bytes.*--config"):
        tandem.launch_engine("CartPole-v1", name=unique_name(), task_options={"x": "y" * limit})


def test_too_many_arguments_are_refused_with_their_size() -> None:
    """The kernel's limit for all arguments is a quarter of the stack limit, at most 6 MiB."""
    with pytest.raises(tandem.EngineStartFailed, match="found [0-9]{7,} bytes of arguments.*ulimit -s.*--config"):
        tandem.launch_engine("CartPole-v1", name=unique_name(), flags=("--config=" + "x" * 100_000,) * 100)


@pytest.mark.parametrize("value", [-1, 2**32, 2**63, 2**64])
def test_counts_that_no_flag_takes_are_refused(value: int) -> None:
    """No process is started; make_vec_arguments_test.py tests the engine's own limits."""
    bounds = {"num_envs": "1 .. 2147483647", "threads": "0 .. 2147483647", "max_episode_steps": "0 .. 4294967295"}
    for argument, bound in bounds.items():
        arguments: dict[str, Any] = {argument: value}
        with pytest.raises(tandem.InvalidArgument, match=f"{argument}: expected an integer in {bound}, found {value}"):
            tandem.launch_engine("CartPole-v1", name=unique_name(), **arguments)


def test_last_output_escapes_control_characters(tmp_path: Path) -> None:
    """The engine's output may contain any bytes."""
    server = tmp_path / "server"
    server.write_bytes("#!/bin/sh\nprintf 'a\\033[31m\u202e\\nb\\377\\n'; exit 1\n".encode())
    server.chmod(0o755)
    with pytest.raises(tandem.EngineStartFailed) as caught:
        tandem.launch_engine("x", name=unique_name(), server=server)
    assert caught.value.log_tail == "a\\x1b[31m\\xe2\\x80\\xae\nb\\xff"
