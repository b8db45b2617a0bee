"""How long it takes until environments can be stepped, and how much memory that takes."""

import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tandem
from tests.benchmark.json_program import answer_of
from tests.benchmark.mujoco_rows import TASKS, Cell, peers_program
from tests.benchmark.suite import Found, Plan, Suite
from tests.benchmark.tables import Spread, figure, markdown

_MANY = Cell(TASKS[0], 64, 2)
_LABEL = f"{_MANY.envs} {_MANY.task.name}"
_CART_POLES = (1, 64, 4096)
ROWS = {
    "attach": "Tandem: a client attaches",
    "launch": "Tandem: engine launched, client attached",
    "make_vec": "Tandem's make_vec: returned",
    "memory": "Tandem: memory",
    "envpool": "EnvPool: constructed",
    "gymnasium_async": "Gymnasium AsyncVectorEnv: constructed",
}
_ATTACHES = 20  # to an engine
_SLOW_ROUNDS = 3  # of what takes seconds

# A trainer's process that does nothing else.
_CLIENT = """
import sys, tandem
def rss():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
before = rss()
with tandem.SharedMemoryClient(sys.argv[1], timeout=60) as client:
    client.reset(seed=0)
    client.actions[:] = 0
    for values in client.step(client.actions):
        values.sum()
    print(f"[{before}, {rss()}]")
"""


@dataclass(frozen=True)
class Start:
    """How long environments took to be there. Seconds.

    Attributes:
      made: Until the client is attached, or the constructor has returned.
      first_obs: Until the first observations are there.
    """

    made: float
    first_obs: float


@dataclass(frozen=True)
class Memory:
    """What is resident or reserved. KiB.

    Attributes:
      envs: Environments of CartPole-v1.
      engine: The engine's resident memory, the region's included as far as touched.
      client_before: A client's, with tandem imported.
      client: The same after a reset and a step, the region's included.
      region: The region's size.
    """

    envs: int
    engine: int
    client_before: int
    client: int
    region: int


def _resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise RuntimeError(f"expected VmRSS in /proc/{pid}/status, found none; has the process ended?")


def _launch(task: str, envs: int, region: str) -> tuple[Start, list[float]]:
    """Launches an engine and attaches to it once; then attaches again and again.

    Returns:
      The start, and seconds of each further attachment.
    """
    began = time.perf_counter()
    with tandem.launch_engine(task, num_envs=envs, name=region) as engine:
        with tandem.SharedMemoryClient(engine.name) as client:
            made = time.perf_counter() - began
            client.reset(seed=0)
            start = Start(made, time.perf_counter() - began)
        attaches = []
        for _ in range(_ATTACHES):
            began = time.perf_counter()
            client = tandem.SharedMemoryClient(engine.name)
            attaches.append(time.perf_counter() - began)
            client.close()
    return start, attaches


def _make_vec() -> Start:
    began = time.perf_counter()
    envs = tandem.make_vec(_MANY.task.name, _MANY.envs, threads=_MANY.threads)
    try:
        made = time.perf_counter() - began
        envs.reset(seed=0)
        return Start(made, time.perf_counter() - began)
    finally:
        envs.close()


def _measure_memory(envs: int, region: str) -> Memory:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with tandem.launch_engine("CartPole-v1", num_envs=envs, name=region) as engine:
        command = [sys.executable, "-c", _CLIENT, engine.name]
        before, after = answer_of(command, variables=variables)
        region_kib = os.stat(f"/dev/shm/{engine.name}").st_size // 1024
        return Memory(envs, _resident_kib(engine.pid), before, after, region_kib)


def _label_of(key: str) -> str:
    return f"{ROWS[key].split(':')[0]}: {_LABEL}"


def _measure_peer(key: str, rounds: int, prefix: str) -> list[Start]:
    found = []
    with tempfile.TemporaryDirectory(prefix=f"{prefix}-") as folder:
        actions = Path(folder) / "actions"
        _MANY.actions().tofile(actions)
        for _ in range(rounds):
            with peers_program() as program:
                answer = program.ask(_MANY.request(key, actions))
                program.ask(json.dumps({"close": key}))
            found.append(Start(answer["made_secs"], answer["first_obs_secs"]))
            print(f"start: {ROWS[key]} in {found[-1].made:.2f} s", file=sys.stderr, flush=True)
    return found


def measure(plan: Plan) -> Found:
    """Measures the rows one after the other: they take too differently long to take turns.

    Args:
      plan: What of it to measure; `seconds` means nothing here. A round takes two seconds; up to three of them, for the
        row of Gymnasium, some ten more.

    Returns:
      What was found.
    """
    starts: dict[str, list[Start]] = {}
    attaches: dict[str, list[float]] = {}
    if plan.rows & {"attach", "launch"}:
        for number in range(plan.rounds):
            for task, envs in (*(("CartPole-v1", envs) for envs in _CART_POLES), (_MANY.task.name, _MANY.envs)):
                label = f"{envs:,} {task}"
                start, again = _launch(task, envs, f"{plan.prefix}-start-{number}-{envs}")
                starts.setdefault(f"Tandem: {label}", []).append(start)
                attaches.setdefault(label, []).extend(again)
            print(f"start: round {number + 1} of {plan.rounds}", file=sys.stderr, flush=True)
    if "make_vec" in plan.rows:
        starts[_label_of("make_vec")] = [_make_vec() for _ in range(plan.rounds)]
    for key in ("envpool", "gymnasium_async"):
        if key in plan.rows:
            rounds = min(_SLOW_ROUNDS, plan.rounds)
            starts[_label_of(key)] = _measure_peer(key, rounds, plan.prefix)
    tables = []
    if "attach" in plan.rows:
        tables.append(_table_of_attaches(attaches))
    if starts and plan.rows - {"attach", "memory"}:
        tables.append(_table_of_starts(starts))
    memory = []
    if "memory" in plan.rows:
        memory = [_measure_memory(envs, f"{plan.prefix}-memory-{envs}") for envs in _CART_POLES]
        tables.append(_table_of_memory(memory))
    figures = {
        "attach_secs": attaches,
        "starts": {label: [dataclasses.asdict(one) for one in those] for label, those in starts.items()},
        "memory_kib": [dataclasses.asdict(one) for one in memory],
    }
    return Found(tables, figures)


def _milliseconds(secs: Sequence[float]) -> str:
    return str(Spread.of([1e3 * one for one in secs]))


def _table_of_attaches(attaches: dict[str, list[float]]) -> str:
    lines = [[f"to {label}", _milliseconds(secs)] for label, secs in attaches.items()]
    title = "**Attach**: from calling SharedMemoryClient to having it, the engine running; median (least .. greatest)"
    return markdown(title, ["", "ms"], lines)


def _table_of_starts(starts: dict[str, list[Start]]) -> str:
    lines = [
        [label, _milliseconds([one.made for one in those]), _milliseconds([one.first_obs for one in those])]
        for label, those in starts.items()
    ]
    title = (
        "**Start**: ms until environments are made (Tandem: its engine's process started and attached to; others: "
        "constructed, what they import was imported before), and until the first observations are there; median "
        "(least .. greatest)"
    )
    return markdown(title, ["", "made", "first observations"], lines)


def _table_of_memory(memory: Sequence[Memory]) -> str:
    lines = [
        [f"{one.envs:,}", *(figure(kib / 1024) for kib in (one.engine, one.client_before, one.client, one.region))]
        for one in memory
    ]
    title = "**Memory**: MiB resident, environments of CartPole-v1; both sides' include what they touched of the region"
    return markdown(title, ["environments", "engine", "client before it attaches", "client", "region"], lines)


SUITE = Suite(
    name="start",
    about="attaching, starting an engine against constructing EnvPool's and Gymnasium's environments, memory",
    rows=ROWS,
    baseline=frozenset(),
    measure=measure,
    interpreters={"envpool": "peers", "gymnasium_async": "peers"},
)
