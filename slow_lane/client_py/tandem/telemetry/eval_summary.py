"""`EvalSummaryWriter`: the results of an evaluation so far, in a file that viewers show."""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np

from tandem.arguments import path as checked_path
from tandem.engine.worker_environment import RUN_DIR_VARIABLE
from tandem.errors import InvalidArgument

_NAME = "eval_summary.json"
_KEYS: dict[str, Callable[[list[float]], Any]] = {"avg": np.mean, "min": np.min, "max": np.max}


class EvalSummaryWriter:
    """Writes the file `path`: numbers of batches and episodes; mean, least and greatest return.

    One of them that is not finite is null.

    The viewer and the page read it each second; it has the keys of MOSAIC's file. A reader finds the old or the new
    text, never a part: each is written beside the file, and renamed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = EvalSummaryWriter(Path(folder, "eval_summary.json"))
    ...     summary.add_batch([100.0, 300.0])
    ...     summary.add_batch([200.0])
    ...     print(summary.path.read_text(), end="")
    {"batch_index": 2, "episodes": 3, "avg_return": 200.0, "min_return": 100.0, "max_return": 300.0}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Writes nothing yet.

        Args:
          path: The file; its folder exists. None: eval_summary.json in the folder of the daemon's run, where viewers
            look for it.

        Raises:
          InvalidArgument: No path, and no run of the daemon (also a ValueError).
        """
        if path is None:
            folder = os.environ.get(RUN_DIR_VARIABLE)
            if not folder:
                raise InvalidArgument(
                    f"path: expected a file, found None, and no run of the daemon ({RUN_DIR_VARIABLE})"
                )
            path = Path(folder, _NAME)
        checked_path("path", path)
        self.path = Path(path)
        self._batches = 0
        self._returns: list[float] = []

    def add_batch(self, returns: Iterable[SupportsFloat]) -> None:
        """Adds the returns of a batch's episodes, and writes the file.

        Args:
          returns: One for each episode, at least one.

        Raises:
          InvalidArgument: No return; the file stays as it was (also a ValueError).
          OSError: The file cannot be written; it stays as it was.
        """
        batch = [float(each) for each in returns]
        if not batch:
            raise InvalidArgument("returns: expected numbers, at least one, found none")
        self._returns += batch
        self._batches += 1
        found = {f"{name}_return": float(of(self._returns)) for name, of in _KEYS.items()}
        known = {name: value if math.isfinite(value) else None for name, value in found.items()}
        self._write({"batch_index": self._batches, "episodes": len(self._returns), **known})

    def _write(self, summary: dict[str, float | None]) -> None:
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        try:
            beside.write_text(json.dumps(summary) + "\n", "utf-8")
            beside.replace(self.path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
