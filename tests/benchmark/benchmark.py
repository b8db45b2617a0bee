"""Measures Tandem, what limits it and what it is compared with, side by side in one run.

The rows of a suite take turns, for several rounds, so that whatever else the machine does hits all of them alike. See
docs/benchmarks.md.
"""

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
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.benchmark import (
    calls,
    deaths,
    frames,
    make_vec_rates,
    messages,
    mujoco_rates,
    scaling,
    start,
    steps,
    together,
    training,
)
from tests.benchmark import slow_lane_suite as slow_lane
from tests.benchmark.interpreters import make_interpreter, python_of
from tests.benchmark.measurement import RowUnavailable
from tests.benchmark.suite import FAILURES, Plan, Suite, why

SUITES = {
    suite.name: suite
    for suite in (
        steps.SUITE,
        steps.BUSY,
        make_vec_rates.SUITE,
        mujoco_rates.SUITE,
        scaling.SUITE,
        start.SUITE,
        training.SUITE,
        deaths.SUITE,
        frames.SUITE,
        messages.SUITE,
        calls.SUITE,
        together.SUITE,
        slow_lane.SUITE,
        steps.PROFILE,
    )
}
_ONLY_IF_NAMED = frozenset({steps.PROFILE.name})


def machine() -> dict[str, Any]:
    """Says on what this runs."""
    cpu = platform.processor()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def make_parser() -> argparse.ArgumentParser:
    """Makes the parser of the command line; what its parts mean, `tools/benchmark --help` says."""
    parser = argparse.ArgumentParser(prog="tools/benchmark", add_help=False, allow_abbrev=False)
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    for flag in ("list", "no_peers", "quick"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--rows", metavar="PATTERN,...")
    parser.add_argument("--rounds", metavar="N", type=int)
    parser.add_argument("--seconds", metavar="S", type=float)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--out", metavar="FOLDER")
    return parser


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    for name in parsed.suites:
        if name not in SUITES:
            parser.error(f"expected suites out of {', '.join(SUITES)}; found {name}")
    for flag in ("rounds", "seconds"):
        value = getattr(parsed, flag)
        if value is not None and not 0 < value < math.inf:
            parser.error(f"expected a finite --{flag} above 0, found {value}")
    parsed.rounds = parsed.rounds or (3 if parsed.quick else 7)
    parsed.seconds = parsed.seconds or (0.1 if parsed.quick else 0.5)
    return parsed


def choose(
    names: Sequence[str], patterns: str | None, without: frozenset[str] = frozenset()
) -> list[tuple[Suite, frozenset[str]]]:
    """Finds what a command line asks for.

    Args:
      names: Of suites; empty: all that need not be named.
      patterns: Of rows' keys, with commas between them; None: all rows.
      without: Interpreters whose rows are left out.

    Returns:
      Suites, each with keys of rows to measure.

    Raises:
      ValueError: No row of these suites fits a pattern.
    """
    suites = [SUITES[name] for name in names] or [one for one in SUITES.values() if one.name not in _ONLY_IF_NAMED]
    wanted = ["*"] if patterns is None else patterns.split(",")
    for pattern in wanted:
        if not any(fnmatch(key, pattern) for suite in suites for key in suite.rows):
            raise ValueError(
                f"expected patterns that fit rows of {', '.join(one.name for one in suites)}; found {pattern}"
            )
    chosen = []
    for suite in suites:
        keys = frozenset(
            key
            for key in suite.rows
            if any(fnmatch(key, pattern) for pattern in wanted) and suite.interpreters.get(key) not in without
        )
        if keys:
            chosen.append((suite, keys | suite.baseline))
    return chosen


def missing_interpreters(chosen: Sequence[tuple[Suite, frozenset[str]]], no_peers: bool) -> frozenset[str]:
    """Makes the peers' interpreter if it is needed, and finds which others are not there.

    Args:
      chosen: What is to be measured.
      no_peers: Nothing is made, and all count as missing.

    Returns:
      Their names.

    Raises:
      subprocess.SubprocessError: It could not be made; the tool's own message is on stderr.
    """
    needed = frozenset(suite.interpreters[key] for suite, keys in chosen for key in keys if key in suite.interpreters)
    if no_peers:
        return needed
    missing = set()
    for name in sorted(needed):
        if name == "peers":
            make_interpreter(name)
        try:
            python_of(name)
        except RowUnavailable as error:
            print(f"{error}\ntandem: going on without the rows that need it", file=sys.stderr)
            missing.add(name)
    return frozenset(missing)


@contextlib.contextmanager
def names_removed(prefix: str) -> Iterator[None]:
    """Removes what killed or interrupted programs left of regions, queues and folders whose names begin so."""
    try:
        yield
    finally:
        for path in Path("/dev/shm").iterdir():
            if prefix in path.name:
                path.unlink(missing_ok=True)
        for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            shutil.rmtree(folder, ignore_errors=True)


def part_of(file: Path) -> Path:
    """Returns what a file is called while it is written, so that under its own name it is never half there."""
    return file.with_name(f"{file.name}.part")


def why_unwritable(file: Path) -> str | None:
    """Says what forbids to write a file; None: nothing."""
    if file.exists() and not file.is_file():
        return f"no plain file: {file}"
    try:
        part_of(file).touch()
        part_of(file).unlink()
    except OSError as error:
        return f"{error.strerror}: {file}"
    return None


def why_no_folder(name: str) -> str | None:
    """Says what forbids to write files into a folder, which is made if it is not there; None: nothing."""
    if not name:
        return "an empty name"
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=name).close()
    except OSError as error:
        return f"{error.strerror}: {name}"
    return None


def write_json(file: Path, value: Any) -> None:
    """Writes a file anew; what was there before stays until all of it is written."""
    part = part_of(file)
    try:
        part.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def list_of(suites: Sequence[Suite]) -> str:
    """Says what there is to measure, for people."""
    lines = []
    for suite in suites:
        lines.append(f"{suite.name}: {suite.about}")
        lines += [f"  {key:20} {label}" for key, label in suite.rows.items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None, *, prefix: str | None = None) -> int:
    """Measures, prints tables, writes files.

    Args:
      arguments: The command line; None: the process's own.
      prefix: What names of regions begin with; None: what no other run's do, though several process namespaces may
        share /dev/shm.

    Returns:
      The exit code.
    """
    parsed = parse_arguments(arguments)
    prefix = prefix or f"tandem-benchmark-{uuid.uuid4().hex}"
    try:
        chosen = choose(parsed.suites, parsed.rows)
    except ValueError as error:
        print(f"tandem: {error}\nNext: tools/benchmark --list", file=sys.stderr)
        return 2
    if parsed.list:
        print(list_of([suite for suite, _ in chosen]))
        return 0
    json_file = None if parsed.json is None else Path(parsed.json).resolve()
    if json_file and (reason := why_unwritable(json_file)):
        text = f"--json: expected a file that can be written, found {reason}\nNext: another path"
        print(f"tandem: {text}", file=sys.stderr)
        return 2
    if parsed.out is not None and (reason := why_no_folder(parsed.out)):
        text = f"--out: expected a folder that can be written to, found {reason}\nNext: another path"
        print(f"tandem: {text}", file=sys.stderr)
        return 2
    missing = missing_interpreters(chosen, parsed.no_peers)
    chosen = choose(parsed.suites, parsed.rows, missing)
    if not chosen:
        print(
            f"tandem: expected a row to measure, found only such as need {' and '.join(sorted(missing))}, which are "
            f"left out\nNext: tools/benchmark --list; without --no_peers, or after tools/extra_env {min(missing)}",
            file=sys.stderr,
        )
        return 1
    about = {
        "command": shlex.join(["tools/benchmark", *(sys.argv[1:] if arguments is None else arguments)]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "rounds": parsed.rounds,
        "seconds": parsed.seconds,
    }
    on = about["machine"]
    print(
        f"{about['command']}, {about['date']}: {on['cores']} cores of {on['cpu']}, {on['memory_gib']} GiB, "
        f"Linux {on['kernel']}, Python {on['python']}, load {on['load_average'][0]:.2f}",
        flush=True,
    )
    figures: dict[str, Any] = {}
    failed: list[str] = []
    for suite, rows in chosen:
        began = time.monotonic()
        # Each suite's own: processes of the one before may still be ending, and removing what is theirs.
        plan = Plan(rows, parsed.rounds, parsed.seconds, parsed.quick, f"{prefix}-{suite.name}")
        try:
            with names_removed(plan.prefix):
                found = suite.measure(plan)
        except FAILURES as error:  # the suites after it are worth their time nevertheless
            print(f"tandem: {suite.name} is left out: {why(error)}", file=sys.stderr, flush=True)
            failed.append(suite.name)
            continue
        failed += [f"{suite.name} {key}" for key in sorted(found.failed)]
        print("".join(f"\n{table}\n" for table in found.tables), end="", flush=True)
        print(f"{suite.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        figures[suite.name] = found.figures
        try:
            if json_file:  # after each suite: an interrupt later loses nothing
                write_json(json_file, {**about, "suites": figures})
            if parsed.out and found.draw:
                found.draw(str(Path(parsed.out) / f"{suite.name}.png"))
        except OSError as error:  # what is printed is worth its time
            print(f"tandem: expected files that can be written, found {error}; going on", file=sys.stderr, flush=True)
            failed.append(f"files of {suite.name}")
    if failed:
        print(f"tandem: expected all to succeed, found that these failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    return 0


def run(prefix: str | None = None) -> int:
    """Runs `main` as a program: a signal or a failed row ends it with one line.

    Args:
      prefix: As `main`'s.

    Returns:
      The exit code.
    """
    # Both may come ignored from a shell that put us into the background, and the engines would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return main(prefix=prefix)
    except KeyboardInterrupt:
        print("tandem: interrupted", file=sys.stderr)
        return 130
    except FAILURES as error:
        print(f"tandem: {why(error)}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(run())
