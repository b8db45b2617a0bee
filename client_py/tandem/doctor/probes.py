"""The doctor's trials of the package itself, in a child: `python -m tandem.doctor.probes NAME ARGUMENT ...`."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tandem._native import __file__ as extension_file
from tandem._native import cuda_driver, engine_pid, region_gpu_path
from tandem.client import SharedMemoryClient
from tandem.engine import process, program
from tandem.errors import NotReady, TandemError

_TASK = "HalfCheetah-v5"
_STEPS = 1000


def extension() -> str:
    """Returns the path from which the extension was loaded."""
    return str(extension_file)


def regions(*names: str) -> dict[str, int | str | None]:
    """Returns each region's engine: its pid; None if it is dead; a text if asking failed."""
    found: dict[str, int | str | None] = {}
    for name in names:
        try:
            found[name] = engine_pid(name)
        except NotReady:
            found[name] = None
        except TandemError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def gpu(*names: str) -> dict[str, Any]:
    """Returns what the CUDA driver has: its library, version and devices, or an error; and the path of each region."""
    paths: dict[str, str] = {}
    path_errors: dict[str, str] = {}
    for name in names:
        try:
            paths[name] = region_gpu_path(name)
        except NotReady:  # a dead engine's: the check of regions names it
            continue
        except TandemError as error:
            path_errors[name] = f"{type(error).__name__}: {error}"
    found = {"paths": paths, "path_errors": path_errors}
    try:
        return {**found, **cuda_driver()}
    except TandemError as error:
        return {**found, "error": type(error).__name__, "text": str(error)}


def server() -> str:
    """Returns the program that `launch_engine` starts."""
    return str(program.find())


def engine(name: str) -> dict[str, Any]:
    """Launches a real engine under that name, and steps it."""
    started = time.monotonic()
    with process.launch_engine(_TASK, name=name) as served:
        start_secs = time.monotonic() - started
        libraries = _libraries(served.pid)
        with SharedMemoryClient(name) as trainer:
            trainer.reset(seed=0)
            for _ in range(_STEPS):
                trainer.step(trainer.actions)
            stats = trainer.stats()
    return {
        "task": _TASK,
        "steps": _STEPS,
        "start_secs": start_secs,
        "step_p50_us": stats.step_p50_us,
        "step_p99_us": stats.step_p99_us,
        "libraries": libraries,
    }


def _libraries(pid: int) -> list[str]:
    """Returns the paths of MuJoCo in an engine's process."""
    if sys.platform == "win32":  # where a program's folder comes first
        return [str(program.find().with_name("mujoco.dll"))]
    maps = Path(f"/proc/{pid}/maps").read_text("utf-8")
    return sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if "libmujoco" in line})


_PROBES: dict[str, Callable[..., Any]] = {
    "engine": engine,
    "extension": extension,
    "gpu": gpu,
    "regions": regions,
    "server": server,
}

if __name__ == "__main__":
    print(json.dumps(_PROBES[sys.argv[1]](*sys.argv[2:])))
