"""The arrays of a space."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from tandem.serving.arrays import info_columns, is_rows, tree
from tandem.spaces.fields import layout


def _tree(space: spaces.Space[Any]) -> tuple[Any, dict[tuple[str, str], Any]]:
    fields = {("obs", leaf.path): np.zeros((4, *leaf.shape), leaf.dtype) for leaf in layout(space).leaves}
    return tree(space, "obs", fields, 4), fields


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Box(-1, 1, (3,)), True),
        (spaces.Box(-1, 1, (3,), np.float64), False),
        (spaces.Box(-1, 1, (3, 1)), False),
        (spaces.Box(-1, 1, ()), False),
        (spaces.Discrete(2), False),
        (spaces.Dict(a=spaces.Box(-1, 1, (3,))), False),
    ],
)
def test_only_a_vector_of_float32_is_rows(space: spaces.Space[Any], expected: bool) -> None:
    """Every other space has fields."""
    assert is_rows(space) == expected


def test_a_dict_and_a_tuple_are_trees_of_their_fields() -> None:
    """Keys may have the characters that a path escapes."""
    space = spaces.Dict({"a/b~": spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(2)]), "c": spaces.Box(0, 1, ())})
    value, fields = _tree(space)
    assert value["a/b~"][0] is fields["obs", "/a~1b~0/0"]
    assert value["a/b~"][1] is fields["obs", "/a~1b~0/1"]
    assert value["c"] is fields["obs", "/c"]


def test_a_one_of_has_its_index_first() -> None:
    """The alternatives follow."""
    value, fields = _tree(spaces.OneOf([spaces.Discrete(3), spaces.Text(5)]))
    assert [id(each) for each in value] == [id(fields["obs", path]) for path in ("/index", "/0", "/1")]
    assert value[2].shape == (4, 6)


def test_a_box_without_elements_has_no_field() -> None:
    """Its array is empty."""
    value, _ = _tree(spaces.Tuple([spaces.Box(0, 1, (0, 3)), spaces.Discrete(2)]))
    assert value[0].shape == (4, 0, 3)


def test_infos_are_columns_in_order() -> None:
    """A number has one column, an array its size."""
    row = np.arange(8.0).reshape(2, 4)
    columns = info_columns({"x": None, "forces": 2, "y": None}, row)
    assert {name: column.tolist() for name, column in columns.items()} == {
        "x": [0, 4],
        "forces": [[1, 2], [5, 6]],
        "y": [3, 7],
    }
