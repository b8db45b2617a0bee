"""Checks of /dev/shm: the file system, its functions, and the regions in it."""

import contextlib
import errno
import json
import os
import pwd
import shlex
import uuid
from pathlib import Path

from tandem.doctor.child import run_python
from tandem.doctor.finding import Findings, fail, ok, size, warn
from tandem.regions import SHM, regions

_MIB = 1 << 20
_LEAST_BYTES = 2 * _MIB  # a small region
_COMFORT_BYTES = 128 * _MIB
_MORE_ROOM = (
    "in a container: docker run --shm-size=1g (its default is 64 MiB), or --ipc=host; elsewhere, as root: "
    "mount -o remount,size=1g /dev/shm"
)


def check_mount() -> Findings:
    """Is /dev/shm present, in memory, and large enough?"""
    if not SHM.is_dir():
        yield fail("/dev/shm", "it does not exist", "as root: mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm")
        return
    kind = _file_system(SHM)
    if kind != "tmpfs":
        yield warn(
            "/dev/shm",
            f"expected a tmpfs, found {kind}",
            "as root: mount -t tmpfs tmpfs /dev/shm; disks make steps slow",
        )
    stat = os.statvfs(SHM)
    total, free = stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
    found = f"{kind}, {size(total)}, {size(free)} of it free"
    if total == 0 and kind == "tmpfs":
        yield ok("/dev/shm", f"{kind}, of no limited size")
    elif free < _LEAST_BYTES:
        yield fail("/dev/shm", f"{found}; a small engine takes {size(_LEAST_BYTES)}", f"free some, or: {_MORE_ROOM}")
    elif free < _COMFORT_BYTES:
        yield warn("/dev/shm", f"{found}; enough for few environments", _MORE_ROOM)
    else:
        yield ok("/dev/shm", found)


def check_files() -> Findings:
    """Does /dev/shm support what a region needs: an unnamed file, reserved, then linked?"""
    if not SHM.is_dir():
        return  # said above
    about = "files in /dev/shm"
    step, next_step = "making an unnamed file (O_TMPFILE)", "give this user leave to write there: chmod 1777 /dev/shm"
    try:
        with contextlib.ExitStack() as opened:
            folder = os.open(SHM, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, folder)
            file = os.open(SHM, os.O_TMPFILE | os.O_RDWR, 0o600)
            opened.callback(os.close, file)
            step, next_step = "reserving 1 MiB (posix_fallocate)", _MORE_ROOM
            os.posix_fallocate(file, 0, _MIB)
            step, next_step = "linking it (linkat)", "mount /proc, and a tmpfs on /dev/shm"
            name = str(SHM / f"tandem-doctor-{uuid.uuid4().hex}")
            # With the folder's descriptor Python calls linkat, which follows the link in /proc.
            os.link(f"/proc/self/fd/{file}", name, src_dir_fd=folder, follow_symlinks=True)
            os.unlink(name)
    except OSError as error:
        if error.errno == errno.EROFS:
            next_step = "mount it writable: mount -o remount,rw /dev/shm"
        yield fail(about, f"{step} failed: {error.strerror}", next_step)
    else:
        yield ok(about, "O_TMPFILE, posix_fallocate and linkat work")


def check_regions() -> Findings:
    """Which regions are there, and which engines serve them?"""
    if not SHM.is_dir():
        return  # said above
    about = "regions"
    mine: dict[str, int] = {}
    others: dict[str, int] = {}  # owner -> bytes
    for name, status in regions():
        if status.st_uid == os.geteuid():
            mine[name] = status.st_size
        else:
            owner = _user(status.st_uid)
            others[owner] = others.get(owner, 0) + status.st_size
    for owner, taken in others.items():
        yield ok(about, f"{owner} has some, of {size(taken)}; only they can attach to them or remove them")
    served: dict[str, int | str | None] = {}
    if mine:
        outcome = run_python("-m", "tandem.doctor.probes", "regions", *mine)
        if outcome.trouble:
            yield warn(about, f"{len(mine)}, of unknown engines: {outcome.trouble}", "see below")
            return
        served = json.loads(outcome.output)
    live = [f"{name} (engine {engine})" for name, engine in served.items() if isinstance(engine, int)]
    dead = [f"{name} ({size(mine[name])})" for name, engine in served.items() if engine is None]
    for name, engine in served.items():
        if isinstance(engine, str):
            yield warn(
                about,
                f"{name}: unknown engine: {engine}",
                "if no engine of yours serves it: " + shlex.join(["rm", f"{SHM}/{name}", f"{SHM}/.{name}.tandem"]),
            )
    if dead:
        yield warn(
            about,
            f"{len(dead)} whose engines are dead: {', '.join(dead)}",
            "nothing: the next engine that starts removes them, such as the one that this doctor starts below",
        )
    yield ok(about, f"{len(live)} in use{': ' if live else ''}{', '.join(live)}")


def _file_system(path: Path) -> str:
    """Returns the type of the file system of a path, by the last mount that covers it."""
    kind, longest = "unknown", -1
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        where, _, what = line.partition(" - ")
        point = where.split()[4]
        if path.is_relative_to(point) and len(point) >= longest:
            kind, longest = what.split()[0], len(point)
    return kind


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
