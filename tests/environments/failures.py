"""Each failure of environments in workers, many times at random moments; `tools/worker_failures` runs this program.

A run is a trainer process of its own: it makes environments, and steps them until something happens. The failure is
caused by an environment at a random step, or by this program at a random time. A run is right if the trainer gets the
expected error or result in time, ends in time, and leaves no process and no region.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

_TRAINER = Path(__file__).with_name("failing_trainer.py")
_MARK = "TANDEM_FAILURE_RUN"
_HANG_SECS = 60.0
_MOMENT_SECS = 0.05  # a failure comes at a random time in so many seconds after the first reset
_CONSTRUCTION_SECS = 0.8  # the same, after the import of the trainer's modules
_MOST_STEPS = 600  # of which a random one fails
_LEFT_SECS = 10.0  # for the end of all processes


@dataclass(frozen=True)
class Case:
    """A kind of failure.

    Attributes:
      name: For the table.
      outcomes: What the trainer may find: names of errors, "restarted", "stepped", "closed" or "interrupted".
      fault: What an environment does at a random step; see failing_trainer.py.
      kills: Whose process gets the signal: "worker", "supervisor", "trainer" or "group".
      number: The signal.
      stops: Whose processes are stopped shortly before: "workers" or "supervisor".
      timeout: Seconds that a step may take.
      secs: From the failure to the outcome; more is an error of Tandem.
      step_secs: How long the trainer steps, if nothing ends that.
      options: For make_vec.
      closes: Whether the trainer calls close() at a random time, in a step.
    """

    name: str
    outcomes: tuple[str, ...]
    fault: str = ""
    kills: str = ""
    number: int = signal.SIGKILL
    stops: str = ""
    timeout: float = 30.0
    secs: float = 3.0
    step_secs: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    closes: bool = False


_IN_STEPS = [
    Case("exception", ("EnvFailed",), fault="raise"),
    Case("worker killed", ("PeerGone",), kills="worker"),
    Case("worker frozen", ("StepTimeout",), kills="worker", number=signal.SIGSTOP, timeout=0.3),
    Case("worker killed, restart", ("restarted",), kills="worker", options={"restart": True}),
    Case("supervisor killed", ("PeerGone",), kills="supervisor"),
    Case("supervisor frozen", ("stepped",), kills="supervisor", number=signal.SIGSTOP, step_secs=0.2),
    Case("wrong shape", ("EnvFailed",), fault="shape"),
    Case("wrong dtype", ("EnvFailed",), fault="dtype"),
    Case("prints", ("stepped",), fault="print"),
    Case("forks", ("stepped",), fault="fork"),
    Case("sys.exit", ("EnvFailed",), fault="exit"),
    Case("os._exit", ("PeerGone",), fault="_exit"),
    Case("hangs", ("StepTimeout",), fault="hang", timeout=0.3),
    Case("Ctrl-C", ("interrupted",), kills="group", number=signal.SIGINT),
]
_OTHERS = [
    Case("slow constructor", ("EngineStartFailed",), fault="constructor", options={"start_timeout": 1.0}),
    Case("slow constructor, Ctrl-C", ("interrupted",), fault="constructor", kills="group", number=signal.SIGINT),
    Case("slow constructor, trainer killed", ("gone",), fault="constructor", kills="trainer"),
    Case("trainer killed", ("gone",), kills="trainer"),
    Case("trainer killed, workers stopped", ("gone",), kills="trainer", stops="workers"),
    Case("trainer killed, supervisor stopped", ("gone",), kills="trainer", stops="supervisor"),
]
CASES = [
    *_IN_STEPS,
    *_OTHERS,
    *(
        replace(each, name=f"{each.name}; close()", outcomes=(*each.outcomes, "closed"), closes=True)
        for each in _IN_STEPS
    ),
]


@dataclass
class Result:
    """Of one run.

    Attributes:
      outcome: What the trainer found.
      secs: From the failure to the outcome; None: there was no failure before the outcome.
      end_secs: From the outcome until all processes had ended and the region was gone.
      problem: What was wrong; "": nothing.
    """

    outcome: str
    secs: float | None
    end_secs: float
    problem: str


def run(case: Case, seed: int, folder: Path) -> Result:
    """Runs a case once; `folder` is for the trainer's file."""
    chance = random.Random(seed)
    mark = uuid.uuid4().hex
    plan = {
        "fault": case.fault,
        "step": chance.randrange(1, _MOST_STEPS),
        "env": chance.randrange(6),
        "timeout": case.timeout,
        "options": case.options,
        "step_secs": case.step_secs,
        "close_after": chance.uniform(0, _MOMENT_SECS) if case.closes else None,
        "seed": seed,
        "times": str(folder / mark),
    }
    trainer = subprocess.Popen(
        [sys.executable, str(_TRAINER), json.dumps(plan)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, _MARK: mark, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    hung: list[str] = []

    def end() -> None:
        hung.extend(_processes(mark))
        _kill(hung)

    watchdog = threading.Timer(_HANG_SECS, end)
    watchdog.start()
    caused_at = None
    assert trainer.stdout is not None
    trainer.stdout.readline()  # "begun"
    if case.fault == "constructor":
        caused_at = _cause(case, chance, trainer, [])
    line = trainer.stdout.readline()
    if line.startswith("ready"):
        caused_at = _cause(case, chance, trainer, [int(pid) for pid in line.split()[1:]])
    out, err = trainer.communicate()  # ends when all processes have closed their standard output
    out = line + out
    watchdog.cancel()
    if hung:
        return Result("hang", None, _HANG_SECS, f"seed {seed}: these processes did not end: {hung}")
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if case.kills == "trainer":
        found: dict[str, Any] = {"outcome": "gone", "at": caused_at, "failed_at": None, "text": ""}
    elif lines:
        found = json.loads(lines[-1])
    else:
        return Result("none", None, 0.0, f"seed {seed}: no outcome, exit code {trainer.returncode}: {err[-2000:]}")
    left = _left(mark, trainer.pid, found["at"] + _LEFT_SECS)
    end_secs = time.monotonic() - found["at"]
    failed_at = found["failed_at"] if caused_at is None else caused_at
    secs = end_secs if case.kills == "trainer" else None
    if failed_at is not None and failed_at < found["at"] and found["outcome"] != "closed":
        secs = found["at"] - failed_at
    problem = ""
    if found["outcome"] not in case.outcomes:
        problem = f"expected {' or '.join(case.outcomes)}, found {found['outcome']}: {found['text']} {err[-1000:]}"
    elif left:
        problem = f"left {left}"
    elif case.kills != "trainer" and trainer.returncode != 0:
        problem = f"exit code {trainer.returncode}: {err[-2000:]}"
    elif secs is not None and secs > case.secs:
        problem = f"the outcome came after {secs:.2f} s"
    return Result(found["outcome"], secs, end_secs, f"seed {seed}: {problem}" if problem else "")


def _left(mark: str, trainer: int, deadline: float) -> str:
    """Awaits the end of all processes and of the region; returns what is left at the deadline, and kills it."""
    while True:
        processes = _processes(mark)
        regions = [path.name for path in Path("/dev/shm").glob(f"tandem-{trainer}-*")]
        if not processes and not regions:
            return ""
        if time.monotonic() > deadline:
            _kill(processes)
            return f"processes {processes}, regions {regions}"
        time.sleep(0.001)


def _cause(case: Case, chance: random.Random, trainer: "subprocess.Popen[str]", pids: list[int]) -> float | None:
    """Causes the failure, unless an environment does; `pids` are supervisor and workers. Returns its time."""
    if not case.kills:
        return None
    time.sleep(chance.uniform(0, _MOMENT_SECS if pids else _CONSTRUCTION_SECS))
    supervisor, workers = pids[:1], pids[1:]
    stopped = {
        "supervisor": supervisor,
        "workers": chance.sample(workers, chance.randint(min(1, len(workers)), len(workers))),
    }
    for pid in stopped.get(case.stops, []):
        os.kill(pid, signal.SIGSTOP)
    at = time.monotonic()
    try:
        if case.kills == "group":
            os.killpg(trainer.pid, case.number)
        else:
            os.kill(
                chance.choice({"worker": workers, "supervisor": supervisor}.get(case.kills, [trainer.pid])), case.number
            )
    except ProcessLookupError:  # the trainer has closed it before
        return None
    return at


def _processes(mark: str) -> list[str]:
    """Returns number and command of each process of a run."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            if f"{_MARK}={mark}".encode() in (path / "environ").read_bytes():
                found.append(f"{path.name} {(path / 'stat').read_text().rpartition(')')[2].split()[0]}")
        except OSError:
            continue
    return found


def _kill(processes: list[str]) -> None:
    for each in processes:
        try:
            os.kill(int(each.split()[0]), signal.SIGKILL)
        except ProcessLookupError:
            continue


def main() -> int:
    """Runs the cases and prints the table; returns 1 if a run was wrong."""
    parser = argparse.ArgumentParser(description="Causes each failure of environments in workers, at random moments.")
    parser.add_argument("--runs", type=int, default=100, help="of each case (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments (1)")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in case.name]
    if not cases:
        parser.error(f"--only: expected a part of one of {[case.name for case in CASES]}, found {arguments.only!r}")
    head = f"{'failure':42}{'runs':>5}{'wrong':>6}  {'outcomes':34}{'to the outcome, ms':>20}{'to the end, ms':>18}"
    print("Times are medians, and the longest in brackets.", head, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wrong = sum(_ran(case, arguments, Path(folder)) for case in cases)
    print(f"{wrong} of {len(cases) * arguments.runs} runs were wrong", flush=True)
    return int(wrong > 0)


def _ran(case: Case, arguments: argparse.Namespace, folder: Path) -> int:
    """Runs a case many times, and prints its row; returns the number of wrong runs."""
    results = []
    place = CASES.index(case)
    for number in range(arguments.runs):
        if sys.stderr.isatty():
            text = f"{place + 1} of {len(CASES)}: {case.name}: {number} of {arguments.runs}"
            print(f"\r{text:78}", end="", file=sys.stderr, flush=True)
        results.append(run(case, arguments.seed * 1_000_000 + place * 1000 + number, folder))
    if sys.stderr.isatty():
        print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)
    problems = [result.problem for result in results if result.problem]
    print(_row(case, results, len(problems)), *(f"  {problem}" for problem in problems), sep="\n", flush=True)
    return len(problems)


def _row(case: Case, results: list[Result], wrong: int) -> str:
    counts: dict[str, int] = {}
    for result in results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
    outcomes = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    secs = [result.secs for result in results if result.secs is not None]
    ends = [result.end_secs for result in results]
    return f"{case.name:42}{len(results):5}{wrong:6}  {outcomes:34}{_times(secs):>20}{_times(ends):>18}"


def _times(secs: list[float]) -> str:
    return f"{1e3 * statistics.median(secs):.1f} ({1e3 * max(secs):.0f})" if secs else "-"


if __name__ == "__main__":
    sys.exit(main())
