"""Writes the lock files of Python packages: their versions, with the hashes of the wheels that this project installs.

tools/build/packages/*.in -> pip's reports of what it would install -> tools/build/packages/*.lock

The first line of a list (`.in`) says what it is for, and how it is resolved:

- A list goes into all.lock, where a package has one version. "A lock of its own: ..." names what contradicts that; the
  list then has a lock file of its own name.
- "Without dependencies": what its packages require is in the list, or in another one, or is not needed.

In a lock file each package names the lists that need it: `tools/build/packages/locked NAME` prints those of one.
tools/lock runs this program, with a pip that it has installed.
"""

import argparse
import collections
import itertools
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).with_name("packages")
# What is built with and shipped is locked for all of these, other lists for this Python and machine.
_SHIPPED = ("base", "mujoco_core")
_PYTHONS = ("3.11", "3.12", "3.13")
_MACHINES = ("x86_64", "aarch64")
_GLIBC = range(17, 37)  # manylinux_2_N, up to Debian 12's

Pins = dict[str, str]  # a package's name -> its version


def _report(arguments: Iterable[str], pins: Pins) -> list[dict[str, Any]]:
    """Returns what pip would install, in the versions of pins."""
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder, "constraints.txt"), Path(folder, "report.json")
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()), "utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--only-binary=:all:", f"--constraint={constraints}", f"--report={report}", *arguments]
        subprocess.run(command, check=True)
        found: list[dict[str, Any]] = json.loads(report.read_text("utf-8"))["install"]
    return found


def _name(package: dict[str, Any]) -> str:
    return re.sub(r"[-_.]+", "-", package["metadata"]["name"]).lower()


class _Lock:
    def __init__(self) -> None:
        self.pins: Pins = {}
        self._hashes: dict[str, set[str]] = collections.defaultdict(set)
        self.lists: dict[str, set[str]] = collections.defaultdict(set)

    def add(self, packages: list[dict[str, Any]], needed_by: str) -> None:
        """Adds packages of a report, and the list that needs them."""
        for package in packages:
            name, version = _name(package), package["metadata"]["version"]
            if self.pins.setdefault(name, version) != version:
                raise SystemExit(f"tandem: {name}: expected one version, found {self.pins[name]} and {version}")
            self._hashes[name].add(package["download_info"]["archive_info"]["hashes"]["sha256"])
            self.lists[name].add(needed_by)

    def text(self) -> str:
        lines = []
        for name in sorted(self.pins):
            hashes = [f"    --hash=sha256:{digest}" for digest in sorted(self._hashes[name])]
            lines.append(" \\\n".join([f"{name}=={self.pins[name]}", *hashes]))
            lines.append(f"    # {' '.join(sorted(self.lists[name]))}")
        return "\n".join(lines) + "\n"


def _other_machines(lock: _Lock, name: str) -> None:
    """Adds the wheels of a list for other Pythons and machines."""
    pins = [f"{package}=={version}" for package, version in lock.pins.items() if name in lock.lists[package]]
    for python, machine in itertools.product(_PYTHONS, _MACHINES):
        platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC]
        other = [f"--python-version={python}", *platforms, f"--platform=manylinux2014_{machine}", "--no-deps"]
        lock.add(_report([*other, f"--target={_FOLDER}", *pins], {}), name)


def _arguments(lists: Iterable[str]) -> list[str]:
    return [f"--requirement={_FOLDER / name}.in" for name in lists]


def _resolved(lists: list[str], comments: dict[str, str], pins: Pins) -> _Lock:
    """Resolves lists together; versions in pins stay."""
    alone = [name for name in lists if "Without dependencies" in comments[name]]
    together = [name for name in lists if name not in alone]
    lock = _Lock()
    packages = _report(_arguments(together), pins) if together else []
    chosen = {_name(package): package["metadata"]["version"] for package in packages}
    for name in together:
        lock.add(_report(_arguments([name]), chosen), name)
    for name in alone:
        lock.add(_report([*_arguments([name]), "--no-deps"], chosen), name)
    for name in set(lists) & set(_SHIPPED):
        _other_machines(lock, name)
    return lock


def main() -> None:
    """Writes every lock file."""
    parser = argparse.ArgumentParser(prog="tools/lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions, not those of the lock files")
    upgrade = parser.parse_args().upgrade
    comments = {path.stem: path.read_text("utf-8").partition("\n")[0] for path in sorted(_FOLDER.glob("*.in"))}
    own = [name for name, comment in comments.items() if "A lock of its own" in comment]
    locks = {"all": [name for name in comments if name not in own], **{name: [name] for name in own}}
    for name, lists in locks.items():
        path = _FOLDER / f"{name}.lock"
        found = re.findall(r"^([\w.-]+)==(\S+)", path.read_text("utf-8") if path.exists() and not upgrade else "", re.M)
        print(f"tandem: resolving {', '.join(lists)}", flush=True)
        lock = _resolved(lists, comments, dict(found))
        path.write_text(lock.text(), "utf-8")
        print(f"tandem: {name}.lock has {len(lock.pins)} packages", flush=True)


if __name__ == "__main__":
    main()
