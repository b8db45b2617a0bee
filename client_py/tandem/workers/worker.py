"""A worker process: makes some environments, then steps them in the region that it shares with the trainer.

The supervisor forks it. Its messages with the trainer, by its own channel:

| message | from | meaning |
|---|---|---|
| ("hello", pid, number), with two files | worker | it begins to make its environments, and will answer requests after
    this one; stacks and answers go into the files |
| ("made", report) | worker | they are made: a `Report` |
| ("failed", text) | worker | one could not be made; the worker ends |
| ("serve", Serving), with the region | trainer | take the slot in the region |
| ("results" or "raised", number, bytes) | worker | the answer to a request is in the file, with so many bytes |

A request is a value of `Files.requests`: a pickled function and the environments that are meant (None: all). The
supervisor's order `message` makes the workers read it, and draw the frame and copy the poses that the supervisor wants.
"""

import contextlib
import ctypes
import faulthandler
import mmap
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import cloudpickle
import gymnasium
import numpy as np
from numpy.typing import NDArray

from tandem import _native
from tandem.errors import InvalidArgument
from tandem.spaces.batches import Actions, Observations
from tandem.workers import env_states
from tandem.workers.channel import Channel
from tandem.workers.env_failures import failure, failure_text, one_line
from tandem.workers.frames import FrameBuffer, FramePainter, FramePlan
from tandem.workers.row_arrays import RowArrays
from tandem.workers.row_fields import arrays_of
from tandem.workers.scenes import ScenePlan, ScenePoser, nodes_of
from tandem.workers.shared_value import SharedValue

# Makes faulthandler write the stacks. Programs rarely use signals of this kind.
STACK_SIGNAL = signal.SIGRTMIN + 7 if sys.platform != "win32" else 0

_WAIT_SECS = 0.2  # between two looks at whether the trainer lives
_PR_SET_PDEATHSIG = 1
_PARALLEL = "; tandem.pettingzoo.parallel_vec takes environments of PettingZoo"
_MOST_TOLD = 100  # different errors of truncated episodes that a worker prints
_LONGEST_ERROR = 400  # characters of one in infos
_PART_BYTES = 2**30  # of one write, which the kernel limits to 2 GiB


class Files(NamedTuple):
    """Memory files that the trainer has made, by their descriptors."""

    infos: int  # the info areas of all workers, in their order
    options: int  # the options of a reset, a SharedValue
    requests: int  # a SharedValue; see above
    imports: int  # when each worker began its last import: float64, in seconds of time.monotonic()
    failures: int  # of each environment: episode and step of the last, int64[environments, 2]; step -1: a reset
    scene: int  # of a ScenePlan's size; empty: the environments have none
    model: int  # a model of MuJoCo, for the scene
    frames: int = -1  # a FrameBuffer; -1: there are no frames


def failures_in(fd: int) -> NDArray[np.int64]:
    """Returns the array of the file `failures`."""
    return np.frombuffer(mmap.mmap(fd, 0), np.int64).reshape(-1, 2)


class Report(NamedTuple):
    """What a worker's environments are like. All environments must agree in it.

    `spaces` is a pickle of (observation_space, action_space); `attributes` one of a dict: metadata and spec of the
    first environment, render_modes of all. `scene_nodes` is that of `tandem.workers.scenes.nodes_of`.
    """

    spaces: bytes
    attributes: bytes
    scene_nodes: int


class Serving(NamedTuple):
    """What a worker needs to serve its environments: the region's name, `Report.spaces`, the bytes of its info area."""

    name: str
    spaces: bytes
    info_bytes: int
    wait: str
    truncates: bool  # the episodes of environments that raise exceptions
    frames: FramePlan | None
    scene: ScenePlan | None


class OptionsOfWorkers(NamedTuple):
    """The options of a reset that differ between workers, of each."""

    options: list[Any]


class Stop(BaseException):
    """Ends the worker; raised by nothing yet: the supervisor kills a worker that does not stop."""


def set_parent_death_signal(number: int) -> None:
    """Sets the signal that this process gets when the thread that forked it ends; 0: none."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def run(
    worker: int,
    env_fns: Sequence[bytes],
    first_env: int,
    trainer: Channel,
    supervisor: int,
    files: Files,
    rejoin: tuple[int, Serving] | None,
) -> NoReturn:
    """Makes the environments, serves them, and ends the process.

    `env_fns` are pickles of the environments' functions, `supervisor` is a pid, and `rejoin` of a worker that replaces
    another one: the region's file, and how it is served.
    """
    code = 1
    try:
        stacks = os.memfd_create("tandem-stacks", os.MFD_CLOEXEC)
        answers = os.memfd_create("tandem-answers", os.MFD_CLOEXEC)
        faulthandler.register(STACK_SIGNAL, file=stacks, all_threads=True)
        sys.meta_path.insert(0, _ImportClock(files.imports, worker))
        os.register_at_fork(after_in_child=trainer.close)
        # A replacement repeats its predecessor's order, but not the request in which that may have died.
        answered = 0 if rejoin is None else SharedValue(files.requests).number()
        trainer.send(("hello", os.getpid(), answered), [stacks, answers])
        envs = _made(env_fns, first_env, trainer)
        if envs is not None:
            if rejoin is None:
                (_, serving), (region,) = trainer.receive()
            else:
                region, serving = rejoin
            options = SharedValue(files.options)
            side = _native.NativeWorker(region, worker, serving.wait, lambda: _own_options(options.read()[1], worker))
            os.close(region)
            _Worker(worker, envs, side, serving, files, trainer, supervisor, answers, answered).serve()
            code = 0
    except (EOFError, BrokenPipeError):  # the trainer is gone
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        # Without exit handlers: they are those of the supervisor.
        os._exit(code)


class _ImportClock:
    """A finder of modules that finds none, and notes the time."""

    def __init__(self, fd: int, worker: int) -> None:
        self._times, self._worker = memoryview(mmap.mmap(fd, 0)).cast("d"), worker

    def find_spec(self, *_: Any) -> None:
        self._times[self._worker] = time.monotonic()


def _made(env_fns: Sequence[bytes], first_env: int, trainer: Channel) -> list[gymnasium.Env[Any, Any]] | None:
    """Makes the environments and reports them; returns None after a failure."""
    envs: list[gymnasium.Env[Any, Any]] = []
    render_modes: list[Any] = []
    functions: dict[bytes, Callable[[], Any]] = {}
    process = os.getpid()
    try:
        for pickled in env_fns:
            if pickled not in functions:
                functions[pickled] = pickle.loads(pickled)
            env = functions[pickled]()
            if os.getpid() != process:  # the environment has called os.fork, and its child came here, too
                os._exit(0)
            if not isinstance(env, gymnasium.Env):
                raise InvalidArgument(
                    f"env_fns[{first_env + len(envs)}]: expected a function that returns a gymnasium.Env, found one "
                    f"that returns a {type(env).__name__}{_PARALLEL if hasattr(env, 'possible_agents') else ''}"
                )
            render_modes.append(env.render_mode)
            envs.append(env)
            _check_spaces(env, envs[0], first_env + len(envs) - 1, first_env)
        first = envs[0]
        attributes = {"metadata": first.metadata, "render_modes": render_modes, "spec": first.spec}
        space_pair = cloudpickle.dumps((first.observation_space, first.action_space))
        report = Report(space_pair, cloudpickle.dumps(attributes), nodes_of(envs))
    except BaseException as error:
        text = failure_text(error, f"when environment {first_env + len(envs)} was made")
        trainer.send(("failed", text))
        return None
    trainer.send(("made", report))
    return envs


def _check_spaces(env: Any, first: Any, env_id: int, first_id: int) -> None:
    for name in ("observation_space", "action_space"):
        if (found := getattr(env, name)) != (expected := getattr(first, name)):
            raise InvalidArgument(different_spaces(name, env_id, found, first_id, expected))


def different_spaces(name: str, env_id: int, found: Any, first_id: int, expected: Any) -> str:
    """Returns the text of the error for two environments whose spaces differ."""
    return (
        f"env_fns: expected environments with equal spaces, found {name} {found} of environment {env_id}, and "
        f"{expected} of environment {first_id}"
    )


def _own_options(options: Any, worker: int) -> Any:
    return options.options[worker] if isinstance(options, OptionsOfWorkers) else options


class _Worker:
    """The environments of a worker in their region."""

    def __init__(
        self,
        worker: int,
        envs: list[gymnasium.Env[Any, Any]],
        side: _native.NativeWorker,
        serving: Serving,
        files: Files,
        trainer: Channel,
        supervisor: int,
        answers: int,
        answered: int,
    ) -> None:
        self._envs, self._side, self._trainer, self._supervisor = envs, side, trainer, supervisor
        self._requests, self._answers = SharedValue(files.requests), answers
        self._answered = answered
        self._name = serving.name
        self._told: set[str] = set()  # errors of truncated episodes
        observation_space, action_space = pickle.loads(serving.spaces)
        first, count = side.first_env, side.num_envs
        area = mmap.mmap(files.infos, serving.info_bytes, offset=worker * serving.info_bytes)
        self._failures = failures_in(files.failures)
        columns: Any = {name: array[first : first + count] for name, array in side.arrays.items()} | {
            role: side.fields[role, ""][first : first + count]
            for role in ("reward", "status", "episode_return", "episode_length")
        }
        self._rows = _native.EnvRows(
            envs,
            RowArrays(**columns),
            observations=Observations(
                observation_space,
                count,
                *arrays_of(side.fields, "obs", observation_space, first, count),
                first_env=first,
            ),
            final_observations=Observations(
                observation_space,
                count,
                *arrays_of(side.fields, "final_obs", observation_space, first, count),
                first_env=first,
            ),
            actions=Actions(
                action_space, count, *arrays_of(side.fields, "action", action_space, first, count), first_env=first
            ),
            info_area=np.frombuffer(area, np.uint8),
            current=side.current,
            stop=Stop,
            failure=self._failure,
            truncation=self._truncation if serving.truncates else None,
            first_env=first,
            restarted=side.restarted,
        )
        env_states.rows, env_states.first_env = self._rows, first
        self._painter = self._poser = None
        rewards = side.fields["reward", ""][first : first + count]
        if serving.scene is not None:
            model_file = f"/proc/self/fd/{files.model}"
            self._poser = ScenePoser(files.scene, model_file, serving.scene, first, envs, self._rows, rewards)
        if serving.frames is not None:
            buffer = FrameBuffer(files.frames, serving.frames)
            self._painter = FramePainter(buffer, serving.frames, worker, first, envs, self._rows, rewards, side.current)

    def _failure(self, env: gymnasium.Env[Any, Any], env_id: int, error: BaseException, episode: int, step: int) -> str:
        self._failures[env_id] = episode, step  # before the text reaches the trainer
        return failure(env, env_id, error, episode, step)

    def _truncation(
        self, env: gymnasium.Env[Any, Any], env_id: int, error: BaseException, episode: int, step: int
    ) -> dict[str, Any]:
        """Returns the infos of the episode's end; prints the traceback of an error that it has not printed before."""
        line = one_line(error)
        text = self._failure(env, env_id, error, episode, step)
        if line not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(line)
            sys.stderr.write(f"{text}the episode is truncated, and training goes on (on_error); told once\n")
            sys.stderr.flush()
        return {"env_failed": True, "env_error": line[:_LONGEST_ERROR]}

    def serve(self) -> None:
        """Steps the environments until the supervisor stops it, or the trainer is gone; then closes them."""
        while (event := self._side.serve(self._rows, _WAIT_SECS)) in ("message", "timed out"):
            if event == "message":
                self._answer()
                if self._painter is not None:
                    self._painter.paint()
                if self._poser is not None:
                    self._poser.copy()
                self._side.acknowledge()
            elif self._trainer.other_end_is_closed():
                self._end_all()
                return
        for env in self._envs:
            with contextlib.suppress(Exception):  # the trainer does not wait for an answer
                env.close()

    def _end_all(self) -> None:
        """Does what a supervisor that is not stopped does when the trainer is gone: ends all, removes the region."""
        set_parent_death_signal(0)
        while os.getppid() == self._supervisor:
            os.kill(self._supervisor, signal.SIGKILL)  # which also kills the other workers
            time.sleep(0.001)
        _native.remove_if_dead(self._name)

    def _answer(self) -> None:
        """Calls the function(env, env_id) of the latest request for each of its environments that is meant."""
        number = self._requests.number()
        if number <= self._answered:
            return
        try:
            number, (pickled, env_ids) = self._requests.read()
            function = pickle.loads(pickled)
            first = self._side.first_env
            results = []
            for row, env in enumerate(self._envs):
                if env_ids is None or first + row in env_ids:
                    self._side.current[0] = first + row
                    results.append(function(env, first + row))
            kind, data = "results", cloudpickle.dumps(results)
        except BaseException as error:  # of an environment; also SystemExit, as its `step` may raise it
            missing = isinstance(error, AttributeError)
            kind, data = "raised", pickle.dumps((missing, "".join(traceback.format_exception(error))))
        self._side.current[0] = _native.NO_ENVIRONMENT
        os.truncate(self._answers, 0)
        for begin in range(0, len(data), _PART_BYTES):
            os.pwrite(self._answers, data[begin : begin + _PART_BYTES], begin)
        self._answered = number
        self._trainer.send((kind, number, len(data)))
