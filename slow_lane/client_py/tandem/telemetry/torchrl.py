"""`Logger`: a logger of TorchRL that prints scalars of the job. Importing this imports torchrl.

Episodes: `RecordEpisodes(tandem.make_vec(...))` below `GymWrapper`.
"""

from collections.abc import Sequence
from typing import Any

from torchrl.record.loggers import Logger as TorchRLLogger

from tandem.telemetry.events import EventWriter
from tandem.telemetry.tracking import job_events

__all__ = ["Logger"]


class Logger(TorchRLLogger):
    """Prints what `log_scalar` gets; videos and histograms have no place in events, and are not printed."""

    def __init__(self, exp_name: str = "", log_dir: str = "", *, events: EventWriter | None = None) -> None:
        """Prints by `events`; None: as a job of the daemon does, and nothing outside of one."""
        self._events = job_events() if events is None else events
        super().__init__(exp_name, log_dir)

    def _create_experiment(self) -> EventWriter:
        return self._events

    def log_scalar(self, name: str, value: Any, step: int | None = None, **_: Any) -> None:
        """Prints a number."""
        self._events.scalars(step or 0, {name: float(value)})

    def log_hparams(self, cfg: Any) -> None:
        """Prints the parameters as an event of the run."""
        self._events.lifecycle("hparams", {str(name): str(value) for name, value in dict(cfg).items()})

    def log_video(self, name: str, video: Any, step: int | None = None, **_: Any) -> None:
        """Prints nothing."""

    def log_histogram(self, name: str, data: Sequence[Any], **_: Any) -> None:
        """Prints nothing."""

    def __repr__(self) -> str:
        """Returns the class's name."""
        return "tandem.telemetry.torchrl.Logger()"
