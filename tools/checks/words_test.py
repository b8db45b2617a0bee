"""Tests of the module words."""

from pathlib import PurePath

from tools.checks.words import is_searched, word_problems


def test_reports_position_word_and_replacement() -> None:
    """Each found word has one line; case does not matter."""
    problems = [*word_problems(PurePath("a.md"), "A thread waits.\nNobody starts it anew.\n")]
    assert len(problems) == 2
    assert problems[0].startswith('a.md:2: found "Nobody"; write no process')
    assert problems[1] == 'a.md:2: found "anew"; write again'


def test_accepts_longer_words() -> None:
    """Only whole words count."""
    assert not [*word_problems(PurePath("a.md"), "An amendment; a recommended value.\n")]


def test_skips_code() -> None:
    """Code is in backticks or in fences; text after a fence is searched."""
    assert not [*word_problems(PurePath("a.md"), "`mend`\n```text\nmend\n```\n")]
    assert len([*word_problems(PurePath("a.md"), "```text\nmend\n```\nmend `code` mend\n")]) == 2


def test_reads_pages_sources_and_commands() -> None:
    """Decision records and files without prose are not read."""
    assert all(is_searched(PurePath(path)) for path in ("docs/benchmarks.md", "tools/check", "viz/viewer/qml/Main.qml"))
    assert not any(is_searched(PurePath(path)) for path in ("docs/decisions/0001-a.md", "tools/BUILD.bazel", "LICENSE"))
