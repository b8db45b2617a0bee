"""Environments in Python that cannot be made: the errors of `make_vec`; nothing is left."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from gymnasium import spaces

import tandem
from tandem.testing.engines import start_python, watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import ScriptedEnv
from tandem.workers.processes import WorkerProcesses


def test_too_few_descriptors() -> None:
    """The error names the limit."""
    program = """
        import resource, tandem
        from tandem.testing.sample_envs import ScriptedEnv
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        try:
            tandem.make_vec(ScriptedEnv, 20, num_workers=20)
        except tandem.TandemError as error:
            print(error, flush=True)
    """
    trainer = start_python(textwrap.dedent(program))
    output, _ = trainer.communicate(timeout=60)
    assert re.search(r"expected that .* may have \d+ open files, found a limit of 40; raise `ulimit -n`", output), (
        output
    )


def test_the_soft_limit_of_descriptors_is_raised() -> None:
    """To what the hard limit allows, and only as far as needed."""
    program = """
        import resource, tandem
        from tandem.testing.sample_envs import ScriptedEnv
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        tandem.make_vec(ScriptedEnv, 4).close()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 64
        envs = tandem.make_vec(ScriptedEnv, 30, num_workers=30)
        envs.reset(seed=0)
        envs.call("calls")
        envs.close()
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 64 + 4 * 30, flush=True)
    """
    output, errors = start_python(textwrap.dedent(program)).communicate(timeout=100)
    assert output.strip() == "True", errors


def test_too_few_descriptors_of_the_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the supervisor's reason, although the workers end with it."""
    monkeypatch.syspath_prepend(tmp_path)
    Path(tmp_path, "few_files.py").write_text("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))\n")
    env_fns = [cloudpickle.dumps(ScriptedEnv)] * 20
    with pytest.raises(tandem.EngineStartFailed, match="the supervisor failed: .*Too many open files"):
        WorkerProcesses(env_fns, 20, tandem.WorkerOptions(), preload=["few_files"])


class _Broken(ScriptedEnv):
    def __init__(self) -> None:
        raise OSError("no such arena")


class _Other(ScriptedEnv):
    observation_space = spaces.Box(0, 1, (3,), np.float32)


class _Killed(ScriptedEnv):
    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class _Crashed(ScriptedEnv):
    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class _Exited(ScriptedEnv):
    def __init__(self) -> None:
        os._exit(7)


class _Forked(ScriptedEnv):
    def __init__(self) -> None:
        super().__init__()
        os.fork()


class _Sleeper(ScriptedEnv):
    def __init__(self) -> None:
        time.sleep(1000)


@pytest.mark.parametrize(
    ("functions", "error", "text"),
    [
        ([ScriptedEnv, _Broken], tandem.EngineStartFailed, "OSError: no such arena\nwhen environment 1 was made"),
        ([ScriptedEnv, _Other], tandem.EngineStartFailed, "equal spaces, found observation_space .*of environment 1"),
        (
            [ScriptedEnv, int],
            tandem.EngineStartFailed,
            r"env_fns\[1\]: expected .* gymnasium.Env, found one that returns a int",
        ),
        (
            [ScriptedEnv, _Killed],
            tandem.EngineStartFailed,
            "environment 1. was killed by SIGKILL while it .*; the kernel kills processes when memory runs out",
        ),
        (
            [ScriptedEnv, _Crashed],
            tandem.EngineStartFailed,
            "environment 1. was killed by SIGSEGV while it made them; .* python -X faulthandler",
        ),
        (
            [ScriptedEnv, _Exited],
            tandem.EngineStartFailed,
            "environment 1. ended with exit code 7 while it made them; ",
        ),
        ([ScriptedEnv, _Sleeper], tandem.EngineStartFailed, r"(?s)workers \[1\] still make theirs.*in __init__"),
    ],
    ids=["raises", "other space", "no environment", "killed", "crashed", "exited", "slow"],
)
@pytest.mark.parametrize("num_workers", [1, 2])
def test_environments_that_cannot_be_made(
    functions: list[Any], error: type[Exception], text: str, num_workers: int
) -> None:
    """The error has the reason, and no process is left."""
    if num_workers == 1:
        text = text.replace(r"workers \[1\]", r"workers \[0\]").replace("environment 1. ", "environments 0 to 1. ")
    # So long that only the sleeper is late, also on a busy machine.
    start_timeout = 10.0 if _Sleeper in functions else 60.0
    with pytest.raises(error, match=text):
        tandem.make_vec(functions, num_workers=num_workers, engine=tandem.WorkerOptions(start_timeout=start_timeout))
    assert _children() == []


@pytest.mark.parametrize("restarts", [False, True])
def test_a_constructor_that_forks_and_goes_on_in_both_processes(restarts: bool) -> None:
    """The environment's process serves; its child ends."""
    with closing(tandem.make_vec(_Forked, 4, num_workers=2, engine=tandem.WorkerOptions(restart=restarts))) as envs:
        envs.reset(seed=0)
        for _ in range(3):
            envs.step([0] * 4)
        pids = {worker.pid for worker in envs._workers._workers}
        assert set(envs.call("process")) == pids


def _run(program: str, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that makes environments; returns what it has written."""
    begin = "import os, signal, sys, tandem\nfrom tandem.testing.sample_envs import ScriptedEnv\n"
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, *flags, "-c", begin + program],
        env={**os.environ, "PYTHONPATH": path, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


_STEPS = """
envs = tandem.make_vec(ScriptedEnv, 2, num_workers=2)
envs.reset(seed=0)
envs.step([0, 0])
envs.close()
print("stepped")
os.environ.pop("PYTHONINSPECT", None)
"""

_RESTARTS = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for restarts in (True, False):
    envs = tandem.make_vec(ScriptedEnv, 2, num_workers=2, engine=tandem.WorkerOptions(restart=restarts))
    envs.reset(seed=0)
    os.kill(envs._workers._workers[1].pid, signal.SIGKILL)
    try:
        print(envs.step([0, 0])[4]["worker_restarted"])
    except tandem.PeerGone as error:
        print(error)
    envs.close()
"""


@pytest.mark.parametrize(
    "first",
    ["", "os.environ['PYTHONINSPECT'] = '1'", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"],
    ids=["as usual", "becomes interactive", "ignores SIGCHLD"],
)
def test_a_start_and_a_close_write_nothing(first: str) -> None:
    """Python's development mode shows resources that are not closed."""
    done = _run(first + _STEPS, "-X", "dev")
    assert (done.stdout, done.stderr) == ("stepped\n", "")


def test_a_trainer_that_ignores_sigchld_learns_how_a_worker_ended() -> None:
    """It is started again, if so asked."""
    done = _run(_RESTARTS)
    assert re.search(r"^\[False  True\]\n.*worker 1 \(.*was killed by SIGKILL", done.stdout), done
    assert done.stderr == ""


def test_workers_block_no_signals() -> None:
    """Although the trainer's thread blocks them: the stacks of time-outs come by a signal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        envs = tandem.make_vec(ScriptedEnv, 1)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with closing(envs):
        status = Path(f"/proc/{envs._workers._workers[0].pid}/status").read_text()
    assert re.search(r"SigBlk:\s+0+\n", status)


def test_a_supervisor_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the end of what its Python writes."""
    with monkeypatch.context() as changed:
        changed.setenv("PYTHONHASHSEED", "bogus")
        with pytest.raises(tandem.EngineStartFailed, match="ended with exit code 1; .*\n.*PYTHONHASHSEED must be"):
            tandem.make_vec(ScriptedEnv, 2)
    (tmp_path / "random.py").write_text("raise ImportError('another random')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(tandem.EngineStartFailed, match="(?s)ended with exit code 1; .*another random"):
        tandem.make_vec(ScriptedEnv, 2)


def test_what_a_python_writes_before_the_supervisor_works_goes_to_stderr() -> None:
    """It is not lost in the supervisor's log."""
    done = _run(_STEPS, "-v")
    assert "import 'tandem.workers.supervisor'" in done.stderr


def test_paths_that_imports_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    """None and bytes in sys.path."""
    monkeypatch.setattr(sys, "path", [None, b"bytes", *sys.path])
    tandem.make_vec(ScriptedEnv, 2).close()


@pytest.mark.parametrize("executable", [None, ""])
def test_an_unknown_python_program_is_named(executable: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program that embeds Python; an engine in Python needs it, too."""
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(tandem.EngineStartFailed, match=f"sys.executable: expected .*, found {executable!r}"):
        tandem.make_vec(ScriptedEnv, 2)
    with pytest.raises(tandem.EngineStartFailed, match=f"sys.executable: expected .*, found {executable!r}"):
        tandem.launch_engine(server=__file__)


def _children() -> list[str]:
    """Returns the command lines of this process's children."""
    found = subprocess.run(["pgrep", "-a", "-P", str(os.getpid())], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if "pgrep" not in line]


def test_function_that_cannot_be_pickled() -> None:
    """The error names it."""
    lock = threading.Lock()
    with pytest.raises(tandem.InvalidArgument, match=r"env_fns\[0\]: expected a function that cloudpickle can pickle"):
        tandem.make_vec(lambda: lock, 1)  # type: ignore[arg-type, return-value]
