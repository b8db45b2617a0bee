"""`part_of`: the tree of a space's parts, of which `Observations` and `Actions` (batches.py) are made.

A part reads and writes its values of all environments (`batch`, `write`) and of one (`row`, `write_row`). Parts of a
Dict, Tuple or OneOf call the parts of their items.
"""

import abc
import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from tandem.arguments import shown
from tandem.arguments.arrays import described
from tandem.errors import BrokenPeer, InvalidAction, InvalidArgument, LayoutMismatch
from tandem.spaces.fields import NUMERIC, field_dtype, key_path, layout, place

# What `value[key]` raises if a value has no such item, or no items at all.
_NO_ITEM = (LookupError, TypeError, ValueError, AttributeError)

# Of the code points in a field of a Text; a str of Python may have lone surrogates.
_CODEC = "utf-32-le", "surrogatepass"


class Objects(Protocol):
    """The values of one part in all environments, if they are pickled; a list is one."""

    def __getitem__(self, index: int, /) -> Any:
        """Returns an environment's value."""

    def __setitem__(self, index: int, value: Any, /) -> None:
        """Replaces an environment's value."""


class Site(NamedTuple):
    """What the parts of one tree share."""

    is_action: bool  # whether the values are actions; else they are observations
    num_envs: int
    arrays: Mapping[str, NDArray[Any]]  # by the path of each leaf: dtype[num_envs, *shape]
    objects: Mapping[str, Objects]  # by the path of each part that is pickled: num_envs objects
    first_env: int = 0  # of row 0
    name_of: Callable[[int], str] = "environment {}".format  # what error messages call it

    @property
    def name(self) -> str:
        """What an error message calls the space."""
        return "action_space" if self.is_action else "observation_space"


def part_of(space: spaces.Space[Any], site: Site) -> "Part":
    """Returns the tree of a space. LayoutMismatch: the arrays or objects are not its own. Unsupported: As `layout`."""
    leaves, pickled = layout(space, site.name)
    for kind, expected, found in (
        ("fields", {leaf.path for leaf in leaves}, set(site.arrays)),
        ("pickled values", set(pickled), set(site.objects)),
    ):
        if missing := expected - found:
            raise LayoutMismatch(f"{site.name}: expected {kind} at {shown(min(missing))}, found none")
        if more := found - expected:
            raise LayoutMismatch(f"{site.name}: expected no {kind} at {shown(min(more))}, found them")
    for leaf in leaves:
        array, shape = site.arrays[leaf.path], (site.num_envs, *leaf.shape)
        if array.shape != shape or array.dtype != leaf.dtype:
            raise LayoutMismatch(
                f"{site.name}{place(leaf.path)}: expected {leaf.dtype}{list(shape)}, found {described(array)}"
            )
    return _part(space, "", site, in_one_of=False)


class Part(abc.ABC):
    """A part of a space and its arrays; `array` is the part's field, if each value is an array or number."""

    array: NDArray[Any] | None = None

    def __init__(self, path: str, site: Site) -> None:
        """Takes the part's path and what all parts share."""
        self._path = path
        self._site = site

    def batch(self, copy: bool) -> Any:
        """Returns the values of all environments; arrays are copies, or the fields' own."""
        return tuple(map(self.row, range(self._site.num_envs)))

    @abc.abstractmethod
    def row(self, index: int) -> Any:
        """Returns the value of one environment; arrays are copies."""

    @abc.abstractmethod
    def write_row(self, index: int, value: Any) -> None:
        """Writes the value of one environment."""

    def write(self, values: Any) -> None:
        """Writes the values of all environments."""
        try:
            items = tuple(self._each(values))
        except Exception as error:  # of any iterable
            self._refuse(f"{self._site.num_envs} values", f"{described(values)}: {error}", None, error)
        if len(items) != self._site.num_envs:
            self._refuse(f"{self._site.num_envs} values, one for each environment", str(len(items)), None)
        for index, item in enumerate(items):
            self.write_row(index, item)

    def _each(self, values: Iterable[Any]) -> Iterable[Any]:
        """Returns the value of each environment, of the values of all."""
        return values

    def _refuse(self, expected: str, found: str, index: int | None, cause: Exception | None = None) -> NoReturn:
        """Raises the error for a value; `index` is its environment's, None for all."""
        if not self._site.is_action:
            raise InvalidArgument(
                f"observation of {self._name_of(index)}: expected {expected}{place(self._path)}, found "
                f"{found}; reset and step must return values of observation_space"
            ) from cause
        of_env = "" if index is None else f" for {self._name_of(index)}"
        raise InvalidAction(
            f"actions: expected {expected}{place(self._path)}{of_env}, found {found}; nothing was sent; "
            "action_space.sample() shows what fits"
        ) from cause

    def _name_of(self, index: int | None) -> str:
        return "all" if index is None else self._site.name_of(self._site.first_env + index)

    def _broken(self, expected: str, found: str, index: int) -> BrokenPeer:
        return BrokenPeer(
            f"{self._site.name}{place(self._path)}: expected {expected} for {self._name_of(index)}, "
            f"found {found}; another program may write to the region"
        )


def _part(space: spaces.Space[Any], path: str, site: Site, *, in_one_of: bool) -> Part:
    """Returns the tree of a space at a path; `in_one_of`: below a OneOf, whose values Gymnasium does not batch."""
    if isinstance(space, spaces.Dict):
        # SyncVectorEnv passes actions whose keys have the order of the batched space.
        ordered = batch_space(space, 1) if site.is_action and not in_one_of else space
        keys = ordered.spaces if isinstance(ordered, spaces.Dict) else space.spaces
        items = [
            (key, _part(space.spaces[key], key_path(path, key, site.name), site, in_one_of=in_one_of)) for key in keys
        ]
        return _DictPart(path, site, items)
    if isinstance(space, spaces.Tuple):
        parts = [_part(item, f"{path}/{at}", site, in_one_of=in_one_of) for at, item in enumerate(space.spaces)]
        return _TuplePart(path, site, list(enumerate(parts)))
    if isinstance(space, spaces.OneOf):
        parts = [_part(item, f"{path}/{at}", site, in_one_of=True) for at, item in enumerate(space.spaces)]
        return _OneOfPart(path, site, parts)
    if isinstance(space, spaces.Text):
        return _TextPart(path, site)
    if isinstance(space, NUMERIC):
        array = site.arrays.get(path)
        if array is None:  # no field, since it has no elements
            array = np.zeros((site.num_envs, *(space.shape or ())), field_dtype(space.dtype, path, site.name))
        # An environment's row of a batch of numbers is a number, but a value of a Box without dimensions is an array.
        row_is_number = array.ndim == 1 and site.is_action and not in_one_of
        part = _NumberPart if row_is_number or isinstance(space, spaces.Discrete) else _ArrayPart
        return part(path, site, array)
    return _PickledPart(path, site, space)


def _fits(given: NDArray[Any], dtype: np.dtype[Any], is_action: bool) -> bool:
    """Returns whether a field of a dtype takes an array.

    Observations: arrays that NumPy casts by its rule "same_kind", which Gymnasium uses. Actions: numbers, if the field
    has floats. Both: integers that the dtype represents.
    """
    if np.can_cast(given.dtype, dtype, "safe" if is_action else "same_kind"):
        return True
    if given.dtype.kind not in "biuf":
        return False
    return dtype.kind == "f" or (given.dtype.kind != "f" and bool((given.astype(dtype) == given).all()))


class _ArrayPart(Part):
    """A Box, MultiDiscrete or MultiBinary: dtype[num_envs, *shape]."""

    def __init__(self, path: str, site: Site, array: NDArray[Any]) -> None:
        super().__init__(path, site)
        self.array = self._array = array
        self._dtype = array.dtype
        self._shape = array.shape[1:]

    def batch(self, copy: bool) -> NDArray[Any]:
        return self._array.copy() if copy else self._array

    def row(self, index: int) -> Any:
        return self._array[index, ...].copy()

    def write_row(self, index: int, value: Any) -> None:
        if type(value) is np.ndarray and value.dtype is self._dtype and value.shape == self._shape:
            self._array[index] = value
        else:
            self._array[index] = self._converted(value, self._shape, index)

    def write(self, values: Any) -> None:
        if type(values) is np.ndarray and values.dtype is self._dtype and values.shape == self._array.shape:
            self._array[...] = values
            return
        if not hasattr(values, "__array__") and not isinstance(values, Sequence) and isinstance(values, Iterable):
            values = list(values)
        self._array[...] = self._converted(values, self._array.shape, None)

    def _converted(self, value: Any, shape: tuple[int, ...], index: int | None) -> NDArray[Any]:
        """Returns a value of one or of all environments as an array that the field takes."""
        try:
            given = np.asarray(value)
        except Exception as error:  # of a ragged list, or of any type's __array__
            self._refuse(f"{self._dtype}{list(shape)}", f"{type(value).__name__}: {error}", index, error)
        if given.shape == shape and _fits(given, self._dtype, self._site.is_action):
            return given
        found = described(given)
        if given.shape == shape and given.dtype.kind in "biu" and self._dtype.kind in "biu":
            found += f" with {given[given.astype(self._dtype) != given].flat[0]}"
        self._refuse(f"{self._dtype}{list(shape)}", found, index)


class _NumberPart(_ArrayPart):
    """A part whose value in one environment is a number of NumPy: dtype[num_envs]."""

    def __init__(self, path: str, site: Site, array: NDArray[Any]) -> None:
        super().__init__(path, site, array)
        self._type = array.dtype.type
        limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        self._integers = range(limits.min, limits.max + 1) if limits else range(0)

    def row(self, index: int) -> Any:
        return self._array[index]

    def write_row(self, index: int, value: Any) -> None:
        if type(value) is self._type or (type(value) is int and value in self._integers):
            self._array[index] = value
        else:
            super().write_row(index, value)


class _TextPart(Part):
    """A Text: uint32[num_envs, 1 + max_length], in each row the number of characters and their code points."""

    def __init__(self, path: str, site: Site) -> None:
        super().__init__(path, site)
        self._array = site.arrays[path]
        self._most = self._array.shape[1] - 1

    def row(self, index: int) -> str:
        row = self._array[index]
        length = int(row[0])
        if length > self._most:
            raise self._broken(f"a length of at most {self._most}", str(length), index)
        try:
            return str(row[1 : 1 + length].tobytes(), *_CODEC)
        except UnicodeDecodeError as error:
            raise self._broken("Unicode code points", str(error), index) from error

    def write_row(self, index: int, value: Any) -> None:
        if not isinstance(value, str) or len(value) > self._most:
            found = f"{len(value)} characters" if isinstance(value, str) else shown(value)
            self._refuse(f"a str of at most {self._most} characters", found, index)
        row = self._array[index]
        row[1 : 1 + len(value)] = np.frombuffer(value.encode(*_CODEC), np.uint32)
        row[0] = len(value)


class _OneOfPart(Part):
    """A OneOf: int64[num_envs], the index of the alternative, and the alternatives."""

    def __init__(self, path: str, site: Site, alternatives: list[Part]) -> None:
        super().__init__(path, site)
        self._array = site.arrays[f"{path}/index"]
        self._alternatives = alternatives

    def row(self, index: int) -> tuple[np.int64, Any]:
        which = self._array[index]
        if not 0 <= which < len(self._alternatives):
            raise self._broken(f"an index in 0 .. {len(self._alternatives) - 1}", str(which), index)
        return which, self._alternatives[which].row(index)

    def write_row(self, index: int, value: Any) -> None:
        try:
            which, chosen = operator.index(value[0]), value[1]
            alternative = self._alternatives[which] if which >= 0 else None
        except _NO_ITEM:
            alternative = None
        if alternative is None:
            expected = f"a pair of an index in 0 .. {len(self._alternatives) - 1} and a value"
            self._refuse(expected, shown(value), index)
        alternative.write_row(index, chosen)
        self._array[index] = which


class _PickledPart(Part):
    """A Graph, Sequence or unknown space: an object for each environment."""

    def __init__(self, path: str, site: Site, space: spaces.Space[Any]) -> None:
        super().__init__(path, site)
        self._objects = site.objects[path]
        self._space = space

    @functools.cached_property
    def _batched(self) -> spaces.Space[Any]:
        return batch_space(self._space, self._site.num_envs)

    def batch(self, copy: bool) -> Any:
        # Gymnasium makes a tuple of the objects, unless the user registered other functions for the space.
        out: Any = create_empty_array(self._space, self._site.num_envs)
        return concatenate(self._space, [self.row(index) for index in range(self._site.num_envs)], out)

    def row(self, index: int) -> Any:
        return self._objects[index]

    def write_row(self, index: int, value: Any) -> None:
        self._objects[index] = value

    def _each(self, values: Iterable[Any]) -> Iterable[Any]:
        each: Iterable[Any] = iterate(self._batched, values)
        return each


class _ItemsPart(Part):
    """A Dict or Tuple: the parts of its items, by key or index."""

    def __init__(self, path: str, site: Site, items: "Sequence[tuple[Any, Part]]") -> None:
        super().__init__(path, site)
        self._items = tuple(items)

    def write_row(self, index: int, value: Any) -> None:
        for key, part in self._items:
            part.write_row(index, self._item(key, value, index))

    def write(self, values: Any) -> None:
        for key, part in self._items:
            part.write(self._item(key, values, None))

    def _item(self, key: Any, value: Any, index: int | None) -> Any:
        try:
            return value[key]
        except _NO_ITEM as error:
            cause = error
        if isinstance(value, Mapping):
            found = f"the keys {shown(list(value))}"
        elif isinstance(value, tuple | list):
            found = f"a {type(value).__name__} of {len(value)} items"
        else:
            found = described(value)
        self._refuse(f"a value with the item {shown(key)}", found, index, cause)


class _DictPart(_ItemsPart):
    def batch(self, copy: bool) -> dict[str, Any]:
        return {key: part.batch(copy) for key, part in self._items}

    def row(self, index: int) -> dict[str, Any]:
        return {key: part.row(index) for key, part in self._items}


class _TuplePart(_ItemsPart):
    def batch(self, copy: bool) -> tuple[Any, ...]:
        return tuple([part.batch(copy) for _, part in self._items])

    def row(self, index: int) -> tuple[Any, ...]:
        return tuple([part.row(index) for _, part in self._items])
