"""The package's public names, and the output of `dir` and `help`."""

import inspect
import pydoc
import subprocess
import sys

import pytest

import tandem
from tandem import errors
from tandem.engine import refusals
from tandem.environments import client_vector
from tools.testing import pytest_main

_SCREEN = (120, 50)  # columns, lines
_ERRORS = {
    name
    for module in (errors, client_vector)
    for name, value in vars(module).items()
    if inspect.isclass(value) and issubclass(value, errors.TandemError)
}
_SUBMODULES = {"doctor", "pettingzoo", "sdk", "services", "telemetry", "vector"}


def _lines(text: str) -> int:
    columns = _SCREEN[0]
    return sum(max(1, -(-len(line) // columns)) for line in text.splitlines())


def test_dir_lists_only_the_front() -> None:
    """Has fewer than 20 names, with the error classes and submodules counted as one; each is an attribute."""
    names = set(dir(tandem))
    assert _ERRORS | _SUBMODULES <= names
    assert len(names - _ERRORS - _SUBMODULES) + 1 < 20
    assert all(hasattr(tandem, name) for name in names)
    assert _lines(str(dir(tandem))) <= _SCREEN[1]


def test_names_of_submodules_are_not_in_the_front() -> None:
    """Such a name is an AttributeError of the package."""
    for name in ("SimulationContract", "Stream", "RestartingVectorEnv", "ClientStats", "no_such_name"):
        with pytest.raises(AttributeError, match=name):
            getattr(tandem, name)


@pytest.mark.parametrize("submodule", sorted(_SUBMODULES))
def test_a_submodule_needs_no_import_of_its_own(submodule: str) -> None:
    """In a new interpreter, `import tandem` makes the submodule usable."""
    program = f"import tandem; print(tandem.{submodule}.__name__)"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert completed.stdout == f"tandem.{submodule}\n"


def test_help_for_the_package_is_a_guide_of_half_a_screen() -> None:
    """After it come the names of the modules, and no class."""
    text = pydoc.plain(pydoc.render_doc(tandem))
    guide, _, _ = text.partition("PACKAGE CONTENTS")
    assert "make_vec  " in guide and "class " not in text
    assert _lines(guide) <= _SCREEN[1] // 2


@pytest.mark.parametrize("function", [tandem.make_vec, tandem.launch_engine, tandem.serve])
def test_help_for_a_function_is_a_screen(function: object) -> None:
    """The signature counts as well."""
    assert _lines(pydoc.plain(pydoc.render_doc(function))) <= _SCREEN[1]


def test_misspelled_keywords_are_compared_with_all_of_make_vec() -> None:
    """The known keywords are those of `make_vec`, plus `width` and `height`, which are among its options."""
    keywords = {name for name in inspect.signature(tandem.make_vec).parameters if name != "task_options"}
    assert set(refusals.KEYWORDS) == keywords | {"width", "height"}


if __name__ == "__main__":
    pytest_main.run(__file__)
