"""Batches of observations and actions, compared with Gymnasium's functions of vector environments."""

import copy
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import ArrayLike, NDArray

import tandem
from tandem.spaces.batches import Actions, Observations
from tandem.testing.sample_spaces import FIXED, PICKLED, Mission, assert_same, parts_for

ALL = {**FIXED, **PICKLED}
NUM_ENVS = 3

_MESSAGE = "reset and step must return values of observation_space"


def _seeded(space: spaces.Space[Any], seed: int) -> spaces.Space[Any]:
    seeded = copy.deepcopy(space)
    seeded.seed(seed)
    return seeded


def _gymnasiums(space: spaces.Space[Any], values: list[Any]) -> Any:
    """Returns the batch of SyncVectorEnv."""
    out: Any = create_empty_array(space, len(values))
    return concatenate(space, values, out)


@pytest.mark.parametrize("name", ALL)
def test_batch_equals_gymnasiums(name: str) -> None:
    """The rows are random samples of ten seeds; later ones replace longer texts and other alternatives."""
    observations = Observations(*parts_for(ALL[name], NUM_ENVS))
    for seed in range(10):
        space = _seeded(ALL[name], seed)
        values = [space.sample() for _ in range(NUM_ENVS)]
        for index, value in enumerate(values):
            observations.write_row(index, value)
        expected = _gymnasiums(space, values)
        assert_same(observations.batch(), expected)
        assert_same(observations.batch(copy=False), expected)
        for index, value in enumerate(values):
            assert_same(observations.row(index), value)


@pytest.mark.parametrize("name", ALL)
def test_actions_equal_those_of_gymnasiums_iterate(name: str) -> None:
    """The batches are random samples; SyncVectorEnv passes the elements of `iterate` to the environments."""
    batched = batch_space(ALL[name], NUM_ENVS)
    actions = Actions(*parts_for(ALL[name], NUM_ENVS))
    for seed in range(10):
        batched.seed(seed)
        batch = batched.sample()
        actions.write(batch)
        # Gymnasium's iterate has an error or no element for them.
        without: Any = {"Dict without keys": [{}] * NUM_ENVS, "Tuple without items": [()] * NUM_ENVS}.get(name)
        for index, action in enumerate(without or iterate(batched, batch)):
            assert_same(actions.row(index), action)


def _leaves_of(value: Any) -> list[NDArray[Any]]:
    if isinstance(value, dict):
        return [array for each in value.values() for array in _leaves_of(each)]
    if isinstance(value, tuple):
        return [array for each in value for array in _leaves_of(each)]
    return [value] if isinstance(value, np.ndarray) else []


@pytest.mark.parametrize("name", FIXED)
def test_only_batches_without_copy_share_the_fields(name: str) -> None:
    """Rows and the default batches are the caller's to keep."""
    parts = parts_for(FIXED[name], NUM_ENVS)
    space, _, arrays, _ = parts
    observations, actions = Observations(*parts), Actions(*parts)
    for index in range(NUM_ENVS):
        observations.write_row(index, space.sample())
    for kept in (observations.batch(), observations.row(1), actions.row(1)):
        for array in _leaves_of(kept):
            assert not any(np.shares_memory(array, field) for field in arrays.values())
            assert array.flags.writeable and array.flags.c_contiguous
    if "OneOf" not in name:
        for array in _leaves_of(observations.batch(copy=False)):
            assert array.size == 0 or any(array is field for field in arrays.values())


_BOX = spaces.Box(-1, 1, (2,), np.float32)
_BYTES = spaces.Box(0, 255, (2,), np.uint8)
_INT8 = spaces.Box(-128, 127, (2,), np.int8)
_DICT = spaces.Dict(a=spaces.Discrete(5), b=_BOX)
_TUPLE = spaces.Tuple((spaces.Discrete(5), _BOX))


class _OfArray:
    """Another library's array, such as a tensor."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array([0.1, 0.2])


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(
    ("space", "value"),
    [
        (_BOX, np.array([0.1, 1e300])),
        (_BOX, [0.1, 0.2]),
        (_BOX, (1, 2)),
        (_BOX, [True, False]),
        (_BOX, np.array([0.1, 0.2], np.float16)),
        (_BOX, np.array([0.1, 0.2], ">f8")),
        (_BOX, np.arange(6.0)[::3]),
        (_BOX, np.ma.masked_array([0.1, 0.2], [True, False])),
        (_BOX, _OfArray()),
        (_INT8, np.array([300, -3])),
        (_INT8, np.array([200, 3], np.uint8)),
        (_BYTES, np.array([259, 3], np.uint16)),
        (_BYTES, np.array([True, False])),
        (spaces.Box(-1, 1, ()), 0.1),
        (spaces.Box(-1, 1, ()), np.float32(0.1)),
        (spaces.Box(-1, 1, ()), np.array(0.1)),
        (spaces.Discrete(5), 3),
        (spaces.Discrete(5), True),
        (spaces.Discrete(5), np.int8(3)),
        (spaces.Discrete(5), np.array(3)),
        (spaces.Discrete(5), 2**63 - 1),
        (spaces.Discrete(5), 2**63 + 1),
        (spaces.Discrete(5, dtype=np.uint8), np.uint16(300)),
        (spaces.MultiBinary(2), [0, 1]),
        (spaces.MultiDiscrete([3, 2]), [2, 1]),
        (_DICT, {"b": [0.1, 0.2], "a": 1, "c": "another key"}),
        (_TUPLE, [1, [0.1, 0.2]]),
        (_TUPLE, (1, [0.1, 0.2], "another item")),
        (_TUPLE, {0: 1, 1: [0.1, 0.2]}),
    ],
    ids=range(29),
)
def test_values_that_sync_vector_env_accepts_have_the_same_digits(space: spaces.Space[Any], value: Any) -> None:
    """Also numbers out of the dtype's range, which wrap or overflow as in Gymnasium."""
    observations = Observations(*parts_for(space, NUM_ENVS))
    for index in range(NUM_ENVS):
        observations.write_row(index, value)
    assert_same(observations.batch(), _gymnasiums(space, [value] * NUM_ENVS))


@pytest.mark.parametrize(
    ("space", "value", "expected"),
    [
        (_BYTES, [3, 255], [3, 255]),
        (spaces.Discrete(5, dtype=np.uint8), 3, 3),
        (spaces.Discrete(5, dtype=np.uint8), np.int64(3), 3),
        (FIXED["Box of bool"], [[1, 0, 1]] * 2, [[True, False, True]] * 2),
    ],
)
def test_exact_integers_that_sync_vector_env_refuses_are_accepted(
    space: spaces.Space[Any], value: Any, expected: ArrayLike
) -> None:
    """NumPy's rule "same_kind" excludes them; AsyncVectorEnv accepts them."""
    with pytest.raises(TypeError):
        _gymnasiums(space, [value])
    observations = Observations(*parts_for(space, 1))
    observations.write_row(0, value)
    assert_same(observations.batch(), np.array([expected], space.dtype))


_REFUSED: list[tuple[spaces.Space[Any], Any, str]] = [
    (_BOX, np.zeros(3, np.float32), "expected float32[2], found float32[3]"),
    (_BOX, np.zeros(1, np.float32), "expected float32[2], found float32[1]"),
    (_BOX, np.zeros((2, 1), np.float32), "expected float32[2], found float32[2, 1]"),
    (_BOX, 0.5, "expected float32[2], found float64[]"),
    (_BOX, None, "expected float32[2], found object[]"),
    (_BOX, np.array([1j, 0]), "expected float32[2], found complex128[2]"),
    (_BOX, ["a", "b"], "expected float32[2], found <U1[2]"),
    (_BOX, [[1], [1, 2]], "expected float32[2], found list: setting an array element with a sequence"),
    (_BYTES, [3, 256], "expected uint8[2], found int64[2] with 256"),
    (_BYTES, [-1, 3], "expected uint8[2], found int64[2] with -1"),
    (_BYTES, [1.0, 2.0], "expected uint8[2], found float64[2]"),
    (spaces.Discrete(5), 3.0, "expected int64[], found float64[]"),
    (spaces.Discrete(5), np.array([3]), "expected int64[], found int64[1]"),
    (spaces.Discrete(5), 2**64, "expected int64[], found object[]"),
    (_DICT, {"a": 1}, "expected a value with the item 'b', found the keys ['a']"),
    (_DICT, (1, [0, 0]), "expected a value with the item 'a', found a tuple of 2 items"),
    (_DICT, None, "expected a value with the item 'a', found NoneType"),
    (_DICT, np.zeros(2), "expected a value with the item 'a', found float64[2]"),
    (_DICT, {"a": 1, "b": [0, 0, 0]}, "expected float32[2] at '/b', found int64[3]"),
    (_TUPLE, (1,), "expected a value with the item 1, found a tuple of 1 items"),
    (spaces.Dict({"x/y": _TUPLE}), {"x/y": (1, 2)}, "expected float32[2] at '/x~1y/1', found int64[]"),
    (spaces.Text(3), "abcd", "expected a str of at most 3 characters, found 4 characters"),
    (spaces.Text(3), b"abc", "expected a str of at most 3 characters, found b'abc'"),
    (spaces.OneOf((_BOX, _TUPLE)), [0.5, 0.5], "expected a pair of an index in 0 .. 1 and a value, found [0.5, 0.5]"),
    (spaces.OneOf((_BOX, _TUPLE)), (2, 0), "expected a pair of an index in 0 .. 1 and a value, found (2, 0)"),
    (spaces.OneOf((_BOX, _TUPLE)), (-1, 0), "expected a pair of an index in 0 .. 1 and a value, found (-1, 0)"),
    (spaces.OneOf((_BOX, _TUPLE)), (1, (1, 2)), "expected float32[2] at '/1/1', found int64[]"),
]


@pytest.mark.parametrize(("space", "value", "text"), _REFUSED, ids=range(len(_REFUSED)))
def test_observation_of_another_shape_or_kind(space: spaces.Space[Any], value: Any, text: str) -> None:
    """The message names the environment and the part of the space."""
    observations = Observations(*parts_for(space, NUM_ENVS))
    with pytest.raises(tandem.InvalidArgument) as caught:
        observations.write_row(2, value)
    message = str(caught.value)
    assert message.startswith(f"observation of environment 2: {text}") and message.endswith(f"; {_MESSAGE}"), message


def _generator(values: Any) -> Any:
    return (value for value in values)


@pytest.mark.parametrize(
    ("space", "batch"),
    [
        (spaces.Discrete(5), [1, 2]),
        (spaces.Discrete(5), (np.int64(1), 2)),
        (spaces.Discrete(5), functools.partial(_generator, [1, 2])),
        (spaces.Discrete(5), np.array([1, 2], np.int8)),
        (spaces.Discrete(5, dtype=np.uint8), [1, 255]),
        (spaces.MultiBinary(2), [[True, False], [False, True]]),
        (_BOX, [[0.1, 0.2], (0.3, 4)]),
        (_BOX, [np.array([0.1, 0.2]), np.array([0.3, 0.4], np.float32)]),
        (_BOX, np.array([[0.1, 0.2], [np.nan, np.inf]])),
        (spaces.Box(-1, 1, ()), [0.1, 0.2]),
        (_BYTES, np.array([[1, 2], [3, 255]])),
        (_DICT, {"a": [1, 2], "b": np.zeros((2, 2)), "c": "another key"}),
        (_TUPLE, [[1, 2], [[0.1, 0.2], [0.3, 0.4]]]),
        (spaces.Text(3), ["ab", ""]),
        (spaces.Text(3), "ab"),
        (spaces.OneOf((spaces.Discrete(5), _BOX)), [(0, 3), (1, [0.1, 0.2])]),
        (spaces.Tuple((Mission(), spaces.Discrete(5))), (["a", "b"], [1, 2])),
    ],
    ids=range(17),
)
def test_other_forms_of_actions_that_iterate_accepts(space: spaces.Space[Any], batch: Any) -> None:
    """The values are those of `iterate`, in the space's dtypes."""
    actions = Actions(*parts_for(space, 2))
    given: Callable[[], Any] = batch if isinstance(batch, functools.partial) else lambda: batch
    actions.write(given())
    through_fields = Observations(*parts_for(space, 2))
    for index, action in enumerate(iterate(batch_space(space, 2), given())):
        through_fields.write_row(index, action)
        assert_same(_as_arrays(actions.row(index)), _as_arrays(through_fields.row(index)))


def _as_arrays(value: Any) -> Any:
    """Returns numbers as arrays: the actions of a Box without dimensions are numbers, its values are arrays."""
    if isinstance(value, dict):
        return {key: _as_arrays(each) for key, each in value.items()}
    return tuple(map(_as_arrays, value)) if isinstance(value, tuple) else np.asarray(value)


_REFUSED_ACTIONS: list[tuple[spaces.Space[Any], Any, str]] = [
    (_BOX, np.zeros((3, 2), np.float32), "expected float32[2, 2], found float32[3, 2]"),
    (_BOX, np.zeros(2, np.float32), "expected float32[2, 2], found float32[2]"),
    (_BOX, None, "expected float32[2, 2], found object[]"),
    (_BOX, [[1, 2], [3]], "expected float32[2, 2], found list: setting an array element with a sequence"),
    (_INT8, np.array([[1, 2], [3, 300]]), "expected int8[2, 2], found int64[2, 2] with 300"),
    (spaces.Discrete(5), [1.0, 2.0], "expected int64[2], found float64[2]"),
    (spaces.Discrete(5), [1, 2, 3], "expected int64[2], found int64[3]"),
    (spaces.Discrete(5), np.array([0, 2**63], np.uint64), f"expected int64[2], found uint64[2] with {2**63}"),
    (spaces.Discrete(5), {"a": 1}, "expected int64[2], found <U1[1]"),
    (_DICT, {"a": [1, 2]}, "expected a value with the item 'b', found the keys ['a']"),
    (_DICT, [{"a": 1, "b": [0, 0]}] * 2, "expected a value with the item 'a', found a list of 2 items"),
    (_DICT, {"a": [1], "b": np.zeros((2, 2))}, "expected int64[2] at '/a', found int64[1]"),
    (_TUPLE, [(1, [0, 0])] * 2, "expected int64[2] at '/0', found tuple: setting an array element with a sequence"),
    (spaces.Text(3), ["a"], "expected 2 values, one for each environment, found 1"),
    (spaces.Text(3), 3, "expected 2 values, found int: 'int' object is not iterable"),
    (spaces.Text(3), ["a", 3], "expected a str of at most 3 characters for environment 1, found 3"),
    (Mission(), 3, "expected 2 values, found int: "),
    (Mission(), ["a", "b", "c"], "expected 2 values, one for each environment, found 3"),
]


@pytest.mark.parametrize(("space", "batch", "text"), _REFUSED_ACTIONS, ids=range(len(_REFUSED_ACTIONS)))
def test_actions_of_another_shape_or_kind(space: spaces.Space[Any], batch: Any, text: str) -> None:
    """The message says that nothing was sent."""
    with pytest.raises(tandem.InvalidAction) as caught:
        Actions(*parts_for(space, 2)).write(batch)
    message = str(caught.value)
    assert message.startswith(f"actions: {text}"), message
    assert message.endswith("; nothing was sent; action_space.sample() shows what fits"), message


@pytest.mark.parametrize(
    ("space", "path", "row", "text"),
    [
        (spaces.Text(3), "", [4, 97, 97, 97], "expected a length of at most 3 for environment 1, found 4"),
        (
            spaces.Text(3),
            "",
            [2**32 - 1, 97, 97, 97],
            "expected a length of at most 3 for environment 1, found 4294967295",
        ),
        (spaces.Text(3), "", [1, 0x110000, 0, 0], "expected Unicode code points for environment 1, found"),
        (spaces.OneOf((_BOX, _BOX)), "/index", 2, "expected an index in 0 .. 1 for environment 1, found 2"),
        (spaces.OneOf((_BOX, _BOX)), "/index", -1, "expected an index in 0 .. 1 for environment 1, found -1"),
    ],
)
@pytest.mark.parametrize("kind", [Observations, Actions])
def test_invalid_bytes_of_a_region(
    kind: type[Observations] | type[Actions], space: spaces.Space[Any], path: str, row: Any, text: str
) -> None:
    """The other side may write anything."""
    parts = parts_for(spaces.Dict({"x": space}), 2)
    parts[2][f"/x{path}"][1] = row
    values = kind(*parts)
    with pytest.raises(tandem.BrokenPeer, match=f"'/x': {re.escape(text)}"):
        values.row(1)
    if isinstance(values, Observations):
        with pytest.raises(tandem.BrokenPeer):
            values.batch()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"/a": None}, "observation_space: expected fields at '/a', found none"),
        ({"/c": np.zeros(3)}, "observation_space: expected no fields at '/c', found them"),
        ({"/a": np.zeros(2, np.int64)}, r"observation_space at '/a': expected int64\[3\], found int64\[2\]"),
        ({"/a": np.zeros(3, np.int32)}, r"observation_space at '/a': expected int64\[3\], found int32\[3\]"),
        ({"/b": np.zeros((3, 2))}, r"observation_space at '/b': expected float32\[3, 2\], found float64\[3, 2\]"),
    ],
)
def test_arrays_of_another_space(change: dict[str, Any], text: str) -> None:
    """A region of another engine has other fields."""
    space, num_envs, arrays, objects = parts_for(_DICT, NUM_ENVS)
    arrays = {path: array for path, array in {**arrays, **change}.items() if array is not None}
    with pytest.raises(tandem.LayoutMismatch, match=text):
        Observations(space, num_envs, arrays, objects)


def test_pickled_values_need_objects() -> None:
    """The caller pickles them."""
    space, num_envs, arrays, _ = parts_for(spaces.Dict(x=Mission()), NUM_ENVS)
    with pytest.raises(tandem.LayoutMismatch, match="action_space: expected pickled values at '/x', found none"):
        Actions(space, num_envs, arrays)


def test_functions_registered_for_a_space_batch_its_values() -> None:
    """The user may register functions for a space, as for SyncVectorEnv."""

    class Registered(Mission):
        pass

    @concatenate.register(Registered)
    def _concatenated(space: Registered, items: Any, out: Any) -> str:
        return "+".join(items)

    observations = Observations(*parts_for(spaces.Dict(x=Registered()), 2))
    for index, value in enumerate("ab"):
        observations.write_row(index, {"x": value})
    assert observations.batch() == {"x": "a+b"}
