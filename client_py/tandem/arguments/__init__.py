"""Checks of arguments. Each raises InvalidArgument, whose message begins with the argument's name.

`name` is the argument's name, and `after` the end of the message. Checks of arrays are in `arguments.arrays`, which
imports NumPy.
"""

import contextlib
import enum
import math
import operator
import os
import reprlib
import sys
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

from tandem.errors import InvalidArgument

_Member = TypeVar("_Member", bound=enum.IntEnum)

NOT_SENT = "; nothing was sent"

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = 80
_SHORT.maxother = 200


def shown(value: object) -> str:
    """Returns the repr of what a message calls found, shortened.

    >>> shown("knee"), len(shown("knee" * 10**6)) < 100
    ("'knee'", True)
    """
    try:
        return _SHORT.repr(value)
    except Exception:  # an exception of any type's __repr__, or an integer of too many digits
        return f"one of type {type(value).__name__}"


def or_zero(name: str, value: SupportsIndex | None) -> int:
    """Returns an integer from 1, or 0 for None: so the schema writes that the engine chooses."""
    return 0 if value is None else integer(name, value, 1, 2**32 - 1, NOT_SENT)


def integer(
    name: str, value: SupportsIndex, least: int, last: int = 2**31 - 1, after: str = "", *, bools: bool = True
) -> int:
    """Returns an integer in `least` .. `last` as int; without `bools`, True is not 1."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= last or (isinstance(value, bool) and not bools):
        raise InvalidArgument(f"{name}: expected an integer in {least} .. {last}, found {shown(value)}{after}")
    return number


def text(name: str, value: object, after: str = "") -> str:
    """Returns a str that UTF-8 and a C string can hold: without lone surrogates and NULs."""
    if isinstance(value, str) and "\0" not in value:
        with contextlib.suppress(UnicodeEncodeError):
            value.encode()
            return value
    raise InvalidArgument.of(name, f"expected a str without NULs and lone surrogates, found {shown(value)}{after}")


def flag(name: str, value: object, after: str = NOT_SENT) -> bool:
    """Returns a bool or numpy.bool_ as bool."""
    numpy = sys.modules.get("numpy")  # a program with a numpy.bool_ has imported it
    if not isinstance(value, bool) and not (numpy and isinstance(value, numpy.bool_)):
        raise InvalidArgument(f"{name}: expected a bool, found {shown(value)}{after}")
    return bool(value)


def member(name: str, value: object, kind: type[_Member]) -> _Member:
    """Returns the member of an enumeration of tandem.services that the value is, or whose number it is."""
    try:
        return kind(operator.index(value))  # type: ignore[arg-type]  # another type is a TypeError
    except (TypeError, ValueError):
        one = f"tandem.services.{kind.__name__}"
        names = ", ".join(f"{one}.{each.name}" for each in kind)
        raise InvalidArgument(f"{name}: expected a {one} ({names}), found {shown(value)}{NOT_SENT}") from None


def one_of(name: str, value: object, values: tuple[str, ...]) -> None:
    """Checks that a value is one of some texts."""
    if not isinstance(value, str) or value not in values:
        raise InvalidArgument(f"{name}: expected one of {', '.join(map(repr, values))}, found {shown(value)}")


def path(name: str, value: object) -> None:
    """Checks that a value is the path of a file, or None."""
    if not isinstance(value, str | os.PathLike | None):
        raise InvalidArgument(f"{name}: expected a path, found {shown(value)}")


def file_path(name: str, value: object) -> str:
    """Returns the path of a file as str."""
    if not isinstance(value, str | os.PathLike) or "\0" in (found := os.fsdecode(value)):
        raise InvalidArgument(f"{name}: expected a path, found {shown(value)}")
    return found


def rate(name: str, value: SupportsFloat, most: float = math.inf) -> float:
    """Returns a finite rate in Hz, 0 to `most`, as float."""
    number = _float_or_negative(value)
    if not 0 <= number <= most or number == math.inf:
        expected = "a finite rate in Hz, 0 or more" if most == math.inf else f"a rate of 0 to {most:g} Hz"
        raise InvalidArgument(f"{name}: expected {expected}, found {shown(value)}")
    return number


def seconds(name: str, value: SupportsFloat) -> float:
    """Returns a time in seconds, 0 to infinity, as float."""
    number = _float_or_negative(value)
    if not number >= 0:
        raise InvalidArgument(f"{name}: expected seconds, 0 or more, found {shown(value)}")
    return number


def _float_or_negative(value: SupportsFloat) -> float:
    try:
        return float(value) if isinstance(value, SupportsFloat) else -1.0
    except (TypeError, ValueError, OverflowError):  # of an array; of an integer that is too large
        return -1.0


def id_or_name(name: str, which: int | str, listed_by: str) -> dict[str, Any]:
    """Returns the field of a request that names a thing: {"id": int from 1} or {"name": str}.

    `listed_by` is the call that lists ids and names, for the message.
    """
    after = f"; {listed_by} lists them{NOT_SENT}"
    if isinstance(which, str) and which:
        return {"name": text(name, which, after)}
    if isinstance(which, str):
        raise InvalidArgument(f"{name}: expected a name or an id, found {shown(which)}{after}")
    return {"id": integer(name, which, 1, 2**64 - 1, after)}
