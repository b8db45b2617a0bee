"""Gymnasium spaces of all kinds, and the comparison of their values."""

from collections import OrderedDict
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tandem.spaces.batch_parts import Objects
from tandem.spaces.fields import FIELD_DTYPES, layout


class Mission(spaces.Space[str]):
    """A space that is not Gymnasium's, like MiniGrid's MissionSpace."""

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Returns a text of any length."""
        return "go to the red door" * int(self.np_random.integers(1, 9))

    def contains(self, x: Any) -> bool:
        """Returns whether the value is a text."""
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        """Returns whether the other is such a space, too."""
        return isinstance(other, Mission)


def _box(dtype: str) -> spaces.Box:
    return spaces.Box(0, 1 if dtype == "bool" else 100, (2, 3), np.dtype(dtype).type)


def _arm() -> spaces.Tuple[Any]:
    return spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float64)))


# Every value is an array, a number or a text of bounded length.
FIXED: dict[str, spaces.Space[Any]] = {
    **{f"Box of {dtype}": _box(dtype) for dtype in FIELD_DTYPES},
    "Box of longlong": spaces.Box(-5, 5, (3,), np.longlong),
    "Box without dimensions": spaces.Box(-1, 1, (), np.float32),
    "Box of 8 dimensions": spaces.Box(-1, 1, (1, 2, 1, 2, 1, 2, 1, 2)),
    "Box without elements": spaces.Box(-1, 1, (2, 0)),
    "Box without bounds": spaces.Box(-np.inf, np.inf, (3,)),
    "Box with some bounds": spaces.Box(
        np.array([-np.inf, 0, -1, 0]), np.array([np.inf, np.inf, 1, 0]), (4,), np.float64
    ),
    "Box of integers without bounds": spaces.Box(-np.inf, np.inf, (3,), np.int32),
    "Discrete": spaces.Discrete(5),
    "Discrete from -3": spaces.Discrete(5, start=-3),
    "Discrete of uint8": spaces.Discrete(200, start=50, dtype=np.uint8),
    "MultiDiscrete": spaces.MultiDiscrete([3, 2, 9]),
    "MultiDiscrete of int16": spaces.MultiDiscrete(
        np.array([[3, 2], [4, 4]]), np.int16, start=np.array([[-3, 2], [0, 0]])
    ),
    "MultiBinary": spaces.MultiBinary(4),
    "MultiBinary of a shape": spaces.MultiBinary((2, 3)),
    "MultiBinary of a shape of one dimension": spaces.MultiBinary([4]),
    "Text": spaces.Text(7),
    "Text of any characters": spaces.Text(5, min_length=0, charset="aé€😀\0\U0010ffff"),
    "Text without characters": spaces.Text(0, min_length=0),
    "Dict": spaces.Dict(image=_box("uint8"), arm=_arm(), mission=spaces.Text(4)),
    "Dict of odd keys": spaces.Dict(
        {key: spaces.Discrete(9) for key in ("a/b", "~", "", "~1", "0", "größe", "😀", "index")}
    ),
    "Dict in another order": spaces.Dict(OrderedDict(b=spaces.Discrete(2), a=spaces.Dict(d=_box("int8"), c=_arm()))),
    "Dict with unsorted keys": spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(3)}, sort_keys=False),
    "Dict without keys": spaces.Dict({}),
    "Tuple": _arm(),
    "Tuple of Tuples": spaces.Tuple((spaces.Tuple((_arm(), spaces.Text(2))), spaces.MultiBinary(2))),
    "Tuple without items": spaces.Tuple(()),
    "OneOf": spaces.OneOf(
        (spaces.Discrete(3), spaces.Box(-1, 1, ()), spaces.Text(3), spaces.Dict(OrderedDict(z=_arm(), y=_arm())))
    ),
    "OneOf in a OneOf": spaces.Dict(one=spaces.OneOf((spaces.OneOf((spaces.Discrete(3), _arm())), spaces.Discrete(2)))),
}

_GRAPH = spaces.Graph(node_space=spaces.Box(-1, 1, (2,)), edge_space=spaces.Discrete(3))

# Some values are pickled.
PICKLED: dict[str, spaces.Space[Any]] = {
    "Graph": _GRAPH,
    "Sequence": spaces.Sequence(spaces.Discrete(3)),
    "stacked Sequence": spaces.Sequence(spaces.Box(-1, 1, (2,)), stack=True),
    "custom": Mission(),
    "Dict with a custom": spaces.Dict(mission=Mission(), image=_box("uint8")),
    "Tuple with a Sequence": spaces.Tuple((spaces.Sequence(spaces.Discrete(3)), spaces.Discrete(3), _GRAPH)),
    "OneOf with a custom": spaces.OneOf((Mission(), spaces.Discrete(3))),
}


def parts_for(
    space: spaces.Space[Any], num_envs: int
) -> tuple[spaces.Space[Any], int, dict[str, NDArray[Any]], dict[str, Objects]]:
    """Returns the arguments of `Observations` and `Actions`: the space, the number, new arrays and lists of objects."""
    leaves, pickled = layout(space)
    arrays = {leaf.path: np.full((num_envs, *leaf.shape), 1, leaf.dtype) for leaf in leaves}
    return space, num_envs, arrays, {path: [None] * num_envs for path in pickled}


def assert_same(found: Any, expected: Any) -> None:
    """Checks that two values have the same types, dtypes, shapes, digits and orders of keys."""
    assert type(found) is type(expected), (found, expected)
    if isinstance(expected, np.ndarray) and expected.dtype == object:
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert_same(tuple(found.ravel()), tuple(expected.ravel()))
    elif isinstance(expected, np.ndarray | np.generic):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert found.tobytes() == expected.tobytes(), (found, expected)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected or (found != found and expected != expected), (found, expected)
