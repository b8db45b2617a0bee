"""Conversion of task options to JSON."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tandem.engine.task_options import to_json
from tandem.errors import InvalidArgument

_CYCLE: list[object] = []
_CYCLE.append(_CYCLE)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (True, True),
        (np.False_, False),
        (None, None),
        (3, 3),
        (np.int64(-7), -7),
        (0.1, 0.1),
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        ("ant.xml", "ant.xml"),
        ("größe", "größe"),
        (Path("models") / "ant.xml", "models/ant.xml"),
        (math.inf, "inf"),
        (-np.float32(math.inf), "-inf"),
        ((0.2, math.inf), [0.2, "inf"]),
        ([(1, -math.inf), {"deep": (np.inf,)}], [[1, "-inf"], {"deep": ["inf"]}]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([0.5, np.inf], dtype=np.float32), [0.5, "inf"]),
        (np.array(2.5), 2.5),
        (np.array([Path("a"), None], dtype=object), ["a", None]),
    ],
)
def test_values_become_json_types(given: object, written: object) -> None:
    """The value read back is equal, and of the type that JSON has for it."""
    (read,) = json.loads(to_json({"option": given})).values()
    assert read == written and type(read) is type(written)


def test_options_keep_their_names_and_order() -> None:
    """An engine's error names the first unknown option."""
    assert to_json({"b": 1, "a": 2}) == '{"b": 1, "a": 2}'


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"weight": math.nan}, ("weight:", "nan")),
        ({"weight": np.float32("nan")}, ("weight:", "nan")),
        ({"z_range": (0, math.nan)}, ("z_range", "[1]", "nan")),
        ({"z_range": np.array([math.nan])}, ("z_range", "[0]", "nan")),
        ({"weight": 1j}, ("weight:", "complex")),
        ({"ends": {1, 2}}, ("ends:", "set")),
        ({"file": b"ant.xml"}, ("file:", "bytes")),
        ({"file": "\udc80"}, ("file:", "UTF-8", "udc80")),
        ({"when": np.datetime64("2020-01-01")}, ("when:", "datetime64")),
        ({"deep": {"call": print}}, ("deep", "'call'", "builtin")),
        ({"deep": {1: 2}}, ("deep", "texts", "1 (int)")),
        ({"weight": 10**400}, ("weight:", "float64")),
        ({"weight": [10**5000]}, ("weight[0]:", "float64", "of type int")),
        ({"weight": _CYCLE}, ("weight", "itself")),
        ({"a weight": math.nan}, ("task_options['a weight']:", "nan")),
        ({3: 4}, ("task_options", "texts", "3 (int)")),
        ([("a", 1)], ("task_options", "mapping", "list")),
    ],
)
def test_values_that_json_lacks_are_named(options: object, facts: tuple[str, ...]) -> None:
    """The message has the option's name, the expected value and the found value."""
    with pytest.raises(InvalidArgument, match="expected") as caught:
        to_json(options)  # type: ignore[arg-type]
    for fact in facts:
        assert fact in str(caught.value)
    assert len(str(caught.value)) < 400
