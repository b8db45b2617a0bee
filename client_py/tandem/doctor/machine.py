"""Checks of the machine: limits, memory, cores, huge pages."""

import os
import re
import resource
from dataclasses import dataclass
from pathlib import Path

from tandem.doctor.finding import Findings, fail, ok, size, warn

_MIB = 1 << 20
_UNLIMITED_BYTES = 1 << 60  # cgroup v1 writes "no limit" as a number of this size
_LEAST_FILES = 64
_LEAST_FILE_BYTES = 2 * _MIB  # a small region
_COMFORT_BYTES = 512 * _MIB
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")


@dataclass(frozen=True)
class MemoryLimit:
    """The memory limit of a control group, in bytes, and the file that has it.

    `used` is by the group and those below it; `reclaimable` the part of this that the kernel frees before it kills a
    process.
    """

    limit: int
    used: int
    reclaimable: int
    file: Path

    @property
    def available(self) -> int:
        """Bytes that the group's processes may still allocate."""
        return max(0, self.limit - (self.used - self.reclaimable))


def check_limits() -> Findings:
    """Do the process's own limits leave enough room?"""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < _LEAST_FILES:
        yield warn("open files", f"a limit of {files}", "ulimit -n 1024; in Docker: --ulimit nofile=1024")
    else:
        yield ok("open files", "no limit" if files == resource.RLIM_INFINITY else f"a limit of {files}")
    largest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if largest == resource.RLIM_INFINITY:
        yield ok("file size", "no limit")
    else:
        say = fail if largest < _LEAST_FILE_BYTES else warn
        yield say("file size", f"a limit of {size(largest)}, and a region is a file", "ulimit -f unlimited")


def check_memory() -> Findings:
    """Is there enough memory, also under the control group's limit, which includes /dev/shm?"""
    available = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
    free = int(available[1]) * 1024 if available else 0
    found = memory_limit()
    if found is None:
        text = f"{size(free)} available, no limit by a control group"
    else:
        free = min(free, found.available)
        text = (
            f"a control group's limit of {size(found.limit)}, {size(found.used)} of it used, of which "
            f"{size(found.reclaimable)} can be reclaimed; files in /dev/shm count ({found.file})"
        )
    if free < _COMFORT_BYTES:
        yield warn("memory", text, "fewer environments, or more memory; in Docker: --memory")
    else:
        yield ok("memory", text)


def check_cores() -> Findings:
    """Can engine and trainer run at the same time?"""
    cores = len(os.sched_getaffinity(0))
    quota = cpu_quota()
    text = f"{cores} of {os.cpu_count()} usable"
    if quota is not None:
        text += f", and a control group's quota of {quota:g}"
    if min(cores, quota or cores) < 2:
        yield warn(
            "cores",
            f"{text}: engine and trainer share one core",
            'allow two or more (taskset, docker --cpus, --cpuset-cpus); with one core never use wait="spin", which '
            'keeps the engine off that core: use "adaptive", the default, or "block"',
        )
    else:
        yield ok("cores", text)


def check_huge_pages() -> Findings:
    """Can regions use huge pages?"""
    try:
        setting = re.search(r"\[(\w+)\]", _HUGE_PAGES.read_text("ascii"))
    except OSError:
        setting = None
    word = setting[1] if setting else "unknown"
    if word in ("advise", "always", "force", "within_size"):
        yield ok("huge pages", f"{word}: large regions use them")
    else:
        yield ok("huge pages", f"{word}: regions use small pages; for large ones, as root: echo advise >{_HUGE_PAGES}")


def memory_limit(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> MemoryLimit | None:
    """Returns the limit of this process's control groups with the fewest available bytes; None: no limit.

    `proc` is the file that lists the groups, `root` the folder where they are mounted, version 1 or 2. The engine has
    the same rule in C++, base/os/available_memory.h; base/os/testdata/memory_limits.json tests both.
    """
    tightest: MemoryLimit | None = None
    for group in _groups("memory", proc, root):
        limit = _memory_limit_of(group)
        if limit is not None and (tightest is None or limit.available < tightest.available):
            tightest = limit
    return tightest


def _memory_limit_of(group: Path) -> MemoryLimit | None:
    for limit_name, used_name, reclaimable in (
        ("memory.max", "memory.current", ("inactive_file", "active_file", "slab_reclaimable")),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
    ):
        limit = _number(group / limit_name)
        if limit is None or limit >= _UNLIMITED_BYTES:
            continue
        used = _number(group / used_name) or 0
        words = _words(group / "memory.stat")
        kept = sum(int(number) for key, number in zip(words[::2], words[1::2], strict=False) if key in reclaimable)
        return MemoryLimit(limit, used, min(used, kept), group / limit_name)
    return None


def cpu_quota(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Returns the cores' worth of time that this process's control groups allow; None: no quota. As `memory_limit`."""
    quotas = []
    for group in _groups("cpu", proc, root):
        words = _words(group / "cpu.max") or [
            *_words(group / "cpu.cfs_quota_us"),
            *_words(group / "cpu.cfs_period_us"),
        ]
        if len(words) == 2 and words[0].isdigit() and int(words[1]) > 0:
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def _groups(controller: str, proc: Path, root: Path) -> list[Path]:
    """Returns the folders of this process's control groups, and of those above them, in either version."""
    try:
        lines = proc.read_text("utf-8").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not path.startswith("/"):
            continue
        if controllers == "":
            base = root  # version 2
        elif controller in controllers.split(","):
            base = root / controller
        else:
            continue
        # In a container the path may be one of the host, which does not exist here: then no limit is found. The path of
        # a group outside of the cgroup namespace begins with "/..".
        below = base if ".." in path.split("/") else base / path.lstrip("/")
        for folder in (below, *(parent for parent in below.parents if parent.is_relative_to(base))):
            # Version 1: a group without use_hierarchy does not limit the groups below it.
            if folder != below and _number(folder / f"{controller}.use_hierarchy") == 0:
                break
            folders.append(folder)
    return folders


def _words(file: Path) -> list[str]:
    try:
        return file.read_text("ascii").split()
    except OSError:
        return []


def _number(file: Path) -> int | None:
    words = _words(file)
    return int(words[0]) if words and words[0].isdigit() else None
