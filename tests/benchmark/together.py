"""What calls and streams cost the steps beside them: a trainer that does all at once, against one that only steps.

Two threads call and three read streams, in Python, where all share the GIL, and in C++ (`together_session.cc`). Both
check every answer and item: an answer is that to its caller's own question, and what a caller sets it reads back;
joints are those of a step's observations, of none earlier than those before; streams' numbers rise, and those that are
missing are counted as dropped.
"""

import gc
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tandem
from tests.benchmark.json_program import answer_of
from tests.benchmark.quantile import quantile
from tests.benchmark.suite import Found, Plan, Suite, in_turn
from tests.benchmark.tables import Spread, markdown

TASK = "HalfCheetah-v5"
TOGETHER_SESSION = Path(__file__).with_name("together_session")
ROWS = {"cpp": "C++ threads", "python": "Python threads"}
CALLERS = 2  # each with an environment of its own
_JOINTS = 8  # qpos without x begins the observations
_ROUNDS, _STEPS, _CALLS = 3, 100_000, 10_000
_NUM_ENVS = 4
_WARM_UP_STEPS = 500
_ACTION_SETS = 16  # taken in turn
_PICTURES_HZ = 5
_PIXELS = 64
_TIMEOUT_SECS = 30.0
_RUN_TIMEOUT_SECS = 420.0  # of one in C++; on an idle machine it takes half a minute
_SILENCE_SECS = 0.5  # a stream that brought nothing for so long has nothing new

_Joints = bytes


@dataclass(frozen=True)
class Stream:
    """What came of a stream.

    Attributes:
      items: How many were taken.
      dropped: How many were lost.
    """

    items: int
    dropped: int


@dataclass(frozen=True)
class Run:
    """A session.

    Attributes:
      steps_per_sec: All time between the first and the last of them, what they were checked by included.
      step_p50_ns: From handing over actions to having results: nanoseconds.
      step_p99_ns: The same.
      step_max_ns: The same.
      calls: How many were answered, all callers'.
      call_p50_ns: From asking to having the answer.
      call_p99_ns: The same.
      streams: Empty when it only stepped.
    """

    steps_per_sec: float
    step_p50_ns: int
    step_p99_ns: int
    step_max_ns: int
    calls: int
    call_p50_ns: int
    call_p99_ns: int
    streams: list[Stream]

    @staticmethod
    def of(found: dict[str, Any]) -> "Run":
        """Takes it from what together_session printed."""
        return Run(**{**found, "streams": [Stream(**stream) for stream in found["streams"]]})


@dataclass(frozen=True)
class Sessions:
    """What was measured.

    Attributes:
      num_envs: Of the engine.
      pictures: Whether the third stream was of pictures; else it was telemetry, as the first.
      quiet: Row -> a run of each round that only stepped.
      together: Row -> a run of each round with calls and streams.
    """

    num_envs: int
    pictures: bool
    quiet: dict[str, list[Run]] = field(default_factory=lambda: {row: [] for row in ROWS})
    together: dict[str, list[Run]] = field(default_factory=lambda: {row: [] for row in ROWS})

    def ratios(self, row: str, figure: Callable[[Run], float]) -> list[float]:
        """Of a figure together to that of the quiet run before it, round by round."""
        pairs = zip(self.together[row], self.quiet[row], strict=True)
        return [figure(together) / figure(quiet) for together, quiet in pairs]


def measure_together(rows: Sequence[str], rounds: int, steps: int, calls: int, num_envs: int, region: str) -> Sessions:
    """Measures each row in every round, the rows in turn: a quarter of the steps quietly, then all together.

    Args:
      rows: Of `ROWS`.
      rounds: How often each.
      steps: Of a run with calls and streams.
      calls: Of each of the two callers.
      num_envs: Of the engine.
      region: Its name.

    Returns:
      What was found.

    Raises:
      subprocess.SubprocessError: The row in C++ failed; its own message is on stderr.
      RuntimeError: An answer or item was wrong.
      tandem.TandemError: A step, call or stream failed.
    """
    # One thread of the engine's: cores that it leaves are for the trainer's.
    with tandem.launch_engine(TASK, num_envs=num_envs, threads=1, name=region) as engine:
        found = Sessions(num_envs, _can_draw(engine.name))
        for number in range(rounds):
            for row in in_turn(rows, number):
                run = _run_cpp if row == "cpp" else run_python
                found.quiet[row].append(run(engine.name, steps // 4, 0, found.pictures))
                found.together[row].append(run(engine.name, steps, calls, found.pictures))
            print(f"together: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        return found


def _can_draw(region: str) -> bool:
    with tandem.SharedMemoryClient(region, timeout=_TIMEOUT_SECS) as client:
        try:
            client.viewport.frame(width=_PIXELS, height=_PIXELS)
        except (tandem.Unsupported, tandem.EngineFailed):
            return False
        return True


def _run_cpp(region: str, steps: int, calls: int, pictures: bool) -> Run:
    command = [str(TOGETHER_SESSION), f"--region={region}", f"--steps={steps}", f"--calls={calls}"]
    if pictures:
        command.append("--pictures")
    return Run.of(answer_of(command, timeout_secs=_RUN_TIMEOUT_SECS))


def run_python(region: str, steps: int, calls: int, pictures: bool) -> Run:
    """Runs a session whose threads are Python's: this one steps.

    Args:
      region: The engine's.
      steps: How many to measure.
      calls: Of each of the two callers; 0: only steps, and no streams.
      pictures: One of the streams is of pictures; else it is telemetry as well.

    Returns:
      What it took.

    Raises:
      RuntimeError: An answer or item was wrong.
      tandem.TandemError: A step, call or stream failed.
    """
    with tandem.SharedMemoryClient(region, timeout=_TIMEOUT_SECS) as client:
        session = _Session(client, steps)
        gc.collect()
        gc.disable()
        try:
            return session.run(calls, pictures)
        finally:
            gc.enable()


class _Session:
    """The thread that steps, and what the others look at."""

    def __init__(self, client: tandem.SharedMemoryClient, steps: int) -> None:
        self.client = client
        self.steps = steps
        self.steps_done = 0
        self.finished = threading.Event()
        self.secs_per_step = 0.0
        # What was seen after each exchange; moment 0 is the one before the first.
        self.moments: NDArray[np.float32] = np.empty((steps + 1, CALLERS, _JOINTS), np.float32)
        shape = client.actions.shape
        numbers = np.arange(shape[0] * shape[1]).reshape(shape)
        self.actions = [
            ((i * 7 + numbers * 5) % 11 - 5).astype(np.float32) / np.float32(5) for i in range(_ACTION_SETS)
        ]

    def run(self, calls: int, pictures: bool) -> Run:
        cold = time.perf_counter()
        for i in range(_WARM_UP_STEPS):
            obs = self.client.step(self.actions[i % _ACTION_SETS])[0]
        self.secs_per_step = (time.perf_counter() - cold) / _WARM_UP_STEPS
        self.moments[0] = obs[:CALLERS, :_JOINTS]
        readers = self._open(pictures) if calls else []
        callers = [_Caller(self, env) for env in range(CALLERS)] if calls else []
        with ThreadPoolExecutor(len(callers) + len(readers) + 1) as pool:
            reading = [pool.submit(reader.run) for reader in readers]
            calling = [pool.submit(caller.run, calls) for caller in callers]
            try:
                nanos, secs = self._step()
                for call in calling:
                    call.result()
            finally:
                self.steps_done = self.steps
                self.finished.set()
            for read in reading:
                read.result()
        for caller in callers:
            self.check_order(caller.env, caller.seen)
        for reader in readers:
            reader.check()
        call_nanos = [nano for caller in callers for nano in caller.nanos]
        return Run(
            steps_per_sec=self.steps / secs,
            step_p50_ns=quantile(nanos, 0.5),
            step_p99_ns=quantile(nanos, 0.99),
            step_max_ns=max(nanos),
            calls=len(call_nanos),
            call_p50_ns=quantile(call_nanos, 0.5),
            call_p99_ns=quantile(call_nanos, 0.99),
            streams=[reader.close() for reader in readers],
        )

    def _step(self) -> tuple[list[int], float]:
        nanos: list[int] = []
        now, step, actions = time.perf_counter_ns, self.client.step, self.actions
        began = now()
        for i in range(self.steps):
            acted = actions[i % _ACTION_SETS]
            asked = now()
            obs, _, _ = step(acted)
            nanos.append(now() - asked)
            self.moments[i + 1] = obs[:CALLERS, :_JOINTS]
            self.steps_done = i + 1
        return nanos, (now() - began) / 1e9

    def _open(self, pictures: bool) -> list["_Reader"]:
        client = self.client
        streams: list[tandem.services.Stream[Any]] = [client.telemetry.stream(), client.mujoco.stream_joint_state()]
        if pictures:
            streams.append(client.viewport.stream(width=_PIXELS, height=_PIXELS, fps=_PICTURES_HZ))
        else:
            streams.append(client.telemetry.stream())
        readers = [_Reader(self, stream) for stream in streams]
        for reader in readers:
            reader.take(_TIMEOUT_SECS)  # nothing was stepped since moment 0: the frame_seq of it
        return readers

    def check_order(self, env: int, seen: Sequence[_Joints]) -> None:
        """Joints that one thread saw one after the other: all are some moment's, none earlier than the one before."""
        moment = 0
        for joints in seen:
            while moment <= self.steps and self.moments[moment, env].tobytes() != joints:
                moment += 1
            if moment > self.steps:
                raise RuntimeError("joints: expected those of a step's observations, in order; found others")


class _Caller:
    """One of the two threads that call."""

    def __init__(self, session: _Session, env: int) -> None:
        self.session = session
        self.env = env
        self.nanos: list[int] = []
        self.seen: list[_Joints] = []
        self.height = 0.0
        self.num_envs = session.client.num_envs
        # Entities are bodies, geoms, cameras, lights: the last is a light.
        self.light = session.client.scene.info().entity_count

    def run(self, calls: int) -> None:
        """Spreads its calls over the steps."""
        session = self.session
        for k in range(calls):
            due = k * session.steps // calls
            while (done := session.steps_done) < due:
                time.sleep((due - done) * session.secs_per_step)
            self._ask(k)

    def _ask(self, k: int) -> None:
        client = self.session.client
        asked = time.perf_counter_ns()
        match k % 6:
            case 0:
                self.height = float(1 + k)
                client.scene.set_transform(self.light, position=(0, 0, self.height), env_id=self.env)
                right = True
            case 1:
                transform = client.scene.entity(self.light, env_id=self.env).transform
                right = transform is not None and transform.position is not None
                right = right and transform.position[2] == self.height  # type: ignore[union-attr, index]
            case 2:
                schemas = client.get_schema([k % self.num_envs])
                right = [schema.agent_name for schema in schemas] == [f"agent_{k % self.num_envs}"]
            case 3:
                (state,) = client.mujoco.joint_state([self.env])
                right = state.env_id == self.env
                self.seen.append(state.positions[1:].tobytes())
            case 4:
                schema = client.telemetry.schema()
                right = (schema.nq, schema.nu) == (9, 6)
            case _:
                entity = 1 + k % self.light
                right = client.scene.entity(entity, env_id=self.env).id == entity
        self.nanos.append(time.perf_counter_ns() - asked)
        if not right:
            raise RuntimeError(f"call {k} of caller {self.env}: expected the answer to it, found another")


class _Reader:
    """One of the three threads that read a stream."""

    def __init__(self, session: _Session, stream: tandem.services.Stream[Any]) -> None:
        self.session = session
        self.stream = stream
        self.items = 0
        self.number = 0
        self.frame_seqs: list[int] = []
        self.frames: list[_Joints] = []
        self.seen: list[_Joints] = []

    def run(self) -> None:
        """Reads until nothing is new any more after the last call and step."""
        was_finished = False
        while True:
            try:
                self.take(_SILENCE_SECS)
            except tandem.StepTimeout:
                if was_finished:
                    break
                was_finished = self.session.finished.is_set()
        # One that came since may have told of others that were lost.
        while self.items + self.stream.dropped != self.number:
            self.take(_TIMEOUT_SECS)

    def take(self, timeout: float) -> None:
        """Takes the next item."""
        item = self.stream.next(timeout)
        if self.stream.number <= self.number:
            raise RuntimeError(f"a stream: expected a number above {self.number}, found {self.stream.number}")
        self.number = self.stream.number
        self.items += 1
        if isinstance(item, tandem.services.TelemetryFrame):
            self.frame_seqs.append(item.frame_seq)
            self.frames.append(item.observation_qpos[1:].tobytes())
        elif isinstance(item, tandem.services.JointState):
            self.seen.append(item.positions[1:].tobytes())
        elif item.pixels.shape == (_PIXELS, _PIXELS, 3):
            self.frame_seqs.append(item.frame_seq)
        else:
            raise RuntimeError(f"expected a picture of {_PIXELS} pixels, found {item.pixels.shape}")

    def check(self) -> None:
        """Items are of the moments that they say, in order."""
        if self.frame_seqs != sorted(self.frame_seqs):
            raise RuntimeError("a stream: expected no earlier moment than before")
        for frame_seq, joints in zip(self.frame_seqs, self.frames, strict=False):  # pictures have none
            if self.session.moments[frame_seq - self.frame_seqs[0], 0].tobytes() != joints:
                raise RuntimeError(f"telemetry: expected the joints of frame_seq {frame_seq}")
        self.session.check_order(0, self.seen)

    def close(self) -> Stream:
        """Ends the stream.

        Returns:
          What came of it.
        """
        found = Stream(self.items, self.stream.dropped)
        self.stream.close()
        return found


def _table(found: Sessions, rounds: int) -> str:
    one = next(runs[0] for runs in found.together.values() if runs)
    third = "pictures" if found.pictures else "telemetry"
    title = (
        f"**Steps beside calls and streams**, {TASK}, {found.num_envs} environments, {one.calls:,} calls a run, "
        f"streams of telemetry, joints and {third}: median (least .. greatest) of {rounds} rounds"
    )
    lines = []
    for row, runs in found.together.items():
        if not runs:
            continue
        lines.append([f"{ROWS[row]}, quiet", *_of_steps(found.quiet[row])])
        streams = [stream for run in runs for stream in run.streams]
        beside = [
            str(Spread.of([run.call_p50_ns / 1e3 for run in runs])),
            str(Spread.of([run.call_p99_ns / 1e3 for run in runs])),
            f"{sum(stream.items for stream in streams):,}",
            f"{sum(stream.dropped for stream in streams):,}",
        ]
        lines.append([f"{ROWS[row]}, together", *_of_steps(runs), *beside])
        ratios = [
            str(Spread.of(found.ratios(row, figure)))
            for figure in (lambda run: run.steps_per_sec, lambda run: run.step_p50_ns, lambda run: run.step_p99_ns)
        ]
        lines.append([f"{ROWS[row]}, together / quiet", *ratios])
    steps = ("row", "steps/s", "step p50 us", "p99 us", "greatest ms")
    return markdown(title, (*steps, "call p50 us", "p99 us", "items", "dropped"), lines)


def _of_steps(runs: Sequence[Run]) -> list[str]:
    figures = (
        [run.steps_per_sec for run in runs],
        [run.step_p50_ns / 1e3 for run in runs],
        [run.step_p99_ns / 1e3 for run in runs],
        [run.step_max_ns / 1e6 for run in runs],
    )
    return [str(Spread.of(one)) for one in figures]


def _measure(plan: Plan) -> Found:
    # A run takes half a minute, so that rounds are fewer than other suites'.
    rounds = min(plan.rounds, _ROUNDS)
    steps, calls = (5_000, 500) if plan.quick else (_STEPS, _CALLS // CALLERS)
    rows = [row for row in ROWS if row in plan.rows]
    found = measure_together(rows, rounds, steps, calls, _NUM_ENVS, f"{plan.prefix}-together")
    return Found([_table(found, rounds)], asdict(found))


SUITE = Suite(
    name="together",
    about="steps beside calls and streams, every answer checked, against steps alone",
    rows=ROWS,
    baseline=frozenset(),
    measure=_measure,
)
