"""Steps beside RPCs and streams of the same process, compared with steps alone.

Two threads make calls and three threads read streams. They check every answer and item:

- An answer belongs to its request. A caller reads the value that it has set.
- Joints are those of a step's observations, and never older than the previous ones.
- The numbers of a stream's items increase, and missing items are counted as dropped.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tandem
from tests.benchmark.rows import Case, Figures, Row, Suite, turns, us

_TASK, _NUM_ENVS = "HalfCheetah-v5", 4
_CALLERS = 2  # each uses its own environment
_STEPS_A_SEC, _STEPS_OF_A_CALL = 200_000, 10  # steps for each second of a turn; steps between two calls
_JOINTS = 8  # the observations begin with qpos without x
_WARM_UP_STEPS = 500
_ACTION_SETS = 16  # used repeatedly
_IMAGES_HZ = 5
_PIXELS = 64
_TIMEOUT_SECS = 30.0
_SILENCE_SECS = 0.5  # a stream without an item for this time has ended

_Joints = bytes


def _measure(calls: bool, name: str, seconds: float) -> Figures:
    steps = max(1000, round(_STEPS_A_SEC * seconds))
    # The engine has one thread: the other cores are for the trainer's threads.
    with (
        tandem.launch_engine(_TASK, num_envs=_NUM_ENVS, threads=1, name=name, timeout=_TIMEOUT_SECS) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=_TIMEOUT_SECS) as client,
    ):
        if not calls:
            return _Session(client, steps // 4).run(0)
        return _Session(client, steps).run(steps // _STEPS_OF_A_CALL)


class _Session:
    """The stepping thread, and the data that the other threads read."""

    def __init__(self, client: tandem.SharedMemoryClient, steps: int) -> None:
        self.client = client
        self.steps = steps
        self.steps_done = 0
        self.finished = threading.Event()
        self.secs_per_step = 0.0
        # The joints after each exchange; moment 0 precedes the first exchange.
        self.moments: NDArray[np.float32] = np.empty((steps + 1, _CALLERS, _JOINTS), np.float32)
        shape = client.actions.shape
        numbers = np.arange(shape[0] * shape[1]).reshape(shape)
        self.actions = [
            ((i * 7 + numbers * 5) % 11 - 5).astype(np.float32) / np.float32(5) for i in range(_ACTION_SETS)
        ]

    def run(self, calls: int) -> Figures:
        """Steps, while each caller makes half of the calls; with 0 calls there are no streams either."""
        cold = time.perf_counter()
        for i in range(_WARM_UP_STEPS):
            obs = self.client.step(self.actions[i % _ACTION_SETS])[0]
        self.secs_per_step = (time.perf_counter() - cold) / _WARM_UP_STEPS
        self.moments[0] = obs[:_CALLERS, :_JOINTS]
        readers = self._open() if calls else []
        callers = [_Caller(self, env) for env in range(_CALLERS)] if calls else []
        with ThreadPoolExecutor(len(callers) + len(readers) + 1) as pool:
            reading = [pool.submit(reader.run) for reader in readers]
            calling = [pool.submit(caller.run, calls // _CALLERS) for caller in callers]
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
        found = us(nanos) | {"greatest ms": max(nanos) / 1e6, "steps/s": self.steps / secs}
        if callers:
            found |= us([nano for caller in callers for nano in caller.nanos], "call ")
            found |= {
                "items": sum(reader.items for reader in readers),
                "dropped": sum(reader.stream.dropped for reader in readers),
            }
        for reader in readers:
            reader.stream.close()
        return found

    def _step(self) -> tuple[list[int], float]:
        nanos: list[int] = []
        now, step, actions = time.perf_counter_ns, self.client.step, self.actions
        began = now()
        for i in range(self.steps):
            acted = actions[i % _ACTION_SETS]
            asked = now()
            obs, _, _ = step(acted)
            nanos.append(now() - asked)
            self.moments[i + 1] = obs[:_CALLERS, :_JOINTS]
            self.steps_done = i + 1
        return nanos, (now() - began) / 1e9

    def _open(self) -> list["_Reader"]:
        client = self.client
        streams: list[tandem.services.Stream[Any]] = [client.telemetry.stream(), client.mujoco.stream_joint_state()]
        try:
            client.viewport.frame(width=_PIXELS, height=_PIXELS)
            streams.append(client.viewport.stream(width=_PIXELS, height=_PIXELS, fps=_IMAGES_HZ))
        except (tandem.Unsupported, tandem.EngineFailed):  # no EGL
            streams.append(client.telemetry.stream())
        readers = [_Reader(self, stream) for stream in streams]
        for reader in readers:
            reader.take(_TIMEOUT_SECS)  # there was no step since moment 0, so the item has its frame_seq
        return readers

    def check_order(self, env: int, seen: Sequence[_Joints]) -> None:
        """Checks that each joint state is that of a moment, and none is older than the previous one."""
        moment = 0
        for joints in seen:
            while moment <= self.steps and self.moments[moment, env].tobytes() != joints:
                moment += 1
            if moment > self.steps:
                raise RuntimeError("joints: expected those of a step's observations, in order; found others")


class _Caller:
    """One of the two calling threads."""

    def __init__(self, session: _Session, env: int) -> None:
        self.session = session
        self.env = env
        self.nanos: list[int] = []
        self.seen: list[_Joints] = []
        self.height = 0.0
        self.num_envs = session.client.num_envs
        # The entities are bodies, geoms, cameras and lights, in this order: the last one is a light.
        self.light = session.client.scene.info().entity_count

    def run(self, calls: int) -> None:
        """Makes the calls, spread over the steps."""
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
        """Reads until no new item arrives after the last call and step."""
        was_finished = False
        while True:
            try:
                self.take(_SILENCE_SECS)
            except tandem.StepTimeout:
                if was_finished:
                    break
                was_finished = self.session.finished.is_set()
        # A later item may report dropped ones.
        while self.items + self.stream.dropped != self.number:
            self.take(_TIMEOUT_SECS)

    def take(self, timeout: float) -> None:
        """Reads the next item."""
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
            raise RuntimeError(f"expected an image of {_PIXELS} pixels, found {item.pixels.shape}")

    def check(self) -> None:
        """Compares the items with the steps that they name."""
        if self.frame_seqs != sorted(self.frame_seqs):
            raise RuntimeError("a stream: expected no item older than the previous one")
        for frame_seq, joints in zip(self.frame_seqs, self.frames, strict=False):  # images have no joints
            if self.session.moments[frame_seq - self.frame_seqs[0], 0].tobytes() != joints:
                raise RuntimeError(f"telemetry: expected the joints of frame_seq {frame_seq}")
        self.session.check_order(0, self.seen)


SUITES = {
    "together": Suite(
        "together",
        "steps beside calls and streams of the same process, every answer checked, compared with steps alone",
        [
            Case(
                f"Steps of {_NUM_ENVS} {_TASK} beside calls and streams of telemetry, joints and images",
                [
                    Row("quiet", "Tandem, steps alone", turns(_measure, False)),
                    Row("together", "Tandem, steps beside calls and streams", turns(_measure, True), ("quiet",)),
                ],
                ("p50 us", "p99 us", "steps/s"),
            )
        ],
        __name__,
        slow=True,
    )
}
