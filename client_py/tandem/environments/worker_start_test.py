"""Environments in Python that cannot be made: the errors of `make_vec`; nothing is left."""

import os
import signal
import subprocess
import textwrap
import threading
import time
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
from tools.testing import pytest_main


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
    assert "this process may have 40 open files; raise `ulimit -n`" in output or "Too many open files" in output


def test_too_few_descriptors_of_the_supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the supervisor's reason, although the workers end with it."""
    monkeypatch.syspath_prepend(tmp_path)
    Path(tmp_path, "few_files.py").write_text("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))\n")
    env_fns = [cloudpickle.dumps(ScriptedEnv)] * 20
    with pytest.raises(tandem.EngineStartFailed, match="the supervisor failed: .*Too many open files"):
        WorkerProcesses(env_fns, 20, preload=["few_files"])


class _Broken(ScriptedEnv):
    def __init__(self) -> None:
        raise OSError("no such arena")


class _Other(ScriptedEnv):
    observation_space = spaces.Box(0, 1, (3,), np.float32)


class _Killed(ScriptedEnv):
    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


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
        ([ScriptedEnv, _Killed], tandem.EngineStartFailed, "worker of .*environment 1 ended while it made them"),
        ([ScriptedEnv, _Sleeper], tandem.EngineStartFailed, r"(?s)workers \[1\] still make theirs.*in __init__"),
    ],
    ids=["raises", "other space", "no environment", "killed", "slow"],
)
@pytest.mark.parametrize("num_workers", [1, 2])
def test_environments_that_cannot_be_made(
    functions: list[Any], error: type[Exception], text: str, num_workers: int
) -> None:
    """The error has the reason, and no process is left."""
    if num_workers == 1:
        text = text.replace(r"workers \[1\]", r"workers \[0\]").replace(
            "environment 1 ended", "environments 0 to 1 ended"
        )
    # So long that only the sleeper is late, also on a busy machine.
    start_timeout = 10.0 if _Sleeper in functions else 60.0
    with pytest.raises(error, match=text):
        tandem.make_vec(functions, num_workers=num_workers, engine=tandem.EngineOptions(start_timeout=start_timeout))
    assert _children() == []


def _children() -> list[str]:
    """Returns the command lines of this process's children."""
    found = subprocess.run(["pgrep", "-a", "-P", str(os.getpid())], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if "pgrep" not in line]


def test_function_that_cannot_be_pickled() -> None:
    """The error names it."""
    lock = threading.Lock()
    with pytest.raises(tandem.InvalidArgument, match=r"env_fns\[0\]: expected a function that cloudpickle can pickle"):
        tandem.make_vec(lambda: lock, 1)  # type: ignore[arg-type, return-value]


if __name__ == "__main__":
    pytest_main.run(__file__)
