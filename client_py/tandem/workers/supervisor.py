"""The supervisor process: forks the workers, owns the region, and watches all others.

The trainer executes it as `python -m tandem.workers FD STDERR`, with a log as its standard error, which it replaces by
the descriptor STDERR once it works. It is not on the path of a step. Messages:

| message | from | meaning |
|---|---|---|
| ("start", Start), with its Files | trainer | fork the workers |
| ("worker", index, text), with a channel | supervisor | a worker was started; text: in place of which one, that ended |
| ("ended", text) | supervisor | a worker has ended, which is not started again: the supervisor ends, too |
| ("region", name, spec, Serving) | trainer | make the region |
| ("region",), with the region | supervisor | it is made, without a name |
| ("opened",) | supervisor | all workers have their slots, and the region has its name |
| ("refused", class, text) | supervisor | the region could not be made or opened |
| ("message",) | trainer | order all workers to read a message of the trainer's |
| ("close", seconds) | trainer | stop the workers; after these seconds, kill them |

When the trainer's end of the channel closes, the supervisor kills its workers, and the region disappears.
"""

import contextlib
import dataclasses
import gc
import importlib
import mmap
import os
import pickle
import random
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from tandem.engine.program import find
from tandem.errors import OUT_OF_MEMORY, TandemError, how_it_ended
from tandem.workers import worker as worker_process
from tandem.workers.channel import Channel
from tandem.workers.env_failures import one_line
from tandem.workers.frames import FrameBuffer, FramePace
from tandem.workers.worker import set_parent_death_signal
from tandem.workers.worker_handle import WorkerHandle

if TYPE_CHECKING:
    from tandem._engine import NativeSupervisor

_LONG_SECS = 3600.0

_CRASHED = "make one in a program of its own, by python -X faulthandler, which shows where"

# A worker that ends more often than so many times in so many seconds is not started again.
_MOST_RESTARTS = 5
_RESTARTS_SECS = 60.0


class Start(NamedTuple):
    """What the supervisor needs to start the workers: `sys.path`, variables and pickled functions of the trainer.

    `preload` names modules to import before the workers are forked; `rows` has the first environment and the number of
    environments of each worker; `restarts`: whether a worker that died is started again.
    """

    path: list[str]
    environ: dict[str, str]
    preload: list[str]
    env_fns: list[bytes]
    rows: list[tuple[int, int]]
    restarts: bool


def main(arguments: list[str]) -> int:
    """Runs the supervisor; returns the exit code."""
    if len(arguments) not in (2, 3) or not all(map(str.isdecimal, arguments)):
        print(
            "usage: python -m tandem.workers FD STDERR: tandem.make_vec executes it; no use for people", file=sys.stderr
        )
        return 2
    fd, stderr, *again = map(int, arguments)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a program inherits the mask, and which signals are ignored
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else the kernel drops the exit codes of workers
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the region is removed
    trainer = Channel.of_fd(fd)
    try:
        if again:
            with open(again[0], "rb") as file:
                start, fds = pickle.load(file)
        else:
            _take_stderr(stderr)
            (_, start), fds = trainer.receive()
        sys.path[:] = start.path
        threads = os.listdir("/proc/self/task")
        for module in start.preload:
            with contextlib.suppress(Exception):  # a worker that needs it reports why
                importlib.import_module(module)
        if os.listdir("/proc/self/task") != threads:
            _execute_again(trainer, start, fds)
        os.environ.clear()
        os.environ.update(start.environ)
        gc.collect()
        gc.freeze()  # so that collections in the workers do not copy these objects
        _Supervisor(trainer, start, worker_process.Files(*fds)).run()
    except (EOFError, BrokenPipeError):
        return 1  # the kernel kills the workers: PR_SET_PDEATHSIG
    finally:
        trainer.close()
    return 0


def _engine_program() -> str:
    """Returns the path of tandem-engine, which converts models; or one that does not exist."""
    try:
        return str(find())
    except TandemError:
        return "tandem-engine"


def _take_stderr(fd: int) -> None:
    """Makes a descriptor the standard error, and copies to it what the log has got so far."""
    with contextlib.suppress(OSError):  # its reader may be gone
        os.write(fd, os.pread(2, 2**20, 0))
    os.truncate(2, 0)
    os.dup2(fd, 2)
    os.close(fd)


def _execute_again(trainer: Channel, start: Start, fds: list[int]) -> NoReturn:
    """Executes this program again, without preload: forks have only one of the threads that a module has started."""
    with open(os.memfd_create("tandem-start"), "w+b") as file:
        pickle.dump((start._replace(preload=[]), fds), file)
        file.seek(0)
        for fd in (file.fileno(), trainer.fileno(), *fds):
            os.set_inheritable(fd, True)
        os.execv(sys.executable, [*sys.orig_argv, str(file.fileno())])


@dataclasses.dataclass
class _Process:
    """A worker's process, whose `pid` is valid until it is awaited, and its pidfd `end`.

    `starts`: when processes of this worker were started again, of time.monotonic(). `awaited`: it has ended, and its
    number may be another process's.
    """

    pid: int
    end: int
    starts: list[float]
    awaited: bool = False

    def ended(self) -> int | None:
        """Returns the status of a process that has ended, once; else None."""
        if self.awaited:
            return None
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        self.awaited = pid != 0
        return status if self.awaited else None

    def close(self) -> None:
        """Closes the pidfd. A second call has no effect."""
        if self.end >= 0:
            os.close(self.end)
            self.end = -1


class _Supervisor:
    def __init__(self, trainer: Channel, start: Start, files: worker_process.Files) -> None:
        self._trainer, self._start, self._files = trainer, start, files
        # Channels of workers that were started again, for which the trainer's channel has no room yet: it reads them
        # when it next needs them.
        self._unsent: dict[int, tuple[Channel, str]] = {}
        self._workers: list[_Process] = []
        self._inputs = select.epoll()  # readable: the trainer has sent something, or is gone; or a worker has ended
        self._inputs.register(trainer.fileno(), select.EPOLLIN)
        self._region: NativeSupervisor | None = None
        self._serving: worker_process.Serving | None = None
        self._frames: FramePace | None = None

    def run(self) -> None:
        """Serves until the trainer closes it, or is gone, or a worker has died."""
        secs = 0.0
        try:
            for index in range(len(self._start.rows)):
                self._workers.append(self._forked(index, [], ""))
                while self._unsent:  # the trainer reads them now
                    self._send_channels()
            importlib.import_module("tandem._engine")  # while the workers make their environments
            kind, *arguments = self._order()  # the trainer awaits the environments meanwhile
            if kind == "region" and self._makes_region(*arguments):
                secs = self._serve()
            self._stop(secs)
        except Exception as error:  # such as too many open files
            self._announce_end(f"the supervisor failed: {one_line(error)}")
            raise
        finally:
            if self._region is not None:
                self._region.close()
            self._kill()

    def _forked(self, index: int, starts: list[float], before: str) -> _Process:
        trainer_end, worker_end = Channel.pair()
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                trainer_end.close()
                self._become_worker(index, worker_end, supervisor)
            finally:  # whatever happens: the child must not go on as a supervisor
                os._exit(1)
        worker_end.close()
        process = _Process(pid, os.pidfd_open(pid), starts)
        self._inputs.register(process.end, select.EPOLLIN)
        if index in self._unsent:
            self._unsent[index][0].close()
        self._unsent[index] = trainer_end, before
        self._send_channels()
        return process

    def _send_channels(self) -> None:
        while self._unsent and self._trainer.has_room():
            index, (channel, before) = self._unsent.popitem()
            self._trainer.send(("worker", index, before), [channel.fileno()])
            channel.close()

    def _become_worker(self, index: int, trainer: Channel, supervisor: int) -> NoReturn:
        # The supervisor has one thread, so the signal comes when it ends, for whatever reason.
        set_parent_death_signal(signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._trainer.close()
        self._inputs.close()
        for process in self._workers:
            process.close()
        for channel, _ in self._unsent.values():
            channel.close()
        random.seed()
        np.random.seed()  # else all workers would draw the same numbers
        first_env, count = self._start.rows[index]
        rejoin = None
        if self._region is not None and self._serving is not None:
            rejoin = os.dup(self._region.fd), self._serving
        env_fns = self._start.env_fns[first_env : first_env + count]
        worker_process.run(index, env_fns, first_env, trainer, supervisor, self._files, rejoin)

    def _order(self) -> Any:
        """Awaits the trainer's order; it is "close" if a worker ends before."""
        while not self._trainer.is_readable():
            self._inputs.poll()
            for index, (process, rows) in enumerate(zip(self._workers, self._start.rows, strict=True)):
                if (status := process.ended()) is not None:
                    code = os.waitstatus_to_exitcode(status)
                    its = f"a worker ({WorkerHandle(*rows, pid=process.pid)}) {how_it_ended(code)} while it made them"
                    self._announce_end(f"{its}; {OUT_OF_MEMORY if code == -signal.SIGKILL else _CRASHED}", index)
                    return ["close"]
        return self._trainer.receive()[0]

    def _makes_region(self, name: str, spec: dict[str, Any], serving: worker_process.Serving) -> bool:
        from tandem import _engine  # which trainers, who import this module too, do not load

        plan = serving.frames
        options = {} if plan is None else plan.region_options()
        if serving.scene is not None:
            memory = np.frombuffer(mmap.mmap(self._files.scene, serving.scene.size), np.uint8)
            model_file = f"/proc/{os.getpid()}/fd/{self._files.model}"
            options["scene"] = memory, serving.scene.nodes, model_file, _engine_program()
        try:
            self._region = _engine.NativeSupervisor(name, **spec, **options)
        except TandemError as error:
            self._trainer.send(("refused", type(error).__name__, str(error)))
            return False
        self._serving = serving
        if plan is not None:
            self._frames = FramePace(self._region, FrameBuffer(self._files.frames, plan), plan)
        self._trainer.send(("region",), [self._region.fd])
        self._region.reset_workers()
        return True

    def _serve(self) -> float:
        """Returns the seconds that the workers have for their end."""
        region = self._region
        assert region is not None
        frames = self._frames
        while True:
            secs = _LONG_SECS
            if frames is not None:
                frames.look()
                secs = max(min(frames.due - time.monotonic(), secs), 0.0)
            event = region.next(secs, self._inputs.fileno())
            if event == "workers ready":
                try:
                    region.open()
                except TandemError as error:
                    self._trainer.send(("refused", type(error).__name__, str(error)))
                    return 0.0
                self._trainer.send(("opened",))
                if frames is not None:
                    frames.start()
            elif frames is not None and event == "frame wanted":
                frames.request()
            elif frames is not None and event == "workers answered":
                frames.answered()
            elif event == "input" and self._trainer.is_readable():
                (kind, *arguments), _ = self._trainer.receive()
                self._send_channels()
                if kind == "close":
                    return float(arguments[0])
                region.message_workers()
            elif event in ("input", "worker died") and not self._replaces_the_dead(region):
                return 0.0

    def _replaces_the_dead(self, region: "NativeSupervisor") -> bool:
        """Starts workers that have died again; returns False if that is not wanted, or does not help."""
        for index, process in enumerate(self._workers):
            if (status := process.ended()) is None:
                continue
            found = text = f"{region.worker_text(index)}, {how_it_ended(os.waitstatus_to_exitcode(status))}"
            now = time.monotonic()
            starts = [start for start in process.starts if now - start < _RESTARTS_SECS]
            if not self._start.restarts:
                text += "; WorkerOptions(restart=True) starts it again"
            elif len(starts) >= _MOST_RESTARTS:
                text += f"; it was started again {_MOST_RESTARTS} times in the last {_RESTARTS_SECS:.0f} s"
            if not self._start.restarts or len(starts) >= _MOST_RESTARTS or not region.replace_worker(index):
                self._announce_end(text, index)  # before the client sees the end
                region.end(text)
                return False
            self._inputs.unregister(process.end)  # a fork may still have a copy
            process.close()
            self._workers[index] = self._forked(index, [*starts, now], found)
        return True

    def _announce_end(self, reason: str, worker: int | None = None) -> None:
        if self._trainer.has_room():  # else the trainer does not wait for the text
            self._trainer.send(("ended", reason, worker))

    def _stop(self, secs: float) -> None:
        """Waits for the workers' ends for at most these seconds."""
        deadline = time.monotonic() + secs
        while time.monotonic() < deadline and not self._trainer.other_end_is_closed():
            for process in self._workers:
                process.ended()
            if all(process.awaited for process in self._workers):
                return
            if self._region is not None:
                self._region.stop_workers()  # without effect while an earlier order is carried out
                self._region.next(0.002, -1)
            else:
                time.sleep(0.002)

    def _kill(self) -> None:
        left = [process for process in self._workers if process.ended() is None and not process.awaited]
        for process in left:
            signal.pidfd_send_signal(process.end, signal.SIGKILL)
        for process in left:
            os.waitpid(process.pid, 0)
