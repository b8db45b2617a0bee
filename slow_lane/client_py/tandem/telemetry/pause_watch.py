"""`PauseWatch`: hears for a worker when the daemon pauses its run."""

import queue
import threading
from collections.abc import Callable
from typing import Any

from tandem.errors import ClientClosed, TandemError, Unsupported
from tandem.telemetry.connection import Connection
from tandem.telemetry.daemon_errors import BadSessionToken, DaemonTimeout, UnknownRun, WrongState

# Between two attempts to reach the daemon: first, and at most.
_FIRST_WAIT_SECS = 0.05
_LONGEST_WAIT_SECS = 1.0


class PauseWatch:
    """A thread with the worker's ControlStream; `WorkerSession` has one if its worker supports pauses.

    The daemon sends `pause` before it stops the run's processes, and `resume` when they continue. The worker answers
    `pause` by the same message. A pause ends with its stream: a worker does not wait for a daemon that has ended.
    `wanted`: whether the daemon is pausing the run.
    """

    def __init__(
        self, connection: Connection, run_id: str, token: str, register: Callable[[], str], timeout: float
    ) -> None:
        """Starts the thread, and waits until the daemon sends it pauses, or never will: the run has ended.

        The daemon sends a worker's pauses to the stream that arrived last. Without the wait, the stream of a session
        could arrive after that of a later session of the same worker. `register` registers the worker again, with a
        later daemon, and returns the new token; it raises as `TrainerClient.register`. DaemonTimeout: no first message
        within `timeout` seconds; the stream is ended.
        """
        self.wanted = False
        self._connection = connection
        self._run_id = run_id
        self._token = token
        self._register = register
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._heard = threading.Event()  # or never will
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._call: Any = None
        threading.Thread(target=self._run, name="tandem-pauses", daemon=True).start()
        if not self._heard.wait(timeout):
            self.close()
            raise DaemonTimeout(
                f"ControlStream at {connection.target}: expected a message that the worker gets pauses within "
                f"{timeout:g} s, found none; register again, or without supports_pause"
            )

    def answer(self) -> bool:
        """Answers a pause and waits until the run continues; returns whether there was one."""
        with self._changed:
            if not self.wanted:
                return False
            self._send(pause=True)
            self._changed.wait_for(lambda: not self.wanted)
        return True

    def close(self) -> None:
        """Ends the stream. A second call has no effect."""
        self._closing.set()
        call = self._call
        if call is not None:
            call.cancel()

    def _run(self) -> None:
        try:
            self._watch()
        finally:
            self._heard.set()

    def _watch(self) -> None:
        wait = _FIRST_WAIT_SECS
        while not self._closing.wait(wait if self._call else 0):
            wait = min(2 * wait, _LONGEST_WAIT_SECS)
            try:
                if self._listen():
                    wait = _FIRST_WAIT_SECS
            except BadSessionToken:
                if not self._registers():
                    return
            except (ClientClosed, UnknownRun, Unsupported, WrongState):
                return  # the run has ended, or another daemon's server has no pauses of this kind
            except TandemError:
                pass  # the daemon has ended: perhaps another one starts

    def _registers(self) -> bool:
        try:
            self._token = self._register()
        except (ClientClosed, UnknownRun, WrongState):
            return False
        except TandemError:
            pass
        return True

    def _listen(self) -> bool:
        """Reads the stream to its end; returns whether the daemon has sent anything."""
        heard = False
        self._messages = queue.SimpleQueue()
        self._send()
        try:
            self._call = self._connection.start(
                "ControlStream", iter(self._messages.get, None), metadata=(("session-token", self._token),)
            )
            if self._closing.is_set():  # meanwhile
                self._call.cancel()
            for message in self._call:
                heard = True
                self._heard.set()
                self._set(message.WhichOneof("event") == "pause")
        except self._connection.grpc.RpcError as error:
            if not heard:
                raise self._connection.error_of("ControlStream", error) from error
        finally:
            self._messages.put(None)
            self._set(False)
        return heard

    def _set(self, wanted: bool) -> None:
        with self._changed:
            self.wanted = wanted
            self._changed.notify_all()

    def _send(self, **event: bool) -> None:
        self._messages.put(self._connection.request("ControlStream", run_id=self._run_id, **event))
