"""`Observations` and `Actions`: values of a Gymnasium space, in one array for each field.

    # Views of a region, or new arrays:
    arrays = {leaf.path: np.zeros((num_envs, *leaf.shape), leaf.dtype) for leaf in layout(space).leaves}
    observations = Observations(space, num_envs, arrays)
    observations.write_row(0, env.step(action)[0])
    batch = observations.batch()  # as gymnasium.vector.SyncVectorEnv returns it

The constructors read the space once and make a tree of parts (batch_parts.py). Later calls only use the tree.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from tandem.arguments.arrays import described
from tandem.errors import InvalidAction
from tandem.spaces.batch_parts import Objects, Site, part_of


class _Values:
    """The values of a space in all environments, in the arrays of its fields."""

    _is_action: ClassVar[bool]

    def __init__(
        self,
        space: spaces.Space[Any],
        num_envs: int,
        arrays: Mapping[str, NDArray[Any]],
        objects: Mapping[str, Objects] | None = None,
        *,
        first_env: int = 0,
        name_of: Callable[[int], str] = "environment {}".format,
    ) -> None:
        """Takes the arrays of a space's fields; arguments and errors are those of `Site` and `part_of`.

        `space` is of one environment. `arrays` may be views of a region. `objects` of a path that `layout(space)` calls
        pickled are the values of the environments, such as a list, or an object that pickles in `__setitem__` and
        unpickles in `__getitem__`.
        """
        self._space = space
        self._root = part_of(space, Site(self._is_action, num_envs, arrays, objects or {}, first_env, name_of))

    @property
    def array(self) -> NDArray[Any] | None:
        """The one field, dtype[num_envs, *shape], if each value is an array or number; else None."""
        return self._root.array


class Observations(_Values):
    """Observations of all environments.

    A worker process writes rows; the trainer process reads the batch. Neither locks: the caller orders the two.

    >>> import numpy as np
    >>> from gymnasium import spaces
    >>> space = spaces.Dict(mode=spaces.Discrete(3), speed=spaces.Box(-1, 1, (2,)))
    >>> arrays = {"/speed": np.zeros((2, 2), np.float32), "/mode": np.zeros(2, np.int64)}
    >>> observations = Observations(space, 2, arrays)
    >>> observations.write_row(1, {"speed": [0.5, 1], "mode": 2})
    >>> observations.batch()
    {'mode': array([0, 2]), 'speed': array([[0. , 0. ],
           [0.5, 1. ]], dtype=float32)}
    """

    _is_action = False

    def batch(self, *, copy: bool = True) -> Any:
        """Returns the observations of all environments; BrokenPeer if a text or an index is invalid.

        Their structure and dtypes are those of `gymnasium.vector.utils.concatenate`, and so of `SyncVectorEnv`. With
        copy=False arrays are the fields' own, valid until the next step; texts, values of a OneOf and values that are
        pickled are new objects in each case.
        """
        return self._root.batch(copy)

    def row(self, index: int) -> Any:
        """Returns the observation of one environment as its own object, as `env.step` returns it; errors as `batch`."""
        return self._root.row(index)

    def rows(self, indices: Sequence[int]) -> Any:
        """Returns the observations of some environments, in this order, as `batch` returns those of all."""
        if self.array is not None:
            return self.array[np.asarray(indices)]
        values = [self.row(index) for index in indices]
        out: Any = create_empty_array(self._space, len(values))
        return concatenate(self._space, values, out)

    def write_row(self, index: int, value: Any) -> None:
        """Writes the observation that an environment's `reset` or `step` returned.

        Values that `SyncVectorEnv` accepts have the same digits here: lists, numbers, and arrays whose dtype NumPy
        casts by its rule "same_kind". Integers of another kind are accepted if the field's dtype represents them.
        InvalidArgument: The value is not one of the space's shape, structure or kind. Parts of it may be written.
        """
        self._root.write_row(index, value)


class Actions(_Values):
    """Actions for all environments.

    The trainer process writes the batch; a worker process reads rows. Neither locks: the caller orders the two.

    >>> import numpy as np
    >>> from gymnasium import spaces
    >>> actions = Actions(spaces.Discrete(3), 2, {"": np.zeros(2, np.int64)})
    >>> actions.write([0, 2])
    >>> actions.row(1)
    np.int64(2)
    """

    _is_action = True

    def write(self, actions: Any) -> None:
        """Writes the actions that the caller of `VectorEnv.step` passes.

        They are an element of the batched action space, or what `gymnasium.vector.utils.iterate` accepts instead:
        lists, tuples, other iterables. Floats are rounded to the field's dtype. Integers must be in its range.

        InvalidAction: Not of the space's structure, shape or kind. Parts of them may be written.
        """
        self._root.write(actions)

    def write_rows(self, indices: Sequence[int], actions: Any) -> None:
        """Writes the actions of some environments, one for each of `indices`, as `write`."""
        array = self.array
        if array is not None and isinstance(actions, np.ndarray) and actions.dtype == array.dtype:
            if actions.shape == (len(indices), *array.shape[1:]):
                array[np.asarray(indices)] = actions
                return
        try:
            values = list(iterate(batch_space(self._space, len(indices)), actions))
        except Exception as error:  # of any iterable
            raise InvalidAction(
                f"actions: expected {len(indices)} actions, found {described(actions)}: {error}"
            ) from error
        if len(values) != len(indices):
            raise InvalidAction(f"actions: expected {len(indices)}, one for each environment, found {len(values)}")
        for index, value in zip(indices, values, strict=True):
            self._root.write_row(index, value)

    def row(self, index: int) -> Any:
        """Returns the action of one environment, of the types that `SyncVectorEnv` passes to `env.step`.

        The arrays are copies: an environment may keep or change its action. BrokenPeer: A text or an index is invalid.
        """
        return self._root.row(index)
