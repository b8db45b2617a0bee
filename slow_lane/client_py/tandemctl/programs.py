"""The wheel's commands that are programs in C++; `tandem-engine` is in `tandem.engine.program`."""

import os
import sys
from pathlib import Path
from typing import NoReturn

_FOLDER = Path(__file__).parents[1] / "tandem" / "_programs"  # `import tandem` would take a third of a second


def view() -> NoReturn:
    """Replaces this process by `tandem-view`, with the same arguments; SystemExit if it cannot run."""
    _become("tandem-view", "//viz/web:tandem-view")


def daemon() -> NoReturn:
    """Replaces this process by `tandem-daemon`, with the same arguments; SystemExit if it cannot run."""
    os.environ.setdefault("TANDEM_RAY_PYTHON", sys.executable)  # it starts runs on Ray with this Python
    _become("tandem-daemon", "//slow_lane:daemon")


def inspect() -> NoReturn:
    """Replaces this process by `tandem-inspect`, with the same arguments; SystemExit if it cannot run."""
    _become("tandem-inspect", "//viz/inspect")


def gateway() -> NoReturn:
    """Replaces this process by `tandem-gateway`, with the same arguments; SystemExit if it cannot run."""
    _become("tandem-gateway", "//gateway:tandem-gateway")


def _become(name: str, target: str) -> NoReturn:
    try:
        os.execv(_FOLDER / name, [name, *sys.argv[1:]])
    except OSError as error:
        raise SystemExit(f"{name}: {error}; install the wheel, or in a clone: tools/bazel build {target}") from error
