"""`WorkerProcesses`: the supervisor and the workers of a vector environment, as the trainer process sees them."""

import contextlib
import mmap
import os
import pickle
import sys
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from tandem import _native, errors
from tandem.arguments import shown
from tandem.engine.default_name import default_name
from tandem.engine.options import WorkerOptions
from tandem.errors import EngineStartFailed, InvalidArgument, PeerGone, TandemError
from tandem.handles import ClosesOnExit, NotPicklable
from tandem.workers.calls import Calls
from tandem.workers.frames import FrameBuffer, FramePlan
from tandem.workers.infos import InfoArea
from tandem.workers.launch import environ, launched, make_room_for_files
from tandem.workers.memory_files import MemoryFiles
from tandem.workers.row_fields import FieldsPlan, plan_fields
from tandem.workers.scenes import ScenePlan
from tandem.workers.supervisor import Start
from tandem.workers.worker import Serving, different_spaces, failures_in
from tandem.workers.worker_handle import WorkerHandle
from tandem.workers.worker_pool import NEWS_SECS, Deadline, WorkerPool

_GRACE_SECS = 5.0  # for environments to close
_FILES_OF_WORKER, _OTHER_FILES = 4, 32  # that this process opens: channel, pidfd, stacks, answers; for all workers


class WorkerProcesses(ClosesOnExit, NotPicklable):
    """Starts processes that make and step environments, and serve them in a region.

    The spaces are of one environment; `metadata`, `render_mode` and `spec` of the first. `fields` is what the region's
    fields are. `info_areas` of all workers and `failures`, as `worker.Files.failures`, are empty after `close`.
    """

    _instead = "its workers belong to this process; pass the environment functions, and start workers there"

    def __init__(
        self,
        env_fns: Sequence[bytes],
        num_workers: int,
        options: WorkerOptions,
        *,
        preload: Sequence[str] = (),
        frames: FramePlan | None = None,
    ) -> None:
        """Starts the processes; returns when all environments are made and served.

        `env_fns` are pickles of the environments' functions; there is at most one worker for each. `preload` names
        modules to import once, before the workers are forked; they must start no threads. `frames` is what viewers are
        shown.

        Raises:
          EngineStartFailed: An environment could not be made, or not in time; the message has the traceback or stacks.
            Or the environments have different spaces.
          InvalidArgument: The environments have another render mode than "rgb_array", and there are frames.
          Unsupported: As `tandem.spaces.fields.layout`.
          SystemCallFailed: This process may not have so many open files.
        """
        self.name = default_name()
        self.num_envs = len(env_fns)
        self._owner = os.getpid()
        each, more = divmod(self.num_envs, num_workers)  # as PlanWorkers in C++
        counts = [each + (index < more) for index in range(num_workers)]
        firsts = [sum(counts[:index]) for index in range(num_workers)]
        self._workers = [WorkerHandle(first, count) for first, count in zip(firsts, counts, strict=True)]
        most = max(counts)
        self._info_bytes = _whole_pages(2**16 + 2**10 * most if options.info_bytes is None else options.info_bytes)
        self._has_options = False
        self._truncates = options.on_error == "truncate"
        self._frames = frames
        self.info_areas: list[InfoArea] = []
        make_room_for_files(_FILES_OF_WORKER * num_workers + _OTHER_FILES)
        deadline = Deadline(options.start_timeout)
        with contextlib.ExitStack() as started:
            frame_bytes = 0 if frames is None else FrameBuffer.bytes_of(frames)
            self._files = started.enter_context(
                MemoryFiles(self._info_bytes * num_workers, 8 * num_workers, 16 * self.num_envs, frame_bytes)
            )
            self._process, self._supervisor, _ = supervisor = launched()
            started.pop_all()
        self.pool = WorkerPool(self._workers, supervisor, self._files.imports)
        self.failures = failures_in(self._files.failures)
        self.calls = Calls(
            self.pool, self._files.requests, options.timeout if options.call_timeout is None else options.call_timeout
        )
        try:
            rows = [(worker.first_env, worker.num_envs) for worker in self._workers]
            start = Start(list(sys.path), environ(), list(preload), list(env_fns), rows, options.restart)
            with contextlib.suppress(ConnectionError):  # it has ended; the wait has the reason
                self._supervisor.send(("start", start), self._files.fds)
            self._await_environments(deadline)
            self.fields = self._plan(options.object_bytes)
            self._open(options.wait, deadline)
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
        reports = [worker.report for worker in self._workers if worker.report is not None]
        self._scene = ScenePlan(self.num_envs, max(report.scene_nodes for report in reports))
        attributes = pickle.loads(first.report.attributes)
        self.metadata: dict[str, Any] = attributes["metadata"]
        self.render_mode: str | None = attributes["render_modes"][0]
        self.spec = attributes["spec"]
        return plan_fields(self.observation_space, self.action_space, object_bytes)

    def _check_render_modes(self) -> None:
        if self._frames is None:
            return
        reports = [worker.report for worker in self._workers if worker.report is not None]
        modes = [mode for report in reports for mode in pickle.loads(report.attributes)["render_modes"]]
        for env_id in self._frames.envs:
            if modes[env_id] != "rgb_array":
                raise InvalidArgument(
                    f"frames: expected environments with render_mode 'rgb_array', found {modes[env_id]!r} of "
                    f'environment {env_id}; pass render_mode="rgb_array", or a function that makes them so'
                )

    def _open(self, wait_strategy: str, deadline: Deadline) -> None:
        """Makes the region, and lets the workers take their slots."""
        first = self._workers[0]
        assert first.report is not None
        scene = self._scene if self._scene.nodes > 0 else None
        if scene is not None:
            os.truncate(self._files.scene, scene.size)
        serving = Serving(
            self.name, first.report.spaces, self._info_bytes, wait_strategy, self._truncates, self._frames, scene
        )
        spec = {
            "num_envs": self.num_envs,
            "num_workers": len(self._workers),
            "obs_size": self.fields.obs_size,
            "act_size": self.fields.act_size,
            "task": _task_name(self.spec),
            "fields": self.fields.fields,
        }
        with contextlib.suppress(ConnectionError):  # as above
            self._supervisor.send(("region", self.name, spec, serving))
        (region,) = self._next_of_supervisor("region", deadline)
        try:
            for worker in self._workers:
                assert worker.channel is not None
                with contextlib.suppress(ConnectionError):  # as above
                    worker.channel.send(("serve", serving), [region])
        finally:
            os.close(region)
        self._next_of_supervisor("opened", deadline)
        areas = np.frombuffer(mmap.mmap(self._files.infos, self._info_bytes * len(self._workers)), np.uint8)
        self.info_areas = [
            InfoArea(worker.first_env, worker.num_envs, area)
            for worker, area in zip(self._workers, np.split(areas, len(self._workers)), strict=True)
        ]

    def _next_of_supervisor(self, kind: str, deadline: Deadline) -> list[int]:
        """Awaits a message of this kind and returns its descriptors."""
        while True:
            try:
                message, fds = self._supervisor.receive(deadline.left())
            except TimeoutError:
                raise EngineStartFailed(
                    f"workers: expected them to serve in time, found none;{self.stacks()}"
                ) from None
            except (EOFError, ConnectionError):
                raise self._start_failed() from None
            if message[0] == "refused":
                raise errors.from_native(message[1], message[2], self.name)
            if message[0] == kind:
                return fds
            self.pool.note_news(message, fds)

    def _start_failed(self) -> EngineStartFailed:
        return EngineStartFailed(f"workers: expected them to serve, found that {self.pool.how_it_ended()}")

    def _await_environments(self, deadline: Deadline) -> None:
        while indices := [index for index, worker in enumerate(self._workers) if worker.report is None]:
            late = [self._workers[index] for index in indices if self._workers[index].channel is not None]
            fds = [worker.channel.fileno() for worker in late if worker.channel is not None]
            ready = wait([self._supervisor.fileno(), *fds], deadline.left())
            if not ready and not self.pool.extended(deadline, indices):
                raise EngineStartFailed(
                    f"workers: expected all environments in time, found that workers {indices} still make theirs; "
                    f"raise WorkerOptions.start_timeout, or see where they are:{self.stacks()}"
                )
            try:
                for worker, fd in zip(late, fds, strict=True):
                    if fd in ready:
                        self._take_report(worker)
            except (EOFError, ConnectionError):  # it has ended; the supervisor says how, or has killed it
                ready = wait([self._supervisor.fileno()], NEWS_SECS)
                if not ready:
                    raise EngineStartFailed(
                        f"workers: expected environments, found that a worker ({worker}) ended"
                    ) from None
            if self._supervisor.fileno() in ready:
                self._take_news()

    def _take_news(self) -> None:
        try:
            self.pool.take_news("make_vec")
            if not self.pool.reason:
                return
        except PeerGone:
            pass
        for worker in self._workers:  # one that could not make an environment says more
            with contextlib.suppress(EOFError, ConnectionError):
                while worker.channel is not None and worker.channel.is_readable():
                    self._take_report(worker)
        raise self._start_failed()

    def _take_report(self, worker: WorkerHandle) -> None:
        assert worker.channel is not None
        message, fds = worker.channel.receive()
        if message[0] == "failed":
            raise EngineStartFailed(f"workers: an environment could not be made:\n{message[1]}")
        self.pool.note(worker, message, fds)

    def stacks(self, workers: Sequence[int] | None = None) -> str:
        """Returns the Python stacks of workers' processes, as `WorkerPool.stacks`."""
        return self.pool.stacks(workers)

    def poll(self) -> int | None:
        """Returns the exit code of the supervisor, or None while it runs."""
        return self._process.poll()

    def close(self, secs: float = _GRACE_SECS) -> None:
        """Ends all processes: lets the environments close, and kills those that take more than `secs`; 0: at once."""
        if self._owner != os.getpid():
            return
        try:
            self.pool.end(secs)
        finally:
            self._release()
            with contextlib.suppress(TandemError):  # a supervisor that was killed leaves it
                _native.remove_if_dead(self.name)

    def _release(self) -> None:
        """Closes all descriptors; the supervisor then ends. A second call has no effect."""
        errors.details.pop(self.name, None)
        self.pool.release()
        self._files.close()
        self.info_areas = []
        self.failures = np.empty((0, 2), np.int64)  # unmaps the file

    def __del__(self) -> None:
        """Ends the processes, without waiting, if `close` was not called."""
        if hasattr(self, "pool"):
            self._release()

    def set_reset_options(self, options: Any) -> None:
        """Sets what the environments' `reset` gets; InvalidArgument: it cannot be pickled."""
        if options is None and not self._has_options:
            return
        try:
            self._files.options.write(options)
        except Exception as error:  # of any object's __reduce__
            raise InvalidArgument(f"options: expected what can be pickled, found {shown(options)}: {error}") from error
        self._has_options = options is not None


def _whole_pages(count: int) -> int:
    return -(-count // mmap.PAGESIZE) * mmap.PAGESIZE


def _task_name(spec: Any) -> str:
    """Returns the text that inspectors show; at most 63 bytes."""
    return (spec.id if spec is not None else "Python").encode()[:63].decode(errors="ignore")
