"""Checks of arguments; what cannot be is `InvalidArgument`, which has the argument's name."""

import operator
from typing import SupportsFloat, SupportsIndex

import numpy as np

from tandem.errors import InvalidArgument


def integer(name: str, value: SupportsIndex, least: int, last: int = 2**31 - 1, after: str = "") -> int:
    """Takes a whole number.

    Args:
      name: The argument's.
      value: What was given.
      least: The smallest number that can be.
      last: The largest.
      after: What follows in the message.

    Returns:
      It, as a Python integer.

    Raises:
      InvalidArgument: Another type, or beyond the limits.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= last:
        raise InvalidArgument(f"{name}: expected an integer in {least} .. {last}, found {value!r}{after}")
    return number


def described(value: object) -> str:
    """Says what was found where an array was expected.

    Args:
      value: It.

    Returns:
      Dtype and shape of an array, such as "int64[3, 2]"; the type's name of anything else.
    """
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__


def rate(name: str, value: SupportsFloat) -> float:
    """Takes a number of times a second.

    Args:
      name: The argument's.
      value: What was given.

    Returns:
      It, as a Python float.

    Raises:
      InvalidArgument: No number, negative, infinite or NaN.
    """
    number = float(value) if isinstance(value, SupportsFloat) else -1.0
    if not 0 <= number < np.inf:
        raise InvalidArgument(f"{name}: expected a finite rate in Hz, 0 or more, found {value!r}")
    return number


def seconds(name: str, value: SupportsFloat) -> float:
    """Takes a time to wait.

    Args:
      name: The argument's.
      value: What was given; infinity is fine.

    Returns:
      It, as a Python float.

    Raises:
      InvalidArgument: No number, negative or NaN.
    """
    number = float(value) if isinstance(value, SupportsFloat) else -1.0
    if not number >= 0:
        raise InvalidArgument(f"{name}: expected seconds, 0 or more, found {value!r}")
    return number
