"""Tandem's environments, compared with EnvPool and Gymnasium's vectors: steps and start.

All rows step with the same random actions. The peers' rows run in their environment of tools/extra_env.
"""

import contextlib
import functools
import importlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import tandem
from tests.benchmark import policies
from tests.benchmark.rows import Case, Figures, Row, Suite, Turn, turns

_BATCHES = 64  # batches of actions, used repeatedly
_WARM_UP_BATCHES = 40  # enough for two episodes of Humanoid
_TIMEOUT_SECS = 60.0
_ATTACHES = 20
_PEERS = ("envpool", "EnvPool"), ("gymnasium_sync", "SyncVectorEnv"), ("gymnasium_async", "AsyncVectorEnv")

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Cell:
    """The environments that all rows of a case step.

    Attributes:
      task: The task's name in Gymnasium.
      envs: The number of environments.
      threads: The number of threads that step the environments.
      policy: What the trainer computes between two steps, for `policies.stepping`; "": nothing.
    """

    task: str
    envs: int
    threads: int = 2
    policy: str = ""

    def __str__(self) -> str:
        """Formats the cell for titles."""
        return f"{self.envs} {self.task}, {self.threads} threads" + (f", after {self.policy}" if self.policy else "")

    @property
    def is_discrete(self) -> bool:
        """Whether an action is one of two numbers."""
        return self.task == "CartPole-v1"

    def actions(self, dtype: Any = np.float32) -> list[NDArray[Any]]:
        """Draws batches of uniform actions: dtype[envs, act_size], or int64[envs] for discrete actions."""
        random = np.random.default_rng(0)
        if self.is_discrete:
            return list(random.integers(2, size=(_BATCHES, self.envs)))
        size, bound = {"HalfCheetah-v5": (6, 1.0), "Ant-v5": (8, 1.0), "Humanoid-v5": (17, 0.4)}[self.task]
        return list(random.uniform(-bound, bound, (_BATCHES, self.envs, size)).astype(np.float32).astype(dtype))


_START = Cell("HalfCheetah-v5", 64)


def _stepping(step: Callable[[Any], Any], batches: Sequence[Any], cell: Cell) -> Turn:
    """Warms a row up, and returns the function that runs a turn."""
    if cell.policy:
        return policies.stepping(step, batches, cell.policy)
    actions = itertools.cycle(batches)
    for _ in range(_WARM_UP_BATCHES):
        step(next(actions))

    def turn(seconds: float) -> Figures:
        now = time.perf_counter
        batches, began = 0, now()
        end = began + seconds
        while True:
            step(next(actions))
            batches += 1
            if (last := now()) >= end:
                break
        return _rate(batches, cell.envs, last - began)

    return turn


def _rate(batches: int, envs: int, secs: float) -> Figures:
    return {"us": 1e6 * secs / batches, "K steps/s": batches * envs / secs / 1e3}


@contextlib.contextmanager
def _client(cell: Cell, wait: str, name: str) -> Iterator[tandem.SharedMemoryClient]:
    # The engine has its default wait strategy: a spinning engine would use a core during the other rows' turns.
    launched = tandem.launch_engine(
        cell.task, num_envs=cell.envs, threads=cell.threads, name=name, timeout=_TIMEOUT_SECS
    )
    # Gymnasium's and EnvPool's default mode: the step after an episode's end resets the environment.
    mode = tandem.AutoresetMode.NEXT_STEP
    with (
        launched as engine,
        tandem.SharedMemoryClient(engine.name, timeout=_TIMEOUT_SECS, wait=wait, autoreset_mode=mode) as client,
    ):
        client.reset(seed=0)
        yield client


@contextlib.contextmanager
def _tandem(cell: Cell, wait: str, name: str) -> Iterator[Turn]:
    with _client(cell, wait, name) as client:
        batches = cell.actions()
        if cell.is_discrete:
            batches = [batch.astype(np.float32)[:, None] for batch in batches]
        step = _stepping(client.step, batches, cell)

        def turn(seconds: float) -> Figures:
            before = client.stats()
            found = step(seconds)
            now = client.stats()
            transport, physics = (getattr(now, n) - getattr(before, n) for n in ("transport_secs", "physics_secs"))
            return found | {"transport, %": 100 * max(0.0, transport / (transport + physics))}

        yield turn


@contextlib.contextmanager
def _make_vec(cell: Cell, name: str) -> Iterator[Turn]:
    """Makes the environments that make_vec returns, with the harness's region name."""
    with _client(cell, "adaptive", name) as client:
        envs = tandem.SharedMemoryVectorEnv(client)
        envs.reset(seed=0)
        yield _stepping(envs.step, cell.actions(), cell)


@contextlib.contextmanager
def _states(cell: Cell, name: str) -> Iterator[Turn]:
    """Saves and loads all environments, in place of each step."""
    with _client(cell, "adaptive", name) as client:
        envs = tandem.SharedMemoryVectorEnv(client)
        envs.reset(seed=0)
        yield _stepping(lambda _: envs.load_state(envs.save_state()), cell.actions(), cell)


@contextlib.contextmanager
def _halves(cell: Cell, name: str) -> Iterator[Turn]:
    """Makes two engines with half of the environments and threads; one steps while the other's results are read."""
    half = Cell(cell.task, cell.envs // 2, cell.threads // 2)
    with _client(half, "adaptive", f"{name}-a") as first, _client(half, "adaptive", f"{name}-b") as second:

        def step(actions: Floats) -> None:
            for part, client in enumerate((first, second)):
                if sent:
                    client.recv()
                client.send(np.ascontiguousarray(actions[part * half.envs : (part + 1) * half.envs]))
            sent.append(True)

        sent: list[bool] = []
        yield _stepping(step, cell.actions(), cell)
        first.recv()
        second.recv()


def _maker(kind: str, cell: Cell) -> Callable[[], Any]:
    """Imports a peer, and returns the function that makes its environments."""
    if kind.startswith("envpool"):
        make = importlib.import_module("envpool").make
        batch_size = cell.envs // 2 if kind == "envpool_async" else cell.envs
        sizes = {"num_envs": cell.envs, "num_threads": cell.threads, "batch_size": batch_size}
        return functools.partial(make, cell.task, env_type="gymnasium", **sizes)
    importlib.import_module("gymnasium.envs.mujoco")
    vector = importlib.import_module("gymnasium.vector")
    kinds = {"gymnasium_sync": vector.SyncVectorEnv, "gymnasium_async": vector.AsyncVectorEnv}
    return functools.partial(kinds[kind], [functools.partial(gymnasium.make, cell.task)] * cell.envs)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Discards standard error of this process and its new children: each environment warns about its model."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def _peer(kind: str, cell: Cell, name: str) -> Iterator[Turn]:
    make = _maker(kind, cell)
    with _silence():
        envs = make()
    actions = cell.actions(np.float64 if kind.startswith("envpool") else np.float32)
    try:
        if kind == "envpool_async":
            yield _envpool_async(envs, actions, cell)
        else:
            envs.reset()
            yield _stepping(envs.step, actions, cell)
    finally:
        envs.close()


def _envpool_async(envs: Any, actions: Sequence[Any], cell: Cell) -> Turn:
    """Steps EnvPool asynchronously: the half of the environments that is ready first gets the next actions at once."""
    half = cell.envs // 2
    envs.async_reset()

    def step(batch: Any) -> None:
        for _ in range(2):
            envs.send(batch, envs.recv()[4]["env_id"])

    return _stepping(step, [np.ascontiguousarray(batch[:half]) for batch in actions], cell)


def _rows(cell: Cell, against: str) -> dict[str, Row]:
    def row(key: str, label: str, opened: Callable[[str], AbstractContextManager[Turn]], python: str = "") -> Row:
        return Row(key, label, opened, (against,), python)

    kinds = {
        "envpool": "EnvPool",
        "envpool_async": "EnvPool, async",
        "gymnasium_sync": "Gymnasium SyncVectorEnv",
        "gymnasium_async": "Gymnasium AsyncVectorEnv",
    }
    found = [
        row("make_vec", "Tandem, make_vec", functools.partial(_make_vec, cell)),
        row("states", "Tandem, save_state and load_state", functools.partial(_states, cell)),
        row("tandem", "Tandem, SharedMemoryClient", functools.partial(_tandem, cell, "adaptive")),
        row("tandem_spin", "Tandem, its client spins", functools.partial(_tandem, cell, "spin")),
        row("tandem_halves", "Tandem, two halves in turn", functools.partial(_halves, cell)),
        *(row(kind, label, functools.partial(_peer, kind, cell), "peers") for kind, label in kinds.items()),
    ]
    return {one.key: one for one in found}


def _case(cell: Cell, keys: str, against: str, ratio: str, quick: bool = True) -> Case:
    rows = _rows(cell, against)
    return Case(str(cell), [rows[key] for key in keys.split()], (ratio,), quick=quick)


def _mujoco_cases() -> Iterator[Case]:
    some = "tandem tandem_spin envpool"
    for task in ("HalfCheetah-v5", "Ant-v5", "Humanoid-v5"):
        yield _case(Cell(task, 64), f"{some} tandem_halves envpool_async", "envpool", "K steps/s")
    for envs in (1, 8, 512):
        yield _case(Cell("HalfCheetah-v5", envs), some, "envpool", "K steps/s", quick=False)


def _make_vec_cases() -> Iterator[Case]:
    for cell in (Cell("CartPole-v1", 1), Cell("CartPole-v1", 64), Cell("HalfCheetah-v5", 64), Cell("Ant-v5", 64)):
        yield _case(cell, "make_vec tandem envpool gymnasium_sync gymnasium_async", "make_vec", "us")
    yield replace(_case(_START, "make_vec states", "make_vec", "us"), title=f"{_START}, saved and loaded")
    for cell in (Cell("CartPole-v1", 16, threads=1), Cell("HalfCheetah-v5", 8), Cell("HalfCheetah-v5", 64)):
        for policy in policies.ALL:
            after = replace(cell, policy=policy)
            yield _case(after, "make_vec tandem envpool gymnasium_sync", "make_vec", "p50 us", quick=False)
        after = replace(cell, policy=policies.TORCH)
        rows = _rows(after, "make_vec")
        its = [replace(rows[key], python="torch") for key in ("make_vec", "tandem")]
        yield Case(str(after), its, ("p50 us",), quick=False)


def _start_of_client(name: str, seconds: float) -> Figures:
    began = time.perf_counter()
    with tandem.launch_engine(_START.task, num_envs=_START.envs, name=name) as engine:
        with tandem.SharedMemoryClient(engine.name) as client:
            made = time.perf_counter()
            client.reset(seed=0)
            found = {"made ms": 1e3 * (made - began), "first observations ms": 1e3 * (time.perf_counter() - began)}
        attaches = []
        for _ in range(_ATTACHES):
            began = time.perf_counter()
            client = tandem.SharedMemoryClient(engine.name)
            attaches.append(time.perf_counter() - began)
            client.close()
    return found | {"attach ms": 1e3 * float(np.median(attaches))}


def _start(make: Callable[[], Any], seeds: dict[str, int]) -> Figures:
    began = time.perf_counter()
    envs = make()
    try:
        made = time.perf_counter()
        envs.reset(**seeds)
        return {"made ms": 1e3 * (made - began), "first observations ms": 1e3 * (time.perf_counter() - began)}
    finally:
        envs.close()


def _start_of_make_vec(name: str, seconds: float) -> Figures:
    return _start(functools.partial(tandem.make_vec, _START.task, _START.envs, threads=_START.threads), {"seed": 0})


def _start_of_peer(kind: str, name: str, seconds: float) -> Figures:
    make = _maker(kind, _START)
    with _silence():
        return _start(make, {})


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "make_vec",
            "the step of make_vec, compared with the client's, EnvPool's and Gymnasium's vector environments",
            list(_make_vec_cases()),
            __name__,
            stays_open=True,
        ),
        Suite(
            "mujoco",
            "MuJoCo environment steps a second, compared with EnvPool",
            list(_mujoco_cases()),
            __name__,
            stays_open=True,
        ),
        Suite(
            "start",
            "the time to attach, to launch an engine, and to construct environments",
            [
                Case(
                    f"{_START}, from the call to environments",
                    [
                        Row("launch", "Tandem, engine launched and attached to", turns(_start_of_client)),
                        Row("make_vec", "Tandem, make_vec", turns(_start_of_make_vec)),
                        *(Row(kind, label, turns(_start_of_peer, kind), (), "peers") for kind, label in _PEERS),
                    ],
                )
            ],
            __name__,
            slow=True,
        ),
    )
}
