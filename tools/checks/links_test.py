"""Tests of the module links."""

from pathlib import Path

import pytest

from tools.checks.links import anchors, link_problems


def test_anchors_are_githubs() -> None:
    """Punctuation and the target of a link go; an equal heading gets a number; a comment in a fence is no heading."""
    text = "# Two words\n## `make_vec`, [a link](x.md)\n## Two words\n```bash\n# a comment\n```\n"
    assert anchors(text) == {"two-words", "make_vec-a-link", "two-words-1"}


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("b.md", ""),
        ("b.md#a-heading", ""),
        ("#here", ""),
        (".", ""),
        ('<b.md> "A title"', ""),
        ('none.md "A title"', "found 'none.md'"),
        ("https://example.com/none.md#none", ""),
        ("c.md", "expected a link to a file, found 'c.md'"),
        ("b.md#none", "b.md, found 'none'"),
        ("#none", "a.md, found 'none'"),
    ],
)
def test_a_link_names_a_file_and_a_heading(link: str, problem: str, tmp_path: Path) -> None:
    """A link to nothing is a problem, unless it is code."""
    (tmp_path / "b.md").write_text("## A heading\n")
    page = tmp_path / "a.md"
    page.write_text(f"# Here\nsee [the\npage]({link}); `[code](none.md)`\n```\n[code](none.md)\n```\n")
    found = [*link_problems(page)]
    assert len(found) == bool(problem)
    assert not found or found[0].endswith(problem)
