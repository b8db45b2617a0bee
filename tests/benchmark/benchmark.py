"""Measures Tandem, its lower limits and other programs by turns in one run; docs/benchmarks.md describes it."""

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.benchmark import (
    deaths,
    environments,
    gateway,
    godot,
    micro,
    pictures,
    python_environments,
    slow_lane,
    steps,
    worker,
)
from tests.benchmark.harness import Measurement, Plan, figures_of
from tests.benchmark.interpreters import make_interpreter
from tests.benchmark.rows import Suite

_NAMES = (
    *"steps busy make_vec workers mujoco start deaths".split(),
    *"frames messages gateway slow_lane godot".split(),
)
_ALL = [
    module.SUITES for module in (steps, environments, python_environments, deaths, micro, gateway, slow_lane, godot)
]
_LARGE = ("torch",)  # gigabytes: its rows are measured if tools/extra_env has made it
SUITES: dict[str, Suite] = {name: next(suites[name] for suites in _ALL if name in suites) for name in _NAMES}


def machine() -> dict[str, Any]:
    """Describes this machine."""
    cpu = platform.processor()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(line for line in lines if line.startswith("model name")).split(":", 1)[1].strip()
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line; `tools/benchmark --help` explains it."""
    parser = argparse.ArgumentParser(prog="tools/benchmark", add_help=False, allow_abbrev=False)
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    for flag in ("list", "no_peers", "quick"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--rows", metavar="PATTERN,...", default="*")
    parser.add_argument("--rounds", metavar="N", type=int)
    parser.add_argument("--seconds", metavar="S", type=float)
    parser.add_argument("--against", metavar="FOLDER", type=Path)
    parser.add_argument("--json", metavar="FILE", type=Path)
    parser.add_argument("--out", metavar="FOLDER", type=Path)
    parsed = parser.parse_args(arguments)
    for name in parsed.suites:
        if name not in SUITES:
            parser.error(f"expected suites out of {', '.join(SUITES)}; found {name}")
    for flag in ("rounds", "seconds"):
        value = getattr(parsed, flag)
        if value is not None and not 0 < value < math.inf:
            parser.error(f"expected a finite --{flag} above 0, found {value}")
    if parsed.against and not os.access(parsed.against / "bazel-bin/tests/benchmark/benchmark", os.X_OK):
        parser.error(
            f"--against: expected a checkout with a built benchmark, found none in {parsed.against}. Next: there, "
            "tools/bazel build //tests/benchmark"
        )
    if parsed.against:
        parsed.against = parsed.against.resolve()
    if parsed.json and parsed.json.is_dir():
        parser.error(f"--json: expected a file, found the folder {parsed.json}")
    for flag, folder in (("json", parsed.json and parsed.json.absolute().parent), ("out", parsed.out)):
        if folder and (reason := why_unwritable(folder)):
            parser.error(f"--{flag}: expected a folder to write to, found {reason}")
    parsed.seconds = parsed.seconds or (0.1 if parsed.quick else 0.5)
    return parsed


def why_unwritable(folder: Path) -> str | None:
    """Creates a folder if it is missing; returns why it is not writable, or None if it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{error.strerror}: {folder}"
    return None


def choose(names: Sequence[str], patterns: str, *, peers: bool = True) -> list[tuple[Suite, frozenset[str]]]:
    """Selects suites and rows.

    Args:
      names: The suites' names; empty: all suites.
      patterns: Patterns of row keys, separated by commas.
      peers: Whether to select rows that need another Python environment, too.

    Returns:
      The suites, each with the keys of its rows and of the rows that they are compared with.

    Raises:
      ValueError: A pattern matches no row of these suites.
    """
    suites = [SUITES[name] for name in names or SUITES]
    for pattern in patterns.split(","):
        if not any(fnmatch(key, pattern) for suite in suites for key in suite.labels):
            raise ValueError(
                f"expected patterns that fit rows of {', '.join(one.name for one in suites)}; found {pattern}"
            )
    chosen = []
    for suite in suites:
        rows = [row for case in suite.cases for row in case.rows if peers or not row.python]
        there = {row.key for row in rows}
        wanted = [row for row in rows if any(fnmatch(row.key, pattern) for pattern in patterns.split(","))]
        keys = {row.key for row in wanted}
        if keys:
            chosen.append((suite, frozenset(keys.union(*(row.against for row in wanted)) & there)))
    return chosen


@contextlib.contextmanager
def names_removed(prefix: str) -> Iterator[None]:
    """Removes regions, sockets and folders with the prefix that killed programs left."""
    try:
        yield
    finally:
        for path in Path("/dev/shm").glob(f"*{prefix}*"):
            path.unlink(missing_ok=True)
        for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            shutil.rmtree(folder, ignore_errors=True)


def write_json(file: Path, value: Any) -> None:
    """Writes a file under a temporary name, then renames it."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    os.replace(part, file)


def list_of(suites: Sequence[Suite]) -> str:
    """Returns the names of suites and their rows as text."""
    lines = []
    for suite in suites:
        lines.append(f"{suite.name}: {suite.about}")
        lines += [f"  {key:20} {label}" for key, label in suite.labels.items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints tables, and writes files.

    Args:
      arguments: The command line; None: the process's own.

    Returns:
      The exit code.

    Raises:
      subprocess.SubprocessError: The peers' environment could not be created.
    """
    parsed = parse_arguments(arguments)
    try:
        chosen = choose(parsed.suites, parsed.rows)
    except ValueError as error:
        print(f"tandem: {error}\nNext: tools/benchmark --list", file=sys.stderr)
        return 2
    if parsed.list:
        print(list_of([suite for suite, _ in chosen]))
        return 0
    peers = not (parsed.no_peers or parsed.against)
    if not peers:
        chosen = choose(parsed.suites, parsed.rows, peers=False)
    if not chosen:
        given = {"--no_peers": parsed.no_peers, "--against": parsed.against}
        flags = " and ".join(flag for flag, value in given.items() if value)
        print(f"tandem: expected a row to measure, found only rows excluded by {flags}", file=sys.stderr)
        return 1
    # Containers may share /dev/shm, so a process id is not unique.
    prefix = f"tandem-benchmark-{uuid.uuid4().hex}"
    asked = parsed.rounds, parsed.seconds, parsed.quick
    planned = [(suite, Plan(keys, *asked, f"{prefix}-{suite.name}", parsed.against, peers)) for suite, keys in chosen]
    for name in sorted({row.python for suite, plan in planned for case in suite.cases for row in plan.rows_of(case)}):
        if name and name not in _LARGE:
            make_interpreter(name)
    on = machine()
    about = {
        "command": shlex.join(["tools/benchmark", *(sys.argv[1:] if arguments is None else arguments)]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": on,
        "rounds": parsed.rounds,
        "seconds": parsed.seconds,
    }
    print(
        f"{about['command']}, {about['date']}: {on['cores']} cores of {on['cpu']}, {on['memory_gib']} GiB, "
        f"Linux {on['kernel']}, Python {on['python']}, load {on['load_average'][0]:.2f}",
        flush=True,
    )
    figures: dict[str, Any] = {}
    failed: list[str] = []
    for suite, plan in planned:
        began = time.monotonic()
        measurement = Measurement(suite, plan)
        with names_removed(plan.prefix):
            found = measurement.run()
        failed += sorted(measurement.failed)
        print("".join(f"\n{one.table()}\n" for one in found), end="", flush=True)
        print(f"{suite.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        figures[suite.name] = figures_of(found)
        try:
            if parsed.json:  # after each suite, so that an interrupt loses only the current suite
                write_json(parsed.json, {**about, "suites": figures})
            if parsed.out and found:
                pictures.draw(str(parsed.out / f"{suite.name}.png"), suite.about, found)
        except OSError as error:
            print(f"tandem: expected files that can be written, found {error}", file=sys.stderr, flush=True)
            failed.append(f"files of {suite.name}")
    if failed:
        print(
            f"tandem: expected all rows to be measured, found that these failed: {', '.join(failed)}", file=sys.stderr
        )
    return 1 if failed else 0


def run() -> int:
    """Runs `main` as a program.

    Returns:
      The exit code.
    """
    if sys.argv[1:2] == ["--worker"]:
        worker.main(sys.argv[2:])
        return 0
    # The shell starts background processes with these signals ignored, and the engines would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        print("tandem: interrupted", file=sys.stderr)
        return 130
    except subprocess.SubprocessError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(run())
