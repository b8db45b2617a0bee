"""The regions in /dev/shm by their names, and the name that a client attaches to."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tandem.arguments import integer, text
from tandem.errors import InvalidArgument, NotReady, TandemError

SHM = Path("/dev/shm")
_SPARE_LINK = re.compile(r"\.(.+)\.tandem")
_LOOK_SECS = 0.02


def regions() -> Iterator[tuple[str, os.stat_result]]:
    """Yields name and status of each region, which is known by the spare link that its engine keeps beside its name."""
    for entry in os.scandir(SHM) if SHM.is_dir() else ():
        if spare_link := _SPARE_LINK.fullmatch(entry.name):
            with contextlib.suppress(FileNotFoundError):
                yield spare_link[1], entry.stat(follow_symlinks=False)


def own_regions() -> list[str]:
    """Returns the names of this user's regions; on Windows also of others, which a client refuses."""
    if sys.platform == "win32":
        from tandem._native import region_names

        return region_names()
    return [name for name, status in regions() if status.st_uid == os.geteuid()]


def _maps(pid: int, region: str) -> bool:
    """Returns whether process `pid` maps the region: one of another PID namespace may have the same id."""
    if sys.platform == "win32":  # without such namespaces
        return True
    try:
        file = (SHM / region).stat()
        device = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}"
        return f" {device} {file.st_ino} " in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")
    except PermissionError:  # the process hides its memory
        return True
    except OSError:  # it has ended
        return False


def region_to_attach(name: str | None, pid: int | None, attach_timeout: float) -> str:
    """Returns the name of the region that a client's arguments choose.

    Args:
      name: The name, in which "{pid}" stands for `pid`; None: the environment variable LUCKY_SHM_NAME, else "tandem".
      pid: The engine's process id; None: `name` alone chooses. Without a name that has "{pid}", waits until that
        process serves a region of this user. An engine of another PID namespace is found by its name only.
      attach_timeout: Seconds to wait.

    Raises:
      NotReady: The process serves no region, and served none in time.
      InvalidArgument: `name` or `pid` is invalid; or the name has "{pid}" without `pid`, or no "{pid}" beside it.
    """
    from tandem._native import default_region_name, engine_pid  # the doctor imports this module without the extension

    asked = text("name", default_region_name() if name is None else name)
    if pid is None:
        if "{pid}" in asked:
            raise InvalidArgument(f"pid: expected the engine's process id for the name {asked!r}, found None")
        return asked
    pid = integer("pid", pid, 1)
    if "{pid}" in asked:
        return asked.replace("{pid}", str(pid))
    if name is not None:
        raise InvalidArgument(f"name: expected none beside pid, or one with '{{pid}}', found {name!r}")
    deadline = time.monotonic() + attach_timeout
    while True:
        for region in own_regions():
            with contextlib.suppress(TandemError):  # its engine is dead, or it ends now
                if engine_pid(region) == pid and _maps(pid, region):
                    return region
        if time.monotonic() >= deadline:
            raise NotReady(
                f"expected a region that process {pid} serves, found none in {attach_timeout:g} s; "
                "start the engine, or attach by the region's name"
            )
        time.sleep(_LOOK_SECS)
