"""`Calls`: calls of the environments of all workers, by the trainer process.

A request is a value in a memory file, which the supervisor orders the workers to read between two exchanges. Each
worker answers by its own channel, with the request's number.
"""

import contextlib
import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import cloudpickle

from tandem.errors import ConcurrentUse, EnvFailed, ForkedChild, InvalidArgument, PeerGone, StepTimeout
from tandem.workers.shared_value import SharedValue
from tandem.workers.worker_pool import Deadline, WorkerPool


class EnvAttributeError(EnvFailed, AttributeError):
    """An environment has no attribute of this name."""


class Request(NamedTuple):
    """A request of the trainer's to all workers: the call, for error messages, and its number.

    `answers` has kind and pickle of each worker's answer, once it has come.
    """

    what: str
    number: int
    answers: list[tuple[str, bytes] | None]


class Calls:
    """One call at a time, of at most `timeout` seconds.

    `is_asked`: answers to the latest request are awaited; a worker may be inside a call. `wake_supervisor` wakes the
    supervisor after a message, which it otherwise sees within 10 ms; a client of the region has this function.
    """

    def __init__(self, pool: WorkerPool, requests: SharedValue, timeout: float) -> None:
        """Takes the processes, the memory file of requests, and the seconds that a call may take."""
        self._pool, self._requests, self.timeout = pool, requests, timeout
        self._owner = os.getpid()
        self._in_call = threading.Lock()
        self.is_asked = False
        self.wake_supervisor: Callable[[], None] = lambda: None

    def apply(self, what: str, function: Callable[[Any, int], Any], env_ids: Sequence[int] | None = None) -> list[Any]:
        """Calls function(env, env_id) for each environment, ascending, in the workers, and returns the results.

        Function and results are pickled, by cloudpickle. `what` names the call for error messages, such as
        "call('render')". `env_ids` None: all environments.

        Raises:
          InvalidArgument: The function cannot be pickled.
          EnvFailed: The function raised an exception, or its result cannot be pickled.
          PeerGone: A worker has ended.
          StepTimeout: A worker did not answer in time, without its imports; the message has its stack. It goes on, and
            its answer is dropped.
        """
        deadline = Deadline(self.timeout)
        with self._alone_in(what):
            return self._results(self._requested(what, function, env_ids), deadline)

    def request(self, what: str, function: Callable[[Any, int], Any], env_ids: Sequence[int] | None = None) -> Request:
        """Does as `apply`, but returns at once; `results` returns the results."""
        with self._alone_in(what):
            return self._requested(what, function, env_ids)

    def results(self, request: Request, timeout: float | None) -> list[Any]:
        """Awaits the results of the latest request; errors are those of `apply`. After a StepTimeout it may go on."""
        deadline = Deadline(self.timeout) if timeout is None else Deadline(timeout, extends=False)
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
        self._pool.message_workers(what)
        self.wake_supervisor()
        self.is_asked = True
        return Request(what, number, [None] * len(self._pool.workers))

    def _results(self, request: Request, deadline: Deadline) -> list[Any]:
        answers = request.answers
        try:
            for index, known in enumerate(answers):
                answers[index] = self._answer(request, index, deadline) if known is None else known
        except PeerGone:
            self.is_asked = False
            raise
        self.is_asked = False
        results: list[Any] = []
        for worker, answered in zip(self._pool.workers, answers, strict=True):
            assert answered is not None
            kind, data = answered
            answer = pickle.loads(data)
            if kind == "results":
                results += answer
                continue
            missing, text = answer
            error_class = EnvAttributeError if missing else EnvFailed
            raise error_class(f"{request.what}: an environment raised an exception; worker of {worker}:\n{text}")
        return results

    def _answer(self, request: Request, index: int, deadline: Deadline) -> tuple[str, bytes]:
        """Awaits a worker's answer to a request; drops answers to earlier ones."""
        pool = self._pool
        worker = pool.workers[index]
        while True:
            assert worker.channel is not None
            try:
                message, fds = worker.channel.receive(deadline.left())
            except TimeoutError:
                if pool.extended(deadline, [index]):
                    continue
                late = StepTimeout(
                    f"{request.what}: expected an answer in time, found none of worker {index} ({worker}). It goes on, "
                    "and steps wait for its end. Raise WorkerOptions.call_timeout, or see where it is:"
                    f"{pool.stacks()}"
                )
                late.workers = (index,)
                raise late from None
            except (EOFError, ConnectionError):
                pool.await_replacement(request.what, worker)
                continue
            if message[0] in ("results", "raised"):
                if message[1] == request.number:
                    return message[0], worker.read_answer(message[2])
                continue
            pool.note(worker, message, fds)
            if worker.answered >= request.number:  # it was started after the request, in which the other may have died
                raise pool.replaced(request.what, worker)
