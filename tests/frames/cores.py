"""Separates viewers from steps: the cores of a trainer, of an engine's threads, and of what shows frames."""

import os
from pathlib import Path

_RENDER_THREAD = "tandem-frames"


def place_engine(pid: int, *, steps: int, frames: int) -> None:
    """Pins an engine's threads.

    Args:
      pid: The engine's process.
      steps: The core of all threads but the render thread.
      frames: The core of the render thread, which exists if the engine was started with frames.
    """
    for thread in Path(f"/proc/{pid}/task").iterdir():
        drawing = (thread / "comm").read_text(encoding="ascii").strip() == _RENDER_THREAD
        os.sched_setaffinity(int(thread.name), {frames if drawing else steps})
