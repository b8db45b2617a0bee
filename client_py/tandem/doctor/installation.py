"""Checks of what is installed: versions, the extension, the engine's program, and a real engine."""

import importlib.metadata
import json
import os
import platform
import time
import uuid
from pathlib import Path

from tandem._version import __version__
from tandem.doctor.child import run_python
from tandem.doctor.finding import Findings, fail, ok, warn

_PACKAGE = Path(__file__).parent.parent
_SERVER_VARIABLE = "TANDEM_ENGINE_SERVER"
_GONE_SECS = 10.0
_SLOW_US = 1000.0
_REINSTALL = "pip install --force-reinstall the wheel; in a clone: run tools/python, which builds what is needed"


def check_system() -> Findings:
    """Is this a system that Tandem runs on?"""
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if platform.system() == "Windows":
        yield warn(
            "system", f"{system}, tested under Wine alone", "report what fails; docs/platforms.md has what is there"
        )
        return
    if platform.system() != "Linux":
        yield fail("system", system, "use Linux; other systems are not supported yet (docs/install.md)")
        return
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        libc = ""
    if libc:
        yield ok("system", f"{system}, {libc}")
    else:
        yield warn("system", f"{system}, not glibc", "use a distribution with glibc, or build there (docs/install.md)")


def check_versions() -> Findings:
    """Which versions are installed?"""
    yield ok("tandem", f"{__version__}, at {_PACKAGE}")
    yield ok("Python", f"{platform.python_version()} ({platform.python_implementation()})")
    for name, package in (("NumPy", "numpy"), ("Gymnasium", "gymnasium")):
        outcome = run_python("-c", f"import {package}; print({package}.__version__)")
        if outcome.trouble:
            yield fail(name, f"cannot be imported: {outcome.trouble}", f"pip install --force-reinstall {package}")
        else:
            yield ok(name, outcome.output)
    try:
        found = f"{importlib.metadata.version('mujoco')}; the engine has a MuJoCo library of its own, named below"
    except importlib.metadata.PackageNotFoundError:
        found = "not installed, and not needed"
    yield ok("mujoco package", found)


def check_engine() -> Findings:
    """Does the package work: extension, server, and an engine from start to end?"""
    outcome = run_python("-m", "tandem.doctor.probes", "extension")
    if outcome.trouble:
        next_step = _REINSTALL
        if not [*_PACKAGE.glob("_native*.so"), *_PACKAGE.glob("_native*.pyd")]:
            next_step = (
                f"{_PACKAGE} has no extension. If it is a source folder, run this from another; else {_REINSTALL}"
            )
        yield fail("extension", f"does not load: {outcome.trouble}", next_step)
        return
    yield ok("extension", f"loads: {json.loads(outcome.output)}")

    outcome = run_python("-m", "tandem.doctor.probes", "server")
    asked = os.environ.get(_SERVER_VARIABLE)
    fix = f"unset {_SERVER_VARIABLE}, or set it to an engine's program" if asked else _REINSTALL
    if outcome.trouble:
        yield fail("engine's program", outcome.trouble, fix)
        return
    by = f", by {_SERVER_VARIABLE}" if asked else ""
    yield ok("engine's program", f"{json.loads(outcome.output)}{by}")

    name = f"tandem-doctor-{os.getpid()}-{uuid.uuid4().hex[:12]}"
    outcome = run_python("-m", "tandem.doctor.probes", "engine", name)
    if outcome.trouble:
        yield fail("engine", outcome.trouble, f"fix the failures above; if there are none: {fix}")
    else:
        found = json.loads(outcome.output)
        text = (
            f"{found['task']} started in {found['start_secs']:.2f} s and made {found['steps']} steps of one "
            f"environment: p50 {found['step_p50_us']:.1f} us, p99 {found['step_p99_us']:.1f} us; "
            + ", ".join(found["libraries"])
        )
        if found["step_p50_us"] > _SLOW_US:
            yield warn("engine", text, "steps are slow: free a core, and see the warnings above")
        else:
            yield ok("engine", text)
    left = _left_behind(name)
    if left:
        yield fail("engine's end", f"it left {', '.join(left)}", f"rm {' '.join(left)}")
    else:
        yield ok("engine's end", "it ended, and left nothing behind")


def _left_behind(name: str) -> list[str]:
    """Returns a region's files once they are gone or should be: an engine whose launcher died ends by itself."""
    deadline = time.monotonic() + _GONE_SECS
    while True:
        left = [path for path in (f"/dev/shm/{name}", f"/dev/shm/.{name}.tandem") if os.path.lexists(path)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)
