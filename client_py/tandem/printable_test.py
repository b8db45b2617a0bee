"""The Python and the C++ function escape foreign bytes in the same way."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandem.printable import printable, printable_lines

_SAMPLES = json.loads(Path("base/testdata/printable.json").read_text("utf-8"))


@pytest.mark.parametrize("sample", _SAMPLES, ids=lambda sample: sample["name"])
def test_every_sample_is_escaped_as_in_the_table(sample: dict[str, Any]) -> None:
    """The samples are those of printable_test.cc."""
    text = bytes.fromhex(sample["bytes"])
    assert printable(text) == sample["printable"]
    assert printable(text.decode("utf-8", "surrogateescape")) == sample["printable"]
    assert printable(sample["printable"]) == sample["printable"]


def test_lines_stay_in_texts_of_lines() -> None:
    """Newlines and tabs stay; every other control character is escaped."""
    assert printable_lines("a\n\tb\r\x1b\u2028") == "a\n\tb\\x0d\\x1b\\xe2\\x80\\xa8"


def test_surrogates_that_are_no_bytes_are_spelled() -> None:
    """A surrogate that stands for no byte, such as one from JSON, is escaped as UTF-8."""
    assert printable("\ud83d!") == "\\xed\\xa0\\xbd!"
