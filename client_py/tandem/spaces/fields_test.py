"""Fields of Gymnasium's spaces: paths, dtypes, shapes, limits."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import tandem
from tandem._native import MAX_FIELD_PATH_BYTES
from tandem.spaces.fields import Leaf, layout
from tandem.testing.sample_spaces import FIXED, PICKLED, Mission


def _leaf(path: str, dtype: str, *shape: int) -> Leaf:
    return Leaf(path, np.dtype(dtype), shape)


@pytest.mark.parametrize(
    ("name", "leaves"),
    [
        *((f"Box of {dtype}", [_leaf("", dtype, 2, 3)]) for dtype in ("bool", "uint64", "float16")),
        ("Box of longlong", [_leaf("", "int64", 3)]),
        ("Box without dimensions", [_leaf("", "float32")]),
        ("Box without elements", []),
        ("Discrete", [_leaf("", "int64")]),
        ("Discrete of uint8", [_leaf("", "uint8")]),
        ("MultiDiscrete of int16", [_leaf("", "int16", 2, 2)]),
        ("MultiBinary of a shape", [_leaf("", "int8", 2, 3)]),
        ("Text", [_leaf("", "uint32", 8)]),
        ("Text without characters", [_leaf("", "uint32", 1)]),
        (
            "Dict",
            [
                _leaf("/image", "uint8", 2, 3),
                _leaf("/arm/0", "int64"),
                _leaf("/arm/1", "float64", 2),
                _leaf("/mission", "uint32", 5),
            ],
        ),
        ("Dict without keys", []),
        (
            "Dict in another order",
            [
                _leaf("/b", "int64"),
                _leaf("/a/d", "int8", 2, 3),
                _leaf("/a/c/0", "int64"),
                _leaf("/a/c/1", "float64", 2),
            ],
        ),
        (
            "OneOf in a OneOf",
            [
                _leaf("/one/index", "int64"),
                _leaf("/one/0/index", "int64"),
                _leaf("/one/0/0", "int64"),
                _leaf("/one/0/1/0", "int64"),
                _leaf("/one/0/1/1", "float64", 2),
                _leaf("/one/1", "int64"),
            ],
        ),
    ],
)
def test_leaves(name: str, leaves: list[Leaf]) -> None:
    """The leaves have the order of the space, and the dtypes are the ones of FIELD_DTYPES."""
    found = layout(FIXED[name])
    assert found.leaves == tuple(leaves) and found.pickled == ()


def test_paths_of_odd_keys() -> None:
    """A path is a JSON pointer: "~" is "~0", "/" is "~1"."""
    keys = [leaf.path for leaf in layout(FIXED["Dict of odd keys"]).leaves]
    assert sorted(keys) == sorted(["/a~1b", "/~0", "/", "/~01", "/0", "/größe", "/😀", "/index"])


@pytest.mark.parametrize(
    ("name", "pickled", "leaves"),
    [
        ("Graph", [""], 0),
        ("Sequence", [""], 0),
        ("custom", [""], 0),
        ("Dict with a custom", ["/mission"], 1),
        ("Tuple with a Sequence", ["/0", "/2"], 1),
        ("OneOf with a custom", ["/0"], 2),
    ],
)
def test_pickled_parts(name: str, pickled: list[str], leaves: int) -> None:
    """Parts without a fixed size have no leaf."""
    found = layout(PICKLED[name])
    assert found.pickled == tuple(pickled) and len(found.leaves) == leaves


def test_a_subclass_is_treated_as_gymnasiums_space() -> None:
    """Gymnasium's functions of vector environments do so too."""

    class MyBox(spaces.Box):
        pass

    class MyDict(spaces.Dict):
        pass

    found = layout(MyDict({"x": MyBox(-1, 1, (2,)), "mission": Mission()}))
    assert found == ((_leaf("/x", "float32", 2),), ("/mission",))


def _nested(depth: int) -> spaces.Space[Any]:
    space: spaces.Space[Any] = spaces.Discrete(2)
    for _ in range(depth):
        space = spaces.Tuple([space])
    return space


def _dict_of(*keys: Any) -> spaces.Dict:
    return spaces.Dict({key: spaces.Discrete(2) for key in keys})


_MANY = [str(number) for number in range(4097)]


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Box(-1, 1, (2,), np.longdouble), "expected one of the dtypes bool, uint8, .*, found float128; "),
        (spaces.Dict(a=spaces.Box(-1, 1, (2,), np.dtype(">f4"))), "'/a': expected one of the dtypes .*, found >f4; "),
        (spaces.Box(-1, 1, (1,) * 9), "expected at most 8 dimensions, found "),
        (spaces.Box(0, 1, (4096, 4097), np.uint8), r"expected at most 16777216 values, found \(4096, 4097\); "),
        (spaces.Text(2**24), "expected at most 16777216 values, found "),
        (_dict_of(*_MANY), "expected at most 4096 fields, found 4097; "),
        (spaces.Dict({"a": _dict_of(3)}), "'/a': expected keys of type str .*, found 3; "),
        (_dict_of((1, 2)), r"expected keys of type str .*, found \(1, 2\); "),
        (_dict_of("a\0"), r"expected keys .*, found 'a\\x00'; "),
        (_dict_of("\ud800"), "expected keys .*, found "),
        (_dict_of("é" * 96), "expected paths of at most 191 bytes, found 193; "),
        (spaces.Dict({"a" * 185: FIXED["OneOf"]}), "expected paths of at most 191 bytes, found 192; "),
        (_nested(10_000), "expected paths of at most 191 bytes, found 192; "),
    ],
    ids=range(13),
)
def test_a_space_that_no_region_holds_is_unsupported(space: spaces.Space[Any], text: str) -> None:
    """The message says what was expected, what was found, and where."""
    with pytest.raises(tandem.Unsupported, match=f"^action_space.*{text}"):
        layout(space, "action_space")


def test_spaces_at_the_limits_are_supported() -> None:
    """4096 fields; a path of 191 bytes; 2^24 values."""
    assert len(layout(_dict_of(*_MANY[:4096])).leaves) == 4096
    assert len(layout(_dict_of("a" * (MAX_FIELD_PATH_BYTES - 1))).leaves[0].path) == MAX_FIELD_PATH_BYTES
    assert layout(spaces.Text(2**24 - 1)).leaves[0].shape == (2**24,)


@pytest.mark.parametrize("space", [None, 3, {"a": spaces.Discrete(2)}, spaces.Box])
def test_another_object_is_no_space(space: Any) -> None:
    """Also a dict of spaces, and a space's class."""
    with pytest.raises(tandem.InvalidArgument, match=r"^observation_space: expected a gymnasium.Space, found "):
        layout(space)
