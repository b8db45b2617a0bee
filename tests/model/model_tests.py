"""The two tests of a model: the protocol holds, and each of its rules is necessary."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.model.explorer import Result


def model_tests(
    run: Callable[[str], Result[Any]], mutations: Iterable[str]
) -> tuple[Callable[[], None], Callable[[str], None]]:
    """Returns the two tests, which a model's module keeps under the names that pytest collects.

    Args:
      run: Explores the model with one of `mutations`; with "", the protocol.
      mutations: The names of the mutations.

    Returns:
      `test_the_protocol_holds` and `test_each_mutation_breaks_the_protocol`.
    """

    def test_the_protocol_holds() -> None:
        """No reachable state has a problem."""
        result = run("")
        print(result)
        assert not result.problem, str(result)

    @pytest.mark.parametrize("mutation", mutations)
    def test_each_mutation_breaks_the_protocol(mutation: str) -> None:
        """Each mutation has a counterexample."""
        result = run(mutation)
        print(f"{mutation}: {result}")
        assert result.problem, f"nothing is wrong if the {mutation}"

    return test_the_protocol_holds, test_each_mutation_breaks_the_protocol
