"""The command line of `python -m tandem.doctor`."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator

from tandem.doctor import installation
from tandem.doctor.finding import Finding, Findings, Level, fail
from tandem.printable import printable_lines

_CHECKS: tuple[Callable[[], Findings], ...] = (installation.check_system, installation.check_versions)
if sys.platform != "win32":
    from tandem.doctor import gpu, machine, shared_memory

    _CHECKS += (
        shared_memory.check_mount,
        shared_memory.check_files,
        shared_memory.check_regions,
        machine.check_limits,
        machine.check_memory,
        machine.check_cores,
        machine.check_huge_pages,
        gpu.check_gpu,
    )
_CHECKS += (installation.check_engine,)


def _findings() -> Iterator[Finding]:
    for check in _CHECKS:
        try:
            yield from check()
        except Exception as error:  # a failed check is a finding, too; the others follow
            question = (check.__doc__ or "").strip()
            yield fail(question, f"check failed: {type(error).__name__}: {error}", "fix that, and run this again")


def _print(finding: Finding) -> None:
    found = printable_lines(finding.found).replace("\n", "\n      ")
    print(f"{finding.level.value:<5} {finding.about}: {found}")
    if finding.next_step:
        print(f"      Next: {printable_lines(finding.next_step)}")
    sys.stdout.flush()


def main() -> int:
    """Makes all checks, prints the findings and returns the exit code: 0 if nothing failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tandem.doctor",
        description="Checks whether Tandem can run here and prints what to do if not: /dev/shm, limits, memory, cores, "
        "versions, and a real engine, started, stepped and stopped. Takes seconds, and changes nothing.",
        epilog="Exit code 0: nothing failed; warnings are no failures. 1: something failed.",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array of findings instead of lines")
    arguments = parser.parse_args()
    findings = []
    for finding in _findings():
        findings.append(finding)
        if not arguments.json:
            _print(finding)
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    if arguments.json:
        print(json.dumps([{**vars(finding), "level": finding.level.value} for finding in findings], indent=2))
    else:
        print(f"{counts[Level.OK]} OK, {counts[Level.WARN]} WARN, {counts[Level.FAIL]} FAIL")
    return 1 if counts[Level.FAIL] else 0


if __name__ == "__main__":
    sys.exit(main())
