"""`printable`: text of foreign bytes, safe for a terminal and a log.

The same rule in C++ is base/printable.h; base/testdata/printable.json tests both. This module
imports nothing of the package: the doctor uses it.
"""

import re

# Control characters, line and paragraph separators, marks that change the direction of text, and surrogates, to which
# Python decodes bytes that are no UTF-8.
_CONTROL = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_ALL = re.compile(f"[{_CONTROL}]")
_ALL_BUT_LINES = re.compile(rf"(?![\n\t])[{_CONTROL}]")


def printable(text: str | bytes) -> str:
    r"""Returns text with \\xNN for each byte of a character that would control a terminal, or that is no UTF-8.

    A str may have surrogates, such as a file's name.

    >>> printable("\x1b[31mred, \u202e"), printable(b"caf\xc3\xa9 \xff")
    ('\\x1b[31mred, \\xe2\\x80\\xae', 'café \\xff')
    """
    return _ALL.sub(_spelled, _decoded(text))


def printable_lines(text: str | bytes) -> str:
    """Does the same for text of several lines: line feeds and tabs stay."""
    return _ALL_BUT_LINES.sub(_spelled, _decoded(text))


def _decoded(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")


def _spelled(found: re.Match[str]) -> str:
    character = found[0]
    is_byte = "\udc80" <= character <= "\udcff"
    spelled = character.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in spelled)
