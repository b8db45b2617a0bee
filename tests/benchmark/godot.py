"""Steps of a game of Godot, by Tandem's add-on and by GodotEnv of Godot RL Agents.

Both rows step sdk/godot/examples/plate with one agent, without pictures. In the peer's copy of the game godot_peer.gd
answers the messages of GodotEnv, in place of the library of the add-on. Each turn starts a Godot of its own, so that no
Godot of another row runs.
"""

import contextlib
import functools
import itertools
import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmark.engine_process import busy_processes
from tests.benchmark.rows import Case, Figures, Row, RowUnavailable, Suite, Turn

_ROOT = Path(__file__).parents[2]
_WARM_UP_SECS = 0.5


def _folder(name: str) -> Path:
    """Returns a folder that the harness removes."""
    if not shutil.which("godot3-server"):
        raise RowUnavailable("expected the program godot3-server, found none. Next: apt-get install godot3-server")
    folder = Path(tempfile.gettempdir(), name)
    folder.mkdir()
    return folder


@functools.cache
def _game(name: str) -> Path:
    """Builds the add-on and the game from the SDK's archive."""
    folder = _folder(name)
    (archive,) = _ROOT.glob(f"sdk/tandem-sdk-*-linux-{platform.machine()}.tar.gz")
    for command in (
        ["tar", "-xzf", str(archive), "--strip-components=1"],
        ["cmake", "-S", "godot", "-B", "build", f"-DCMAKE_PREFIX_PATH={folder}"],
        ["cmake", "--build", "build"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"expected that {command[0]} succeeds, found: {done.stdout}{done.stderr}")
    return folder / "build/examples/plate"


@functools.cache
def _game_of_the_peer(name: str) -> Path:
    folder = _folder(name)
    shutil.copytree(_ROOT / "sdk/godot/examples/plate", folder, dirs_exist_ok=True)
    shutil.copytree(_ROOT / "sdk/godot/addons", folder / "addons")
    shutil.copy(Path(__file__).with_name("godot_peer.gd"), folder)
    with (folder / "project.godot").open("a") as settings:
        settings.write('\n[autoload]\n\nPeer="*res://godot_peer.gd"\n')
    return folder


def _stepping(step: Callable[[Any], Any]) -> Turn:
    """Warms a row up, and returns the function that runs a turn."""
    actions = itertools.cycle(np.random.default_rng(0).uniform(-1, 1, (64, 1, 2)).astype(np.float32))

    def turn(seconds: float) -> Figures:
        steps, began = 0, time.perf_counter()
        while (last := time.perf_counter()) < began + seconds:
            step(next(actions))
            steps += 1
        return {"steps/s": steps / (last - began)}

    turn(_WARM_UP_SECS)
    return turn


@contextlib.contextmanager
def _tandem(name: str) -> Iterator[Turn]:
    import tandem  # the peer's environment is without it

    server = _game(name) / "addons/tandem/run"
    with (
        tandem.launch_engine(server=server, name=name, timeout=60) as engine,
        contextlib.closing(tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name, timeout=60))) as envs,
    ):
        envs.reset(seed=0)
        yield _stepping(envs.step)


@contextlib.contextmanager
def _godot_rl(name: str) -> Iterator[Turn]:
    from godot_rl.core.godot_env import GodotEnv

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    game_folder = str(_game_of_the_peer(name))
    command = ["setpriv", "--pdeathsig=KILL", "godot3-server", "--path", game_folder, "--fixed-fps", "60"]
    variables = {**os.environ, "GODOT_PEER_PORT": str(port), "LANG": "en"}
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(stack.enter_context(open(os.devnull, "w"))))  # GodotEnv prints
        game = stack.enter_context(subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL))
        stack.callback(game.kill)
        env = stack.enter_context(contextlib.closing(GodotEnv(port=port)))
        env.reset()
        yield _stepping(lambda action: env.step([action]))


def _cases() -> Iterator[Case]:
    rows = [
        Row("tandem", "Tandem, make_vec", _tandem, ("godot_rl",)),
        Row("godot_rl", "Godot RL Agents, GodotEnv", _godot_rl, (), "godot"),
    ]
    for busy in range(3):
        around = functools.partial(busy_processes, busy * len(os.sched_getaffinity(0)))
        yield Case(f"plate, {busy} busy processes for each core", rows, ("steps/s",), around=around, quick=busy == 0)


SUITES = {
    "godot": Suite(
        "godot",
        "steps of a game of Godot, compared with Godot RL Agents, beside busy processes",
        list(_cases()),
        __name__,
        slow=True,
    )
}
