"""`WorkerProcesses`: the supervisor and the workers of a vector environment, as the trainer process sees them."""

import contextlib
import mmap
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from tandem import _native, errors
from tandem.arguments import shown
from tandem.errors import (
    ConcurrentUse,
    EngineStartFailed,
    EnvFailed,
    ForkedChild,
    InvalidArgument,
    PeerGone,
    StepTimeout,
    TandemError,
)
from tandem.handles import ClosesOnExit, NotPicklable
from tandem.workers.channel import Channel
from tandem.workers.frames import FrameBoard, FramePlan
from tandem.workers.infos import InfoArea
from tandem.workers.launch import environ, launched
from tandem.workers.row_fields import FieldsPlan, plan_fields
from tandem.workers.shared_value import SharedValue
from tandem.workers.supervisor import Start
from tandem.workers.worker import Serving, different_spaces
from tandem.workers.worker_handle import WorkerHandle

_NEWS_SECS = 0.2  # for the supervisor to start a worker again
_STACK_SECS = 0.3  # for a worker to write its stacks
_GRACE_SECS = 5.0  # for environments to close

# Channels to supervisors. When this process's end closes, its supervisor knows that the trainer is gone. A forked child
# must not keep it open.
_channels: "weakref.WeakSet[Channel]" = weakref.WeakSet()


def _close_channels_in_child() -> None:
    for channel in list(_channels):
        channel.close()


os.register_at_fork(after_in_child=_close_channels_in_child)


class EnvAttributeError(EnvFailed, AttributeError):
    """An environment has no attribute of this name."""


class Request(NamedTuple):
    """A request of the trainer's to all workers.

    Attributes:
      what: The call, for error messages.
      number: Of the request.
      answers: Kind and pickle of each worker's answer, once it has come.
    """

    what: str
    number: int
    answers: list[tuple[str, bytes] | None]


class WorkerProcesses(ClosesOnExit, NotPicklable):
    """Starts processes that make and step environments, and serve them in a region.

    Attributes:
      name: Of the region.
      num_envs: Number of environments.
      observation_space: Of one environment.
      action_space: Of one environment.
      metadata: Of the first environment.
      render_mode: Of the first environment.
      spec: Of the first environment.
      fields: What the region's fields are.
      info_areas: Of all workers.
      is_asked: Whether answers to the latest request are awaited: a worker may be inside a call.
      wake_supervisor: Wakes the supervisor after a message, which it otherwise sees within 10 ms. A client of the
        region has this function.
    """

    _instead = "its workers belong to this process; pass the environment functions, and start workers there"

    def __init__(
        self,
        env_fns: Sequence[bytes],
        num_workers: int,
        *,
        preload: Sequence[str] = (),
        restarts: bool = False,
        info_bytes: int | None = None,
        object_bytes: int = 2**16,
        wait_strategy: str = "adaptive",
        start_timeout: float = 60.0,
        frames: FramePlan | None = None,
    ) -> None:
        """Starts the processes; returns when all environments are made and served.

        Args:
          env_fns: A pickle of each environment's function.
          num_workers: Number of worker processes; at most one for each environment.
          preload: Modules to import once, before the workers are forked; they must start no threads.
          restarts: Whether a worker that dies is started again.
          info_bytes: Room for each worker's infos; None: 64 KiB, and 1 KiB for each of its environments.
          object_bytes: Longest pickle of a part of an observation or action without a type of its own.
          wait_strategy: How workers wait, as for `SharedMemoryClient`.
          start_timeout: Seconds that making the environments may take.
          frames: What viewers are shown; None: nothing.

        Raises:
          EngineStartFailed: An environment could not be made, or not in time; the message has the traceback or stacks.
            Or the environments have different spaces.
          InvalidArgument: The environments have another render mode than "rgb_array", and there are frames.
          Unsupported: As `tandem.spaces.fields.layout`.
        """
        self.name = f"tandem-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self.num_envs = len(env_fns)
        self._owner = os.getpid()
        each, more = divmod(self.num_envs, num_workers)  # as PlanWorkers in C++
        counts = [each + (index < more) for index in range(num_workers)]
        firsts = [sum(counts[:index]) for index in range(num_workers)]
        self._workers = [WorkerHandle(first, count) for first, count in zip(firsts, counts, strict=True)]
        most = max(counts)
        self._info_bytes = _whole_pages(2**16 + 2**10 * most if info_bytes is None else info_bytes)
        self._info_file = os.memfd_create("tandem-infos", os.MFD_CLOEXEC)
        os.truncate(self._info_file, self._info_bytes * num_workers)
        self._options, self._requests = SharedValue.new("tandem-options"), SharedValue.new("tandem-requests")
        self._has_options = False
        self._restarts = restarts
        self._in_call = threading.Lock()
        self.is_asked = False
        self.wake_supervisor: Callable[[], None] = lambda: None
        deadline = time.monotonic() + start_timeout
        self._files = [self._info_file, self._options.fd, self._requests.fd]
        self._frames = frames
        if frames is not None:
            self._files.append(os.memfd_create("tandem-frames", os.MFD_CLOEXEC))
            os.truncate(self._files[-1], FrameBoard.bytes_of(frames))
        self._process, self._supervisor = launched()
        _channels.add(self._supervisor)
        try:
            rows = [(worker.first_env, worker.num_envs) for worker in self._workers]
            start = Start(list(sys.path), environ(), list(preload), list(env_fns), rows, restarts)
            self._supervisor.send(("start", start), self._files)
            self._await_environments(deadline)
            self.fields = self._plan(object_bytes)
            self._open(wait_strategy, deadline)
        except BaseException:
            self.close(0.0)  # workers that do not serve yet cannot be asked to end
            raise

    def _plan(self, object_bytes: int) -> FieldsPlan:
        first = self._workers[0]
        assert first.report is not None
        self.observation_space, self.action_space = pickle.loads(first.report.spaces)
        for worker in self._workers[1:]:
            assert worker.report is not None
            if worker.report.spaces == first.report.spaces:
                continue
            found = pickle.loads(worker.report.spaces)
            for name, one, other in zip(
                ("observation_space", "action_space"), found, (self.observation_space, self.action_space), strict=True
            ):
                if one != other:
                    text = different_spaces(name, worker.first_env, one, first.first_env, other)
                    raise EngineStartFailed(f"workers: {text}")
        self._check_render_modes()
        attributes = pickle.loads(first.report.attributes)
        self.metadata: dict[str, Any] = attributes["metadata"]
        self.render_mode: str | None = attributes["render_mode"]
        self.spec = attributes["spec"]
        return plan_fields(self.observation_space, self.action_space, object_bytes)

    def _check_render_modes(self) -> None:
        for env_id in () if self._frames is None else self._frames.envs:
            worker = next(each for each in self._workers if env_id < each.first_env + each.num_envs)
            assert worker.report is not None
            if (mode := pickle.loads(worker.report.attributes)["render_mode"]) != "rgb_array":
                raise InvalidArgument(
                    f"frames: expected environments with render_mode 'rgb_array', found {mode!r}; pass "
                    'env_kwargs={"render_mode": "rgb_array"}, or a function that makes them so'
                )

    def _open(self, wait_strategy: str, deadline: float) -> None:
        """Makes the region, and lets the workers take their slots."""
        first = self._workers[0]
        assert first.report is not None
        serving = Serving(self.name, first.report.spaces, self._info_bytes, wait_strategy, self._frames)
        spec = {
            "num_envs": self.num_envs,
            "num_workers": len(self._workers),
            "obs_size": self.fields.obs_size,
            "act_size": self.fields.act_size,
            "task": _task_name(self.spec),
            "fields": self.fields.fields,
        }
        self._supervisor.send(("region", self.name, spec, serving))
        (region,) = self._next_of_supervisor("region", deadline)
        for worker in self._workers:
            assert worker.channel is not None
            worker.channel.send(("serve", serving), [region])
        os.close(region)
        self._next_of_supervisor("opened", deadline)
        areas = np.frombuffer(mmap.mmap(self._info_file, self._info_bytes * len(self._workers)), np.uint8)
        self.info_areas = [
            InfoArea(worker.first_env, worker.num_envs, area)
            for worker, area in zip(self._workers, np.split(areas, len(self._workers)), strict=True)
        ]

    def _next_of_supervisor(self, kind: str, deadline: float) -> list[int]:
        """Awaits a message of this kind and returns its descriptors."""
        while True:
            try:
                message, fds = self._supervisor.receive(max(deadline - time.monotonic(), 0.0))
            except TimeoutError:
                raise EngineStartFailed(
                    f"workers: expected them to serve in time, found none;{self.stacks()}"
                ) from None
            except (EOFError, ConnectionError):
                raise EngineStartFailed(
                    f"workers: expected a supervisor that serves, found that it ended: {self._how_supervisor_ended()}"
                ) from None
            if message[0] == "refused":
                raise errors.from_native(message[1], message[2], self.name)
            if message[0] == "worker":
                self._adopt(message[1], fds[0])
            elif message[0] == kind:
                return fds

    def _adopt(self, index: int, fd: int) -> None:
        """Takes over the channel of a worker's process."""
        worker = self._workers[index]
        if worker.channel is not None:
            worker.channel.close()
        worker.channel = Channel.of_fd(fd)
        _channels.add(worker.channel)

    def _await_environments(self, deadline: float) -> None:
        while any(worker.report is None for worker in self._workers):
            late = [worker for worker in self._workers if worker.channel is not None and worker.report is None]
            fds = [worker.channel.fileno() for worker in late if worker.channel is not None]
            ready = wait([self._supervisor.fileno(), *fds], max(deadline - time.monotonic(), 0.0))
            if not ready:
                indices = [index for index, worker in enumerate(self._workers) if worker.report is None]
                raise EngineStartFailed(
                    f"workers: expected all environments in time, found that workers {indices} still make theirs; "
                    f"raise EngineOptions.start_timeout, or see where they are:{self.stacks()}"
                )
            for worker, fd in zip(late, fds, strict=True):
                if fd in ready:
                    self._take_report(worker)
            if self._supervisor.fileno() in ready:
                try:
                    self._take_news()
                except PeerGone as error:
                    raise EngineStartFailed(str(error)) from None

    def _take_news(self) -> None:
        """Takes the channels of workers that the supervisor has started."""
        while self._supervisor.is_readable():
            try:
                message, fds = self._supervisor.receive()
            except (EOFError, ConnectionError):
                raise PeerGone(
                    f"workers: expected a supervisor, found that it ended: {self._how_supervisor_ended()}"
                ) from None
            if message[0] == "worker":
                self._adopt(message[1], fds[0])

    def _take_report(self, worker: WorkerHandle) -> None:
        assert worker.channel is not None
        try:
            message, fds = worker.channel.receive()
        except (EOFError, ConnectionError):
            raise EngineStartFailed(
                f"workers: expected environments, found that the worker of {worker} ended while it made them"
            ) from None
        if message[0] == "failed":
            raise EngineStartFailed(f"workers: an environment could not be made:\n{message[1]}")
        self._note(worker, message, fds)

    def _note(self, worker: WorkerHandle, message: Any, fds: list[int]) -> None:
        """Notes what a process says of itself."""
        if message[0] == "hello":
            worker.pid, worker.answered = message[1:]
            worker.close()
            worker.stacks, worker.answers = fds
            with contextlib.suppress(OSError):  # it has ended
                worker.process = os.pidfd_open(worker.pid)
        elif message[0] == "made":
            worker.report = message[1]

    def apply(
        self, what: str, function: Callable[[Any, int], Any], timeout: float, env_ids: Sequence[int] | None = None
    ) -> list[Any]:
        """Calls function(env, env_id) for each environment, in the workers, and returns the results in order.

        Function and results are pickled.

        Args:
          what: The call, for error messages, such as "call('render')".
          function: May be of any kind that cloudpickle can pickle.
          timeout: Seconds that all may take.
          env_ids: None: all environments. The results are in ascending order all the same.

        Raises:
          InvalidArgument: The function cannot be pickled.
          EnvFailed: The function raised an exception, or its result cannot be pickled.
          PeerGone: A worker has ended.
          StepTimeout: A worker did not answer in time; the message has its stack.
        """
        deadline = time.monotonic() + timeout
        with self._alone_in(what):
            return self._results(self._requested(what, function, env_ids), deadline)

    def request(self, what: str, function: Callable[[Any, int], Any], env_ids: Sequence[int] | None = None) -> Request:
        """Does as `apply`, but returns at once; `results` returns the results."""
        with self._alone_in(what):
            return self._requested(what, function, env_ids)

    def results(self, request: Request, timeout: float) -> list[Any]:
        """Awaits the results of the latest request; errors are those of `apply`. After a StepTimeout it may go on."""
        deadline = time.monotonic() + timeout
        with self._alone_in(request.what):
            return self._results(request, deadline)

    @contextlib.contextmanager
    def _alone_in(self, what: str) -> Iterator[None]:
        if self._owner != os.getpid():
            raise ForkedChild("workers: expected the process that started them, found a forked child; make new ones")
        if not self._in_call.acquire(blocking=False):
            raise ConcurrentUse(f"{what}: expected one call at a time, found another thread inside one")
        try:
            yield
        finally:
            self._in_call.release()

    def _requested(self, what: str, function: Callable[[Any, int], Any], env_ids: Sequence[int] | None) -> Request:
        try:
            number = self._requests.write((cloudpickle.dumps(function), env_ids))
        except Exception as error:  # of any object's __reduce__
            raise InvalidArgument(f"{what}: expected arguments that can be pickled, found others: {error}") from error
        self._take_news()
        self._supervisor.send(("message",))
        self.wake_supervisor()
        self.is_asked = True
        return Request(what, number, [None] * len(self._workers))

    def _results(self, request: Request, deadline: float) -> list[Any]:
        what, answers = request.what, request.answers
        try:
            for index, known in enumerate(answers):
                answers[index] = self._answer(index, request.number, deadline) if known is None else known
        except PeerGone:
            self.is_asked = False
            raise
        self.is_asked = False
        results: list[Any] = []
        for worker, answered in zip(self._workers, answers, strict=True):
            assert answered is not None
            kind, data = answered
            answer = pickle.loads(data)
            if kind == "results":
                results += answer
                continue
            missing, text = answer
            error_class = EnvAttributeError if missing else EnvFailed
            raise error_class(f"{what}: an environment raised an exception; worker of {worker}:\n{text}")
        return results

    def _answer(self, index: int, number: int, deadline: float) -> tuple[str, bytes]:
        """Awaits a worker's answer to a request; drops answers to earlier ones."""
        worker = self._workers[index]
        gone = PeerGone(f"workers: expected an answer of worker {index} ({worker}), found that it has ended")
        while True:
            channel = worker.channel
            assert channel is not None
            try:
                message, fds = channel.receive(max(deadline - time.monotonic(), 0.0))
            except TimeoutError:
                raise StepTimeout(
                    f"workers: expected answers in time, found none of worker {index} ({worker});{self.stacks()}"
                ) from None
            except (EOFError, ConnectionError):
                if not self._restarts:
                    raise gone from None
                wait([self._supervisor.fileno()], _NEWS_SECS)
                self._take_news()
                if worker.channel is channel:  # it was not started again
                    raise gone from None
                continue
            if message[0] in ("results", "raised"):
                if message[1] == number:
                    return message[0], worker.read_answer(message[2])
                continue
            self._note(worker, message, fds)
            if worker.answered >= number:  # it was started after the request, in which another process may have died
                raise gone

    def stacks(self, workers: Sequence[int] | None = None) -> str:
        """Returns the Python stacks of workers' processes, as text for an error message; "" if there are none.

        A process that is stopped, or that the kernel holds in a system call, writes none.

        Args:
          workers: Indices; None: all that have begun.
        """
        if self._owner != os.getpid():
            return ""
        chosen = range(len(self._workers)) if workers is None else workers
        asked = [index for index in chosen if self._workers[index].ask_for_stack()]
        deadline = time.monotonic() + _STACK_SECS
        return "".join(
            f"\nworker {index} ({self._workers[index]}): {self._workers[index].stack(deadline)}" for index in asked
        )

    def poll(self) -> int | None:
        """Returns the exit code of the supervisor, or None while it runs."""
        return self._process.poll()

    def _how_supervisor_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        return f"exit code {self._process.returncode}"

    def close(self, secs: float = _GRACE_SECS) -> None:
        """Ends all processes: lets the environments close, and kills those that take longer.

        Args:
          secs: For the environments. 0: kills at once.
        """
        if self._owner != os.getpid():
            return
        with contextlib.suppress(OSError):
            self._supervisor.send(("close", secs))
            self._process.send_signal(signal.SIGCONT)  # it may be stopped
        try:
            self._process.wait(secs + 2.0)
        except subprocess.TimeoutExpired:  # a debugger has stopped it
            self._process.kill()  # the kernel kills the workers with it
            self._process.wait()
        finally:
            self._release()
            with contextlib.suppress(TandemError):  # a supervisor that was killed leaves it
                _native.remove_if_dead(self.name)

    def _release(self) -> None:
        """Closes all descriptors; the supervisor then ends. A second call has no effect."""
        self._supervisor.close()
        for worker in self._workers:
            if worker.channel is not None:
                worker.channel.close()
            worker.close()
        for fd in self._files:
            os.close(fd)
        self._files = []

    def __del__(self) -> None:
        """Ends the processes, without waiting, if `close` was not called."""
        if hasattr(self, "_supervisor"):
            self._release()

    def set_reset_options(self, options: Any) -> None:
        """Sets what the environments' `reset` gets; InvalidArgument: it cannot be pickled."""
        if options is None and not self._has_options:
            return
        try:
            self._options.write(options)
        except Exception as error:  # of any object's __reduce__
            raise InvalidArgument(f"options: expected what can be pickled, found {shown(options)}: {error}") from error
        self._has_options = options is not None


def _whole_pages(count: int) -> int:
    return -(-count // mmap.PAGESIZE) * mmap.PAGESIZE


def _task_name(spec: Any) -> str:
    """Returns the text that inspectors show; at most 63 bytes."""
    return (spec.id if spec is not None else "Python").encode()[:63].decode(errors="ignore")
