"""Arrays in dictionaries and tuples, as observations and actions of Gymnasium's spaces have them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tree = Any  # an array, or dicts and tuples of trees


def mapped(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """Returns the same dictionaries and tuples with `function` of each array.

    >>> mapped(len, {"image": [1, 2], "pair": ([3], [])})
    {'image': 2, 'pair': (1, 0)}
    """
    if isinstance(tree, dict):
        return {key: mapped(function, value) for key, value in tree.items()}
    return tuple(mapped(function, value) for value in tree) if isinstance(tree, tuple) else function(tree)


def leaves(tree: Tree) -> Iterator[NDArray[Any]]:
    """Yields the arrays."""
    if isinstance(tree, dict | tuple):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(value)
    else:
        yield tree


def assign(tree: Tree, rows: Any, values: Tree) -> None:
    """Sets rows of the arrays to those of `values`, a tree of the same structure, or to a number."""
    # Called in each step: `isinstance(tree, dict | tuple)` takes as long as the assignment.
    if isinstance(tree, np.ndarray) or not isinstance(tree, dict | tuple):
        tree[rows] = values
        return
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        assign(tree[key], rows, values[key] if isinstance(values, dict | tuple) else values)
