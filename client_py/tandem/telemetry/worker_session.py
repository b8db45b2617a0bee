"""`WorkerSession`: a worker that speaks to the daemon itself, rather than by printing."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tandem.arguments import seconds, shown
from tandem.errors import InvalidArgument
from tandem.telemetry.connection import Connection, check_size
from tandem.telemetry.records import Episode, Step, fill_message


@dataclass(frozen=True)
class Published:
    """What the daemon did with what was published.

    Attributes:
      accepted: How many are durable now and were not before.
      dropped: How many it did not keep: by their numbers it had them already.
    """

    accepted: int
    dropped: int


class WorkerSession:
    """A registered worker; `TrainerClient.register` makes one. Safe to use from any thread.

    When a call fails, nobody here knows how many of its events the daemon has kept. Whoever publishes them again gives
    them numbers: their `seq_id`, from 1 upwards, for the worker's steps and for its episodes. The daemon keeps those
    whose number is above all that it has of this `worker_id`, across its own restarts and the worker's. Hence numbers
    ascend in the order of publishing, and what failed is published again before anything later. Events whose `seq_id`
    is 0 have no number; each is kept as often as it is sent.

    Attributes:
      run_id: The run.
      worker_id: The worker, which is put into events that name none.
      accepted_version: Of the protocol, as the daemon said.
      token: What the daemon knows the worker by.
    """

    def __init__(
        self, connection: Connection, run_id: str, worker_id: str, accepted_version: str, token: str, timeout: float
    ) -> None:
        """Wraps what RegisterWorker answered."""
        self.run_id = run_id
        self.worker_id = worker_id
        self.accepted_version = accepted_version
        self.token = token
        self._connection = connection
        self._timeout = timeout

    def heartbeat(self) -> None:
        """Says that the worker lives; once a minute is enough.

        Raises:
          TandemError: As `ERROR_TABLE` says.
        """
        request = self._connection.request("Heartbeat", run_id=self.run_id)
        self._connection.call("Heartbeat", request, timeout=self._timeout, metadata=self._metadata)

    def publish_steps(self, steps: Iterable[Step], *, timeout: float | None = None) -> Published:
        """Sends steps, and waits until the daemon has all of them.

        Args:
          steps: May be a generator that goes on for as long as the run does.
          timeout: Seconds; None: no limit.

        Returns:
          How many were new.

        Raises:
          InvalidArgument: One that cannot be. Those before it may have been kept.
          TandemError: As `ERROR_TABLE` says; how many were kept is not known. `WrongState` or `BadSessionToken`: the
            daemon was restarted; `TrainerClient.register` again.
        """
        return self._publish("PublishRunSteps", Step, steps, timeout)

    def publish_episodes(self, episodes: Iterable[Episode], *, timeout: float | None = None) -> Published:
        """Sends episodes, and waits until the daemon has all of them.

        Args:
          episodes: As for `publish_steps`.
          timeout: Seconds; None: no limit.

        Returns:
          How many were new.

        Raises:
          InvalidArgument: One that cannot be. Those before it may have been kept.
          TandemError: As `ERROR_TABLE` says; how many were kept is not known. `WrongState` or `BadSessionToken`: the
            daemon was restarted; `TrainerClient.register` again.
        """
        return self._publish("PublishRunEpisodes", Episode, episodes, timeout)

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
        wrong: list[Exception] = []  # grpc tells nobody what its iterator raises

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
