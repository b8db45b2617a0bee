"""`mirror`: what a program writes for TensorBoard becomes scalars of its job, too, as in scripts of CleanRL.

tandem.telemetry.tensorboard.mirror()    # before the training
writer = SummaryWriter("runs/first")     # of torch.utils.tensorboard or tensorboardX; unchanged
"""

import importlib
from typing import Any

from tandem.telemetry.events import EventWriter
from tandem.telemetry.tracking import job_events

__all__ = ["mirror"]

_MODULES = ("torch.utils.tensorboard", "tensorboardX")


def mirror(events: EventWriter | None = None) -> None:
    """Makes `SummaryWriter.add_scalar` print scalars as well, of each of the packages that is installed.

    `events` prints them; None: as a job of the daemon does, and nothing outside of one. Call it once.
    """
    writer = job_events() if events is None else events
    for name in _MODULES:
        try:
            kind: Any = importlib.import_module(name).SummaryWriter
        except ImportError:
            continue
        _wrap(kind, writer)


def _wrap(kind: Any, events: EventWriter) -> None:
    add = kind.add_scalar

    def add_scalar(
        self: Any, tag: str, scalar_value: Any, global_step: int | None = None, *args: Any, **kw: Any
    ) -> Any:
        result = add(self, tag, scalar_value, global_step, *args, **kw)
        # TensorBoard takes any number as a step, such as a part of an epoch.
        events.scalars(max(int(global_step or 0), 0), {tag: float(scalar_value)})
        return result

    kind.add_scalar = add_scalar
