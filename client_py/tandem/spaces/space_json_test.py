"""JSON of Gymnasium's spaces: round trips, exact bounds, invalid JSON."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

import tandem
from tandem.spaces.space_json import space_from_json, space_to_json
from tandem.testing.sample_spaces import FIXED, PICKLED, assert_same


def _through_json(space: spaces.Space[Any]) -> Any:
    return space_from_json(json.loads(json.dumps(space_to_json(space), allow_nan=False)))


@pytest.mark.parametrize("name", FIXED)
def test_round_trip(name: str) -> None:
    """The space is equal, has the same repr, and draws the same samples, also when it is batched."""
    space = copy.deepcopy(FIXED[name])
    again = _through_json(space)
    assert type(again) is type(space) and again == space and repr(again) == repr(space)
    for one, other in ((space, again), (batch_space(space, 2), batch_space(again, 2))):
        one.seed(7)
        other.seed(7)
        for _ in range(5):
            assert_same(other.sample(), one.sample())


def _corners(dtype: str) -> list[Any]:
    kind = np.dtype(dtype)
    if kind.kind != "f":
        limits = np.iinfo(kind)
        return [limits.min, limits.min + 1, limits.max - 1, limits.max]
    limits_of_floats = np.finfo(kind)
    third = kind.type(1) / kind.type(3)
    return [-np.inf, limits_of_floats.min, -third, -0.0, 0.0, limits_of_floats.smallest_subnormal, third, np.inf]


@pytest.mark.parametrize("dtype", "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64".split())
def test_bounds_keep_all_digits(dtype: str) -> None:
    """Bounds at the ends of the dtype's range, and fractions; each as the one bound and as one of many."""
    corners = np.array(_corners(dtype), dtype)
    ends = np.array([corners[0]] * corners.size), np.array([corners[-1]] * corners.size)
    boxes = [spaces.Box(corners, ends[1], corners.shape, corners.dtype.type)]
    boxes.append(spaces.Box(ends[0], corners, corners.shape, corners.dtype.type))
    boxes += [
        spaces.Box(np.full((2, 2), corner), np.full((2, 2), ends[1][0]), (2, 2), corners.dtype.type)
        for corner in corners
    ]
    for box in boxes:
        again = _through_json(box)
        for attribute in ("low", "high", "bounded_below", "bounded_above"):
            assert_same(getattr(again, attribute), getattr(box, attribute))


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (
            spaces.Box(-np.inf, np.inf, (17,), np.float64),
            {"type": "Box", "shape": [17], "low": ["-inf"], "high": ["inf"], "dtype": "float64"},
        ),
        (
            spaces.Box(np.array([0, -1]), np.array([2**63 - 1, 2**63 - 1]), (2,), np.int64),
            {"type": "Box", "shape": [2], "low": [0, -1], "high": [2**63 - 1], "dtype": "int64"},
        ),
        (
            spaces.Box(0, np.inf, (), np.int8),
            {"type": "Box", "shape": [], "low": [0], "high": ["inf"], "dtype": "int8"},
        ),
        (spaces.Discrete(2), {"type": "Discrete", "n": 2}),
        (spaces.Discrete(3, start=-1, dtype=np.int8), {"type": "Discrete", "n": 3, "start": -1, "dtype": "int8"}),
        (spaces.MultiDiscrete([3, 3]), {"type": "MultiDiscrete", "shape": [2], "nvec": [3]}),
        (
            spaces.MultiDiscrete(np.array([[3], [4]]), np.uint8, start=np.array([[0], [7]])),
            {"type": "MultiDiscrete", "shape": [2, 1], "nvec": [3, 4], "start": [0, 7], "dtype": "uint8"},
        ),
        (spaces.MultiBinary(4), {"type": "MultiBinary", "n": 4}),
        (spaces.MultiBinary([2, 3]), {"type": "MultiBinary", "n": [2, 3]}),
        (
            spaces.Text(5, min_length=0, charset="ba😀"),
            {"type": "Text", "min_length": 0, "max_length": 5, "charset": "ba😀"},
        ),
        (
            spaces.Dict([("b", spaces.Discrete(2)), ("", spaces.Tuple([spaces.Discrete(3)]))]),
            {
                "type": "Dict",
                "spaces": [
                    ["b", {"type": "Discrete", "n": 2}],
                    ["", {"type": "Tuple", "spaces": [{"type": "Discrete", "n": 3}]}],
                ],
            },
        ),
        (spaces.Dict({}, sort_keys=False), {"type": "Dict", "spaces": [], "sort_keys": False}),
        (spaces.OneOf([spaces.Discrete(2)]), {"type": "OneOf", "spaces": [{"type": "Discrete", "n": 2}]}),
        (
            PICKLED["OneOf with a custom"],
            {
                "type": "OneOf",
                "spaces": [
                    {"type": "pickled", "class": "tandem.testing.sample_spaces.Mission"},
                    {"type": "Discrete", "n": 3},
                ],
            },
        ),
        (PICKLED["Graph"], {"type": "pickled", "class": "gymnasium.spaces.graph.Graph"}),
    ],
    ids=range(15),
)
def test_json(space: spaces.Space[Any], expected: dict[str, Any]) -> None:
    """Defaults are left out."""
    assert json.dumps(space_to_json(space)) == json.dumps(expected)


def test_the_order_of_keys_is_kept() -> None:
    """A batch has this order, and flattening a space, too."""
    space = _through_json(FIXED["Dict in another order"])
    batched: Any = batch_space(space, 2)
    unsorted: Any = batch_space(_through_json(FIXED["Dict with unsorted keys"]), 2)
    assert list(space) == ["b", "a"] and list(space["a"]) == ["d", "c"]
    assert list(batched) == ["a", "b"] and list(unsorted) == ["b", "a"]


def test_an_engine_in_cpp_writes_integer_bounds_as_floats() -> None:
    """They are exact, too."""
    box = space_from_json({"type": "Box", "shape": [2], "low": [-3.0], "high": [4.0, 5.0], "dtype": "int64"})
    assert box == spaces.Box(np.array([-3, -3]), np.array([4, 5]), (2,), np.int64)


@pytest.mark.parametrize(
    ("name", "where", "which"),
    [
        ("Graph", "", "gymnasium.spaces.graph.Graph"),
        ("custom", "", "tandem.testing.sample_spaces.Mission"),
        ("Dict with a custom", " at '/mission'", "tandem.testing.sample_spaces.Mission"),
        ("Tuple with a Sequence", " at '/0'", "gymnasium.spaces.sequence.Sequence"),
    ],
)
def test_pickled_spaces_are_unsupported_by_name(name: str, where: str, which: str) -> None:
    """JSON does not describe the class."""
    with pytest.raises(tandem.Unsupported, match=f"^space{where}: expected .*, found '{which}'"):
        _through_json(PICKLED[name])


_NUMBER_AS_KEY: Any = {3: spaces.Discrete(2)}


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Box(-1, 1, (2,), np.longdouble), "expected one of the dtypes"),
        (spaces.Dict({"a": spaces.Dict(_NUMBER_AS_KEY)}), "'/a': expected keys of type str"),
        (spaces.Text(3, charset="\ud83d\ude00"), "expected a charset without lone surrogates"),
    ],
)
def test_spaces_that_json_does_not_hold(space: spaces.Space[Any], text: str) -> None:
    """A dtype without a field, a key that is a number, a charset that UTF-8 does not have."""
    with pytest.raises(tandem.Unsupported, match=text):
        space_to_json(space)


def _box(**others: Any) -> dict[str, Any]:
    return {"type": "Box", "shape": [2], "low": [0], "high": [1], "dtype": "float32", **others}


def _nested(depth: int) -> Any:
    return {"type": "Tuple", "spaces": [_nested(depth - 1)]} if depth else {"type": "Discrete", "n": 2}


def _cases(text: str, *values: Any) -> list[tuple[Any, str]]:
    return [(value, text) for value in values]


_DISCRETE = {"type": "Discrete", "n": 2}
_TEXT = {"type": "Text", "min_length": 1, "max_length": 3, "charset": "a"}
_MULTI = {"type": "MultiDiscrete", "shape": [2], "nvec": [3]}
_NOTHING: list[Any] = [None, [], {}, "?"]
_INVALID = [
    *_cases("expected a space of the type Box, ", *_NOTHING, 3, {"type": None}, {"type": "box"}),
    *_cases("expected a list as shape", *(_box(shape=shape) for shape in (None, 2, "2"))),
    *_cases(
        "expected as shape integers in 0 .. ", *(_box(shape=[size]) for size in (-1, "2", True, 1.5, 10**30, None))
    ),
    *_cases("expected at most 16777216 values", _box(shape=[2**24, 2])),
    *_cases("expected a dtype of bool, ", *(_box(dtype=dtype) for dtype in (*_NOTHING, 3, "float128", ">f4", "str"))),
    *_cases("expected as low a list of 1 number, or 2", *(_box(low=low) for low in (*_NOTHING, 0, "-inf", [0] * 3))),
    *_cases("expected as low numbers, 'inf' or '-inf'", *(_box(low=[low]) for low in (*_NOTHING, "0", "nan", True))),
    *_cases("expected as low numbers in float64's range", _box(low=[10**400])),
    *_cases("expected a valid Box", _box(low=[float("nan")]), _box(low=[2])),
    *_cases("low integers in -128 .. 127", *(_box(dtype="int8", low=[low]) for low in (-129, 0.5, "0", "inf", None))),
    *_cases("high integers in 0 .. 255", *(_box(dtype="uint8", high=[high]) for high in (256, "inf", True))),
    *_cases("expected as high integers in 0 .. 1", _box(dtype="bool", high=[2])),
    *_cases("expected as n integers in 1 .. ", *({**_DISCRETE, "n": n} for n in (*_NOTHING, 0, -1, "2", True, 2**63))),
    *_cases("expected a dtype of integers", {**_DISCRETE, "dtype": "float32"}, {**_MULTI, "dtype": "bool"}),
    *_cases("expected as start integers in -128 .. 127", {**_DISCRETE, "dtype": "int8", "start": 128}),
    *_cases("expected as nvec a list", {**_MULTI, "nvec": 3}),
    *_cases("expected a valid MultiDiscrete", {**_MULTI, "nvec": [3, 0]}),
    *_cases("expected as start a list", {**_MULTI, "start": [0] * 3}),
    *_cases("expected as n integers in 1 .. ", *({"type": "MultiBinary", "n": n} for n in (None, 0, [2, -1], "3"))),
    *_cases("expected as min_length integers in 0 .. 3", {**_TEXT, "min_length": 4}),
    *_cases("expected a str as charset", {**_TEXT, "charset": None}),
    *_cases("expected a list of spaces", *({"type": kind} for kind in ("Dict", "Tuple", "OneOf"))),
    *_cases("expected a valid OneOf", {"type": "OneOf", "spaces": []}),
    *_cases("space at '/1': expected a space of the type", {"type": "Tuple", "spaces": [_DISCRETE, 3]}),
    *_cases(
        "expected pairs of a key", *({"type": "Dict", "spaces": [pair]} for pair in (*_NOTHING, ["a"], [1, _DISCRETE]))
    ),
    *_cases("expected pairs of a key, each another one", {"type": "Dict", "spaces": [["a", _DISCRETE]] * 2}),
    *_cases("space at '/a': expected as low a list", {"type": "Dict", "spaces": [["a", _box(low=[0] * 3)]]}),
    *_cases("expected paths of at most 191 bytes, found 192", _nested(300)),
]


@pytest.mark.parametrize(("value", "text"), _INVALID, ids=range(len(_INVALID)))
def test_other_json_is_invalid(value: Any, text: str) -> None:
    """The JSON comes from the engine process; the message names the part."""
    with pytest.raises(tandem.InvalidArgument) as caught:
        space_from_json(value)
    assert text in str(caught.value)


def test_unknown_fields_are_ignored() -> None:
    """Later versions may have more."""
    assert space_from_json({**_box(), "unit": "m"}) == spaces.Box(0, 1, (2,))


def test_spaces_do_not_share_arrays() -> None:
    """Gymnasium's spaces are changed by their users."""
    box = _through_json(spaces.Box(-1, 1, (3,)))
    assert box.low.flags.writeable and box.high.flags.writeable and not np.shares_memory(box.low, box.high)
