"""docs/methods.md has the table that `python -m tandem.services` prints."""

from pathlib import Path

from tandem.services.__main__ import table


def test_the_page_has_the_methods_of_the_services() -> None:
    """Next, if it fails: put the output of `tools/python -m tandem.services` into the page."""
    assert table() in Path("docs/methods.md").read_text("utf-8")
