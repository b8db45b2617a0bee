"""Counts the test cases of Bazel test runs and the lines of tools/check.

Reads Bazel's build event files (one JSON object a line), which name the test.xml of every test that the run covered, so
that reports left by earlier runs don't count. A target that fails without a failing case (it crashed, timed out, or did
not build) counts as one failed case. Skipped cases count as neither.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree


@dataclass
class Count:
    """Cases passed, and the names of those that failed."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)


def count_report(report: Path, target: str, target_passed: bool, count: Count) -> None:
    """Adds the cases of one test.xml.

    Args:
      report: The file; it may be missing or broken.
      target: Label of the test target.
      target_passed: What Bazel says of the target as a whole.
      count: What the cases are added to.
    """
    try:
        cases = list(ElementTree.parse(report).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    failures: list[str] = []
    passed = 0
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            failures.append(f"{target} {case.get('classname', '')}.{case.get('name', '')}")
        elif case.find("skipped") is None and case.get("status") != "notrun":
            passed += 1
    if not cases and target_passed:
        passed = 1
    if not failures and not target_passed:
        failures.append(f"{target} as a whole")
    count.passed += passed
    count.failures += failures


def count_events(lines: Iterable[str], count: Count) -> None:
    """Adds the cases of one Bazel run.

    Args:
      lines: The build event file's lines.
      count: What the cases are added to.
    """
    results: dict[tuple[str, int, int], dict[str, Any]] = {}  # the last attempt of each run and shard
    unbuilt: list[str] = []
    for line in lines:
        event = json.loads(line)
        identity = event.get("id", {})
        if "testResult" in event:
            test = identity["testResult"]
            results[test["label"], test.get("run", 1), test.get("shard", 0)] = event["testResult"]
        elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
            unbuilt.append(identity["targetCompleted"]["label"])
    for (label, _, _), result in results.items():
        uris = [out["uri"] for out in result.get("testActionOutput", []) if out["name"] == "test.xml"]
        report = Path(unquote(urlparse(uris[0]).path)) if uris else Path("no-report")
        count_report(report, label, result.get("status") in ("PASSED", "FLAKY"), count)
    # A test that fails is "not completed" as well: only those without a result did not build.
    tested = {label for label, _, _ in results}
    count.failures += [f"{label} did not build" for label in sorted(set(unbuilt) - tested)]


def count_check_lines(lines: Iterable[str], count: Count) -> None:
    """Adds the output of tools/check: lines that start with `ok` or `FAILED`."""
    for line in lines:
        if line.startswith("ok "):
            count.passed += 1
        elif line.startswith("FAILED "):
            count.failures.append(line.rstrip())


def main() -> int:
    """Prints the failed cases, then `N passed, N failed`.

    Returns:
      The exit code: 0 if something ran and nothing failed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=Path, action="append", default=[], help="a build event file")
    parser.add_argument("--checks", type=Path, help="the output of tools/check")
    parser.add_argument("--failed", action="append", default=[], help="a step that failed as a whole")
    arguments = parser.parse_args()
    count = Count()
    for events in arguments.events:
        with events.open(encoding="utf-8") as lines:
            count_events(lines, count)
    if arguments.checks:
        with arguments.checks.open(encoding="utf-8") as lines:
            count_check_lines(lines, count)
    if not count.failures:  # otherwise the step's failure is counted case by case
        count.failures += arguments.failed
    for failure in count.failures:
        print(f"failed: {failure}")
    if not count.failures and not count.passed:
        print("nothing ran: no test matches the targets")
    print(f"{count.passed} passed, {len(count.failures)} failed")
    return 0 if count.passed and not count.failures else 1


if __name__ == "__main__":
    sys.exit(main())
