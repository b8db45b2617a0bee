"""The ways of stepping MuJoCo environments that `mujoco_rates` compares: opened once for a cell, run in turns."""

import contextlib
import gc
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tandem
from tests.benchmark.interpreters import python_of
from tests.benchmark.json_program import Program, talking_to, timeout_of

# The models are this program's data, of which the loop alone may have none.
LOOP = (
    str(Path(__file__).with_name("mujoco_loop")),
    f"--assets={Path(__file__).parents[3] / 'pip/gymnasium_mujoco_assets'}",
)
_PEERS = Path(__file__).with_name("mujoco_peers.py")
_BATCHES = 64  # of actions, used in turn
_TIMEOUT_SECS = 60.0
_BOOKS_SECS = 30.0  # for the engine to do its books of the last exchange, after which it answered

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Task:
    """A task whose environments are stepped.

    Attributes:
      name: Gymnasium's.
      act_size: Values of an action.
      bound: Their magnitude, at most.
      choices: Of a discrete action, which has one value; 0: it is none.
    """

    name: str
    act_size: int
    bound: float
    choices: int = 0


CART_POLE = Task("CartPole-v1", 1, 0.0, choices=2)
TASKS = (Task("HalfCheetah-v5", 6, 1.0), Task("Ant-v5", 8, 1.0), Task("Humanoid-v5", 17, 0.4))


@dataclass(frozen=True)
class Cell:
    """What all rows are measured with.

    Attributes:
      task: The task.
      envs: Environments.
      threads: Threads that step them.
    """

    task: Task
    envs: int
    threads: int

    def __str__(self) -> str:
        """Says it as progress does."""
        return f"{self.task.name}, {self.envs} environments, {self.threads} threads"

    def actions(self) -> Floats:
        """Draws what every row is told: float32[batches, envs, act_size], uniform, always the same."""
        random, shape = np.random.default_rng(0), (_BATCHES, self.envs, self.task.act_size)
        if self.task.choices:
            return random.integers(self.task.choices, size=shape).astype(np.float32)
        return random.uniform(-self.task.bound, self.task.bound, shape).astype(np.float32)

    def request(self, key: str, actions: Path) -> str:
        """Says to mujoco_peers.py what to open; the file has the actions."""
        about = {"task": self.task.name, "envs": self.envs, "threads": self.threads, "size": self.task.act_size}
        about["discrete"] = bool(self.task.choices)
        return json.dumps({"open": key, "actions": str(actions), **about})


@contextlib.contextmanager
def peers_program() -> Iterator[Program]:
    """Runs mujoco_peers.py by the peers' interpreter; it has ended afterwards."""
    with talking_to([python_of("peers"), "-I", str(_PEERS)]) as program:
        yield program


@dataclass(frozen=True)
class Turn:
    """What a turn of a row took.

    Attributes:
      steps: Of environments.
      secs: All of it.
      transport: Share of the round trips that the engine did not step in; None: not known.
    """

    steps: int
    secs: float
    transport: float | None = None

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.secs


Run = Callable[[float], Turn]  # seconds -> a turn


def measures(key: str, cell: Cell) -> bool:
    """Tells whether a row makes sense with so many environments and threads."""
    if key in ("tandem_halves", "envpool_async") and cell.envs < 2:
        return False
    if key == "tandem_halves":
        return cell.threads % 2 == 0  # each of the two engines has half of them
    if key == "gymnasium_sync":  # has one thread, and 512 are 6 s to make
        return cell.threads == 1 and cell.envs <= 64
    if key == "gymnasium_async":  # has a process for each environment
        return cell.threads > 1 and cell.envs <= 8
    return True


class Rows:
    """Opens rows. Peers' programs are started when first needed, and live as long as this is open."""

    def __init__(self, prefix: str, folder: Path) -> None:
        """Takes what regions' names begin with, and a folder for files of actions."""
        self._prefix, self._folder = prefix, folder
        self._programs: dict[str, Program] = {}
        self._open = contextlib.ExitStack()

    def __enter__(self) -> "Rows":
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the programs."""
        self._open.close()

    @contextlib.contextmanager
    def opened(self, key: str, cell: Cell) -> Iterator[Run]:
        """Opens a row: makes its environments and steps none.

        Args:
          key: The row's.
          cell: What it is measured with.

        Yields:
          What runs a turn. Between two the row costs no CPU time, and its environments stay as they are.
        """
        if key in ("tandem", "tandem_spin"):
            wait = "spin" if key == "tandem_spin" else "adaptive"
            row = _tandem(cell, cell.actions(), f"{self._prefix}-{key}", wait)
        elif key == "tandem_make_vec":
            row = _tandem_make_vec(cell, cell.actions(), f"{self._prefix}-{key}")
        elif key == "tandem_halves":
            row = _tandem_halves(cell, cell.actions(), f"{self._prefix}-{key}")
        else:
            row = self._loop(cell) if key == "loop" else self._peer(key, cell)
        with row as run:
            yield run

    def _actions(self, cell: Cell) -> Path:
        """Writes a cell's actions to a file, once: whoever was given it before may still be reading."""
        path = self._folder / f"actions-{cell.task.name}-{cell.envs}"
        if not path.exists():
            cell.actions().tofile(path)
        return path

    @contextlib.contextmanager
    def _loop(self, cell: Cell) -> Iterator[Run]:
        command = [
            *LOOP,
            f"--task={cell.task.name}",
            f"--envs={cell.envs}",
            f"--threads={cell.threads}",
            f"--actions={self._actions(cell)}",
        ]
        with talking_to(command) as loop:

            def run(seconds: float) -> Turn:
                found = loop.ask(str(seconds), timeout_secs=timeout_of(seconds))
                return Turn(found["steps"], found["secs"])

            yield run

    @contextlib.contextmanager
    def _peer(self, key: str, cell: Cell) -> Iterator[Run]:
        # Of their own, that no process with EnvPool's threads is forked by Gymnasium.
        family = key.split("_", 1)[0]
        if family not in self._programs:
            self._programs[family] = self._open.enter_context(peers_program())
        program = self._programs[family]
        program.ask(cell.request(key, self._actions(cell)))

        def run(seconds: float) -> Turn:
            request = json.dumps({"step": key, "seconds": seconds})
            return Turn(**program.ask(request, timeout_secs=timeout_of(seconds)))

        yield run
        program.ask(json.dumps({"close": key}))


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _client(task: Task, envs: int, threads: int, region: str, wait: str) -> Iterator[tandem.SharedMemoryClient]:
    # The engine waits by its default in any case: one that spins would do so through the other rows' turns.
    launched = tandem.launch_engine(task.name, num_envs=envs, threads=threads, name=region, timeout=_TIMEOUT_SECS)
    with launched as engine:
        # As by Gymnasium and EnvPool: who ended is reset by its next step, which simulates nothing.
        mode = tandem.AutoresetMode.NEXT_STEP
        with tandem.SharedMemoryClient(engine.name, timeout=_TIMEOUT_SECS, wait=wait, autoreset_mode=mode) as client:
            client.reset(seed=0)
            yield client


@dataclass(frozen=True)
class _Books:
    """Nanoseconds of all exchanges so far.

    Attributes:
      round_trips: From actions sent to results received.
      engine_steps: The engine's part.
    """

    round_trips: int
    engine_steps: int

    @staticmethod
    def of(client: tandem.SharedMemoryClient) -> "_Books":
        # The engine does its books when the client runs already: the last exchange may be missing for a while.
        until = time.monotonic() + _BOOKS_SECS
        while (stats := client._native.stats()).engine_steps.count != stats.exchanges:
            if time.monotonic() > until:
                raise RuntimeError(
                    f"expected the engine's times of {stats.exchanges} exchanges within {_BOOKS_SECS:.0f} s, found "
                    f"{stats.engine_steps.count}. Next: see whether the engine still runs, and measure this row alone: "
                    "tools/benchmark mujoco --rows=tandem"
                )
            time.sleep(0)
        stats = client._native.stats()  # its sum is written after its count
        return _Books(stats.round_trips.total_ns, stats.engine_steps.total_ns)

    def transport_since(self, earlier: "_Books") -> float:
        """Tells the share of the round trips since then that was not the engine's."""
        round_trips = self.round_trips - earlier.round_trips
        # Each client reads its clock just after it has sent, when the engine may have begun: never less than nothing.
        return max(0.0, 1 - (self.engine_steps - earlier.engine_steps) / round_trips)


@contextlib.contextmanager
def _tandem(cell: Cell, actions: Floats, region: str, wait: str) -> Iterator[Run]:
    with _client(cell.task, cell.envs, cell.threads, region, wait) as client, _uncollected():
        yield _turns(cell, client, client.step, list(actions))


@contextlib.contextmanager
def _tandem_make_vec(cell: Cell, actions: Floats, region: str) -> Iterator[Run]:
    """What make_vec returns, but for the name of the region."""
    with _client(cell.task, cell.envs, cell.threads, region, "adaptive") as client:
        envs = tandem.SharedMemoryVectorEnv(client)
        envs.reset(seed=0)
        batches = actions[:, :, 0].astype(np.int64) if cell.task.choices else actions
        with _uncollected():
            yield _turns(cell, client, envs.step, list(batches))


def _turns(cell: Cell, client: tandem.SharedMemoryClient, step: Callable[[Any], object], actions: list[Any]) -> Run:
    batches = itertools.cycle(actions)

    def run(seconds: float) -> Turn:
        now = time.perf_counter
        before, exchanges = _Books.of(client), 0
        began = now()
        end = began + seconds
        while True:
            step(next(batches))
            exchanges += 1
            if now() >= end:
                break
        secs = now() - began
        return Turn(exchanges * cell.envs, secs, _Books.of(client).transport_since(before))

    return run


@contextlib.contextmanager
def _tandem_halves(cell: Cell, actions: Floats, region: str) -> Iterator[Run]:
    """Two engines with half of the environments and threads each: one steps while the other one's results are read."""
    half, threads = cell.envs // 2, cell.threads // 2
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(_client(cell.task, half, threads, f"{region}-{name}", "adaptive")) for name in "ab"
        ]
        streams = [
            itertools.cycle([np.ascontiguousarray(batch[part]) for batch in actions])
            for part in (slice(0, half), slice(half, 2 * half))
        ]
        sides = [(c.send, c.recv, s) for c, s in zip(clients, streams, strict=True)]

        def run(seconds: float) -> Turn:
            now = time.perf_counter
            exchanges = 0
            began = now()
            end = began + seconds
            for send, _, batches in sides:
                send(next(batches))
            while now() < end:
                for send, recv, batches in sides:
                    recv()
                    send(next(batches))
                exchanges += 2
            for _, recv, _ in sides:
                recv()
            return Turn((exchanges + 2) * half, now() - began)

        with _uncollected():
            yield run


def say(text: str) -> None:
    """Shows progress."""
    print(text, file=sys.stderr, flush=True)
