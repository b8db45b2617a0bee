"""Tests of the module count_results."""

import json
from pathlib import Path

from tools.testing.count_results import Count, count_check_lines, count_events


def _count(tmp_path: Path, status: str, report: str | None) -> Count:
    """Counts a run of one target with the given test.xml."""
    outputs = []
    if report is not None:
        (tmp_path / "test.xml").write_text(report)
        outputs.append({"name": "test.xml", "uri": (tmp_path / "test.xml").as_uri()})
    events = [
        {"id": {"targetCompleted": {"label": "//a:b"}}, "completed": {"success": True}},
        {"id": {"testResult": {"label": "//a:b"}}, "testResult": {"status": status, "testActionOutput": outputs}},
    ]
    count = Count()
    count_events([json.dumps(event) for event in events], count)
    return count


def test_counts_cases_and_leaves_out_skipped_ones(tmp_path: Path) -> None:
    """GoogleTest and pytest report skipped cases in different ways."""
    report = """<testsuites><testsuite>
      <testcase name="a"/><testcase name="b"/><testcase name="c"><skipped/></testcase>
      <testcase name="d" status="notrun"/></testsuite></testsuites>"""
    count = _count(tmp_path, "PASSED", report)
    assert (count.passed, count.failures) == (2, [])


def test_names_failed_cases(tmp_path: Path) -> None:
    """Both failures and errors count."""
    report = """<testsuite><testcase name="a"/><testcase classname="C" name="b"><failure/></testcase>
      <testcase classname="C" name="c"><error/></testcase></testsuite>"""
    count = _count(tmp_path, "FAILED", report)
    assert (count.passed, count.failures) == (1, ["//a:b C.b", "//a:b C.c"])


def test_a_target_that_failed_without_a_failed_case_is_one_failure(tmp_path: Path) -> None:
    """Examples are a crash, a time-out, and a sanitizer's finding at exit."""
    for report in (None, "", "<testsuite><testcase name='a'/></testsuite>"):
        assert len(_count(tmp_path, "TIMEOUT", report).failures) == 1


def test_a_target_that_does_not_build_is_one_failure() -> None:
    """Bazel reports no test result for it."""
    count = Count()
    count_events(['{"id": {"targetCompleted": {"label": "//a:b"}}, "completed": {}}'], count)
    assert len(count.failures) == 1


def test_counts_the_lines_of_checks() -> None:
    """Other lines of a check's output are not counted."""
    count = Count()
    count_check_lines(["ok formatting\n", "  detail\n", "FAILED lint. Next: fix it\n"], count)
    assert (count.passed, count.failures) == (1, ["FAILED lint. Next: fix it"])
