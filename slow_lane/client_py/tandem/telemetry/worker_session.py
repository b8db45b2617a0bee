"""`WorkerSession`: a worker that publishes its events by gRPC, not by printing."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tandem.arguments import seconds, shown
from tandem.errors import InvalidArgument
from tandem.telemetry.connection import Connection, check_size
from tandem.telemetry.pause_watch import PauseWatch
from tandem.telemetry.records import Episode, Step, fill_message


@dataclass(frozen=True)
class Published:
    """The daemon's answer to published events: those newly durable, and those that it had, by their numbers."""

    accepted: int
    dropped: int


class WorkerSession:
    """A registered worker; `TrainerClient.register` makes one. Safe to use from any thread.

    After a failed call the number of stored events is unknown. A worker that publishes events again must number them:
    `seq_id` from 1 upwards, for its steps and for its episodes. The daemon stores the events whose number is above all
    earlier numbers of this `worker_id`, across its own restarts and the worker's. So numbers must ascend in the order
    of publishing, and failed events are published again before later ones. Events with `seq_id` 0 have no number; the
    daemon stores each as often as it is sent.

    A worker registered with `supports_pause=True` calls `pause_point` where it can be stopped, such as between two
    updates. Before the daemon stops the run's processes, it waits for this call, at most five seconds.

    Events that name no worker get this `worker_id`. `accepted_version` is the daemon's of the protocol; `token`
    identifies the worker for the daemon.
    """

    def __init__(
        self,
        connection: Connection,
        run_id: str,
        worker_id: str,
        register: Callable[[], Any],
        timeout: float,
        *,
        supports_pause: bool = False,
    ) -> None:
        """Registers the worker: `register` calls RegisterWorker and returns its response."""
        self.run_id = run_id
        self.worker_id = worker_id
        self._register = register
        self._connection = connection
        self._timeout = timeout
        self.accepted_version = self.token = ""
        self._new_token()
        self._pauses = PauseWatch(connection, run_id, self.token, self._new_token, timeout) if supports_pause else None

    @property
    def pause_requested(self) -> bool:
        """Whether the daemon is pausing the run: `pause_point` would wait. Never without `supports_pause`."""
        return self._pauses is not None and self._pauses.wanted

    def pause_point(self) -> bool:
        """Lets the daemon stop the run's processes here if it is pausing the run; returns whether it was.

        The daemon stops all processes of the run as soon as each worker that supports pauses waits in this call, and in
        any case after five seconds. This returns when the run continues, or if the daemon has ended before the stop.
        Without `supports_pause` it returns at once.
        """
        return self._pauses is not None and self._pauses.answer()

    def stop_listening(self) -> None:
        """Ends the messages about pauses; then the daemon stops the processes without them. No effect without any."""
        if self._pauses is not None:
            self._pauses.close()

    def heartbeat(self) -> None:
        """Reports to the daemon that the worker is alive; once a minute is enough. Errors are as `ERROR_TABLE` says."""
        request = self._connection.request("Heartbeat", run_id=self.run_id)
        self._connection.call("Heartbeat", request, timeout=self._timeout, metadata=self._metadata)

    def publish_steps(self, steps: Iterable[Step], *, timeout: float | None = None) -> Published:
        """Sends steps, and waits until the daemon has stored all of them; returns how many were new.

        `steps` may be a generator that lasts as long as the run; `timeout` is in seconds, None: no limit.

        Raises:
          InvalidArgument: An invalid step. The daemon may have stored those before it.
          TandemError: As `ERROR_TABLE` says; the number of stored steps is unknown. `WrongState` or `BadSessionToken`:
            the daemon was restarted; `TrainerClient.register` again.
        """
        return self._publish("PublishRunSteps", Step, steps, timeout)

    def publish_episodes(self, episodes: Iterable[Episode], *, timeout: float | None = None) -> Published:
        """Sends episodes, and waits until the daemon has stored all of them; otherwise as `publish_steps`."""
        return self._publish("PublishRunEpisodes", Episode, episodes, timeout)

    def _new_token(self) -> str:
        response = self._register()
        self.accepted_version, self.token = response.accepted_version, response.session_token
        return self.token

    @property
    def _metadata(self) -> tuple[tuple[str, str], ...]:
        return (("session-token", self.token),)

    def _publish(
        self, method: str, kind: type[Step] | type[Episode], records: Iterable[Any], timeout: float | None
    ) -> Published:
        if timeout is not None:
            timeout = seconds("timeout", timeout)
        try:
            given = iter(records)
        except TypeError as error:
            raise InvalidArgument(
                f"{method}: expected an iterable of {kind.__name__}, such as a list, found {shown(records)}; "
                "nothing was sent"
            ) from error
        wrong: list[Exception] = []  # grpc drops the exception of its iterator

        def messages() -> Iterator[Any]:
            try:
                for record in given:
                    yield self._message(method, kind, record)
            except Exception as error:
                wrong.append(error)
                raise

        try:
            response = self._connection.call(method, messages(), timeout=timeout, metadata=self._metadata)
        except Exception:
            if wrong:
                raise wrong[0] from None
            raise
        return Published(response.accepted, response.dropped)

    def _message(self, method: str, kind: type[Step] | type[Episode], record: Any) -> Any:
        if not isinstance(record, kind):
            raise InvalidArgument(f"{method}: expected a {kind.__name__}, found {type(record).__name__}")
        message = self._connection.request(method)
        filled = dataclasses.replace(
            record, run_id=record.run_id or self.run_id, worker_id=record.worker_id or self.worker_id
        )
        try:
            fill_message(message, filled)
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidArgument(f"{method}: {error} in {shown(filled)}") from error
        check_size(method, message, f"the {kind.__name__} was not sent")
        return message
