"""`TrainerClient`: submits runs to the daemon and watches them."""

import functools
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tandem.arguments import integer, seconds, shown
from tandem.errors import InvalidArgument
from tandem.handles import ClosesOnExit
from tandem.telemetry.connection import Connection
from tandem.telemetry.control import Control
from tandem.telemetry.descriptions import DaemonDescription
from tandem.telemetry.feeds import Feed, MessageBlock, block_feed, event_feeds, run_feeds
from tandem.telemetry.records import Episode, LifecycleEvent, MalformedLine, Run, RunStatus, Scalars, Step
from tandem.telemetry.subscription import Record, Subscription
from tandem.telemetry.tls_files import TlsFiles
from tandem.telemetry.worker_session import WorkerSession

_PROTO_VERSION = "MOSAIC/1.0"
_SCHEMA_ID = "tandem.telemetry"
_SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Submitted:
    """A run that the daemon has accepted, and the SHA-256 of its configuration, in hexadecimal."""

    run_id: str
    digest: str


@dataclass(frozen=True)
class Health:
    """A daemon's answer to a health check; not `healthy` while its disk is full: it stores no events."""

    pid: int
    started_at: datetime
    listen_address: str
    healthy: bool


class TrainerClient(ClosesOnExit):
    """A client of Tandem's daemon, or of any server of gymgui.trainer.TrainerService. Safe to use from any thread.

    Needs the packages grpcio and protobuf: `pip install 'tandem-shm[telemetry]'`.

    A call raises `UnknownRun` if the daemon has no run of that name, `ClientClosed` after `close`, and otherwise as
    `ERROR_TABLE` says.

    >>> client = TrainerClient("unix:no-daemon.sock", timeout=5)
    >>> client.runs()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    DaemonUnreachable: ListRuns at unix:no-daemon.sock: ...
    >>> client.close()
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        timeout: float = 10.0,
        reconnect_secs: float = 60.0,
        token_file: str | os.PathLike[str] | None = None,
        tls: TlsFiles | None = None,
    ) -> None:
        """Opens no connection yet; the first call does.

        Args:
          target: HOST:PORT or unix:PATH, or any other address that gRPC takes; None: the environment variable
            TANDEM_DAEMON, or else 127.0.0.1:50055.
          timeout: Seconds that a call may take, unless it has a timeout of its own. Not for publishing
            (`WorkerSession`).
          reconnect_secs: Seconds for which a `Subscription` tries to find a lost daemon again.
          token_file: A copy of the daemon's --token_file, if the daemon asks for a token; None: the environment
            variable TANDEM_TOKEN_FILE, or else no token.
          tls: For a daemon on another machine, which has --tls_cert; None: the environment variables TANDEM_TLS_CA,
            TANDEM_TLS_CERT and TANDEM_TLS_KEY, or else plaintext. A unix:PATH is always plaintext.

        Raises:
          AccessDenied: The token's file belongs to another user, or other users may read it.
          InvalidArgument: An invalid target or time, or an unusable file.
          ModuleNotFoundError: grpcio or protobuf is missing.
        """
        self._timeout = seconds("timeout", timeout)
        self._reconnect_secs = seconds("reconnect_secs", reconnect_secs)
        self._connection = Connection(target, token_file, tls)
        self._registering = threading.Lock()
        self._sessions: dict[tuple[str, str], WorkerSession] = {}  # the newest of each worker

    @property
    def target(self) -> str:
        """The daemon's address."""
        return self._connection.target

    def submit(self, config: Mapping[str, Any] | str, *, run_id: str = "") -> Submitted:
        """Submits a run.

        `config` is MOSAIC's TrainRunConfig, as a mapping or as JSON (slow_lane/docs/slow_lane.md). Without `run_id` the
        daemon chooses a name. The same name with the same configuration is the same run, which is not started twice.

        Raises:
          InvalidArgument: An invalid configuration; the message names the place in it.
          RunExists: A run of that name has another configuration.
        """
        response = self._call("SubmitRun", run_id=run_id, config_json=_as_json(config))
        return Submitted(response.run_id, response.digest)

    def cancel(self, run_id: str, *, timeout: float = 60.0) -> None:
        """Ends a run with all its processes; none is left when this returns. No effect on a run that has ended.

        Processes that do not end at SIGTERM are killed after five seconds.
        """
        self._call("CancelRun", timeout=seconds("timeout", timeout), run_id=run_id)

    def pause(self, run_id: str) -> None:
        """Stops the run's processes by SIGSTOP; its status becomes PAUSE.

        The daemon first announces it to workers that support pauses: this waits for them, at most five seconds.

        Raises:
          WrongState: The run's status is neither EXEC nor PAUSE.
        """
        self._control(run_id, pause=True)

    def resume(self, run_id: str) -> None:
        """Continues the run's processes, by SIGCONT; its status becomes EXEC.

        Raises:
          WrongState: The run's status is neither PAUSE nor EXEC.
        """
        self._control(run_id, resume=True)

    def delete(self, run_id: str) -> None:
        """Removes a run that has ended: its events and its folder. Only Tandem's own daemon can do this.

        Raises:
          WrongState: The run has not ended.
        """
        self._call("DeleteRun", run_id=run_id)

    def describe(self, *run_ids: str) -> DaemonDescription:
        """Returns the state of the daemon and of these runs, none: of all, in the order of their submission.

        Only Tandem's own daemon answers this.
        """
        return DaemonDescription.from_message(self._call("DescribeRuns", run_ids=run_ids))

    def runs(self, *statuses: RunStatus) -> list[Run]:
        """Lists runs of these statuses, none: of all, as they are now."""
        response = self._call("ListRuns", status_filter=statuses)
        return [Run.from_message(run) for run in response.runs]

    def health(self) -> Health:
        """Asks the daemon for its health."""
        response = self._call("GetHealth")
        started_at = response.started_at.ToDatetime(tzinfo=UTC)
        return Health(response.pid, started_at, response.listen_address, response.healthy)

    def watch(self, *statuses: RunStatus, since_seq: int = 0) -> Subscription[Run]:
        """Streams the changes of all runs' status, without end.

        Args:
          statuses: The wanted statuses; none: all.
          since_seq: Changes with greater numbers are sent; 0: all that the daemon has.

        Raises:
          InvalidArgument: since_seq is out of range.
        """
        return self._subscribe(run_feeds(statuses), since_seq)

    def steps(self, run_id: str, *, since_seq: int = 0, follow: bool = True) -> Subscription[Step]:
        """Streams a run's steps: those in the table, then those to come, until the run ends.

        Args:
          run_id: The run.
          since_seq: Steps with greater numbers are sent; 0: all.
          follow: False: ends at what is durable now, which only Tandem's own daemon can do.

        Raises:
          InvalidArgument: since_seq is out of range.
        """
        return self._subscribe(event_feeds(Step, run_id, follow=follow), since_seq)

    def episodes(self, run_id: str, *, since_seq: int = 0, follow: bool = True) -> Subscription[Episode]:
        """Streams a run's episodes, as `steps` does its steps."""
        return self._subscribe(event_feeds(Episode, run_id, follow=follow), since_seq)

    def lifecycle(self, run_id: str, *, since_seq: int = 0, follow: bool = True) -> Subscription[LifecycleEvent]:
        """Streams a run's lifecycle events, as `steps` does. Only Tandem's own daemon has them."""
        return self._subscribe(event_feeds(LifecycleEvent, run_id, follow=follow), since_seq)

    def malformed(self, run_id: str, *, since_seq: int = 0, follow: bool = True) -> Subscription[MalformedLine]:
        """Streams a run's malformed lines, as `steps` does. Only Tandem's own daemon has them."""
        return self._subscribe(event_feeds(MalformedLine, run_id, follow=follow), since_seq)

    def scalars(self, run_id: str, *, since_seq: int = 0, follow: bool = True) -> Subscription[Scalars]:
        """Streams a run's scalars, as `steps` does. Only Tandem's own daemon has them."""
        return self._subscribe(event_feeds(Scalars, run_id, follow=follow), since_seq)

    def blocks(self, run_id: str, stream: str) -> Subscription[MessageBlock]:
        """Reads the durable events of a stream, such as "steps", in blocks of the daemon's messages.

        For exports. It ends at what is durable now. Only Tandem's own daemon has them.
        """
        return self._subscribe([block_feed(run_id, stream)], 0)

    def last_episodes(self, run_id: str, count: int) -> list[Episode]:
        """Reads a run's newest episodes, at most `count`, the newest last. Only Tandem's own daemon can do this.

        Raises:
          InvalidArgument: The count is below 1.
        """
        count = integer("count", count, 1)
        (run,) = self.describe(run_id).runs
        (feed,) = event_feeds(Episode, run_id, follow=False)
        request = self._connection.request(feed.method, **feed.fields(max(0, run.episodes - count)))
        batches = self._connection.drain(feed.method, request, timeout=self._timeout)
        return [episode for batch in batches for episode in feed.records(batch)][-count:]

    def control(self) -> Control:
        """Opens a ControlStream: flow control of this client's subscriptions, pause and resume of runs."""
        return Control(self._connection, self._timeout)

    def register(
        self,
        run_id: str,
        worker_id: str,
        *,
        worker_kind: str = "",
        supports_pause: bool = False,
        supports_checkpoint: bool = False,
    ) -> WorkerSession:
        """Registers a worker that publishes its events by gRPC, or supports pauses. Others need no registration.

        `worker_id` is unique in the run, `worker_kind` a label of your own. With `supports_pause` the worker calls
        `WorkerSession.pause_point`, for which the daemon waits, at most five seconds, before it stops the run's
        processes. After a restart of the daemon, call this again with the same names; with `supports_pause` a thread of
        the session does so by itself.

        Raises:
          WrongState: The run has ended, or has not started yet.
          DaemonTimeout: With `supports_pause`: the daemon did not say that it sends pauses to the session.
        """
        call = functools.partial(
            self._call,
            "RegisterWorker",
            run_id=run_id,
            worker_id=worker_id,
            worker_kind=worker_kind,
            proto_version=_PROTO_VERSION,
            schema_id=_SCHEMA_ID,
            schema_version=_SCHEMA_VERSION,
            supports_pause=supports_pause,
            supports_checkpoint=supports_checkpoint,
        )
        # One after another: the daemon sends a worker's pauses to the session whose stream arrived last.
        with self._registering:
            session = WorkerSession(
                self._connection, run_id, worker_id, call, self._timeout, supports_pause=supports_pause
            )
            if (earlier := self._sessions.get((run_id, worker_id))) is not None:
                earlier.stop_listening()
            self._sessions[run_id, worker_id] = session
        return session

    def heartbeat(self, run_id: str) -> None:
        """Reports to the daemon that a run's worker is alive."""
        self._call("Heartbeat", run_id=run_id)

    def close(self) -> None:
        """Ends every call and subscription. A second call has no effect."""
        self._connection.close()

    def _call(self, name: str, *, timeout: float | None = None, **fields: Any) -> Any:
        request = self._connection.request(name, **fields)
        return self._connection.call(name, request, timeout=self._timeout if timeout is None else timeout)

    def _control(self, run_id: str, **event: bool) -> None:
        request = self._connection.request("ControlStream", run_id=run_id, **event)
        self._connection.drain("ControlStream", iter([request]), timeout=self._timeout)

    def _subscribe(self, feeds: Sequence[Feed[Record]], since_seq: int) -> Subscription[Record]:
        return Subscription(
            self._connection, feeds, since_seq, timeout=self._timeout, reconnect_secs=self._reconnect_secs
        )


def _as_json(config: object) -> str:
    if isinstance(config, str):
        return config
    if not isinstance(config, Mapping):
        raise InvalidArgument(
            f"config: expected a TrainRunConfig as a mapping or as a string of JSON, found {shown(config)}; "
            "nothing was sent"
        )
    try:
        return json.dumps(dict(config), allow_nan=False)
    except RecursionError as error:
        raise InvalidArgument(
            "config: expected values that JSON can hold, found lists and mappings nested too deep; make it flat; "
            "nothing was sent"
        ) from error
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"config: expected values that JSON can hold: {error}; nothing was sent") from error
