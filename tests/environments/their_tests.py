"""`TheirTests`: a plugin of pytest that runs another package's tests with Tandem's classes in place of its own.

pytest.main([folder], plugins=[TheirTests(folder, replace, fails={"test_x": "why"}, other_texts={"test_y": "why"})])
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class TheirTests:
    """Replaces classes while the package's tests are imported and run, and knows which tests must fail."""

    def __init__(
        self,
        folder: Path,
        replace: Callable[[pytest.MonkeyPatch, Path], None],
        *,
        fails: Mapping[str, str],
        other_texts: Mapping[str, str],
    ) -> None:
        """Takes what is known of the tests.

        Args:
          folder: Where the tests are; other tests run unchanged.
          replace: Replaces classes for a module of tests, by a MonkeyPatch; gets the module's path.
          fails: Test functions, or single cases such as "test_x[1]", that must fail, with the reason.
          other_texts: Test functions or single cases that run without comparing texts of errors and warnings, with the
            reason. One whose texts are all equal fails.
        """
        self._folder, self._replace = folder, replace
        self._fails, self._other_texts = fails, other_texts

    def _is_theirs(self, path: Path) -> bool:
        return path.is_relative_to(self._folder)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Imports a module.

        Args:
          collector: Of the module.
        """
        with pytest.MonkeyPatch.context() as patch:
            if isinstance(collector, pytest.Module) and self._is_theirs(collector.path):
                self._replace(patch, collector.path)
            return (yield)

    @pytest.hookimpl(tryfirst=True)  # before -k removes tests
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Marks the tests that must fail.

        Args:
          items: The tests.
        """
        theirs = [item for item in items if self._is_theirs(item.path)]
        unknown = {*self._fails, *self._other_texts}
        for item in theirs:
            names = _names(item)
            unknown -= names
            for name in names & {*self._fails}:
                item.add_marker(pytest.mark.xfail(strict=True, reason=self._fails[name]))
        if theirs and unknown:
            raise pytest.UsageError(f"expected tests of these names, found none: {sorted(unknown)}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Runs a test with its fixtures.

        Args:
          item: The test.
        """
        with pytest.MonkeyPatch.context() as patch:
            if self._is_theirs(item.path):
                self._replace(patch, item.path)
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Calls a test's function.

        Args:
          item: The test.
        """
        if not _names(item) & {*self._other_texts} or not self._is_theirs(item.path):
            return (yield)
        texts = _Texts()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pytest, "raises", texts.not_compared(pytest.raises))
            patch.setattr(pytest, "warns", texts.not_compared(pytest.warns))
            result = yield
        assert texts.differ, f"all texts are equal: remove {item.name} from the exceptions"
        return result


def _names(item: pytest.Item) -> set[str]:
    """Returns the names of a test's case and of its function."""
    return {item.name, item.name.partition("[")[0]}


class _Texts:
    """`pytest.raises` and `pytest.warns` that do not compare texts.

    Attributes:
      differ: Whether a text differed.
    """

    def __init__(self) -> None:
        self.differ = False

    def not_compared(self, original: Any) -> Any:
        """Returns one of these functions in place of the original."""

        @contextmanager
        def other(*args: Any, match: str = "", **kwargs: Any) -> Iterator[Any]:
            with original(*args, **kwargs) as caught:
                yield caught
            warned = isinstance(caught, pytest.WarningsRecorder)
            found = [str(each.message) for each in caught] if warned else [str(caught.value)]
            self.differ |= not any(re.search(match, text) for text in found)

        return other
