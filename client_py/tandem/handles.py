"""What objects share that own something outside of Python: a `with` block closes them, and pickle refuses them."""

from typing import ClassVar, NoReturn, Self


class ClosesOnExit:
    """A context manager: the end of a `with` block calls `close`."""

    def close(self) -> None:
        """Releases what the object owns."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Returns the object itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Calls `close`."""
        self.close()


class NotPicklable:
    """Refuses to be pickled or copied: a copy would not own what the object owns."""

    _instead: ClassVar[str]  # the reason and the next action; `{self}` stands for the object

    def __reduce__(self) -> NoReturn:
        """Raises TypeError."""
        instead = self._instead.format(self=self)
        raise TypeError(f"a {type(self).__name__} can be neither pickled nor copied: {instead}")
