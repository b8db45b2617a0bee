"""The package's public names, the output of `dir` and `help`, and what an import of the package imports."""

import inspect
import pydoc
import subprocess
import sys

import pytest

import tandem
from tandem.environments import client_vector

_SCREEN = (120, 50)  # columns, lines
_ERRORS = {
    *tandem.errors.__all__,
    *(name for name in vars(client_vector) if name in ("EnvironmentClosed", "ResetNeeded")),
}
_SUBMODULES = {
    *("checkpoint", "conformance", "doctor", "examples", "fastlane", "pettingzoo", "sdk", "services", "telemetry"),
    "vector",
}


def _lines(text: str) -> int:
    columns = _SCREEN[0]
    return sum(max(1, -(-len(line) // columns)) for line in text.splitlines())


def _output_of(program: str) -> str:
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return completed.stdout.strip()


def test_the_front_has_at_most_20_names() -> None:
    """The error classes count as one; each name is an attribute, and all errors are among them."""
    names = set(tandem.__all__)
    assert len(names) == len(tandem.__all__) and len(names - _ERRORS) + 1 <= 20
    assert names | _SUBMODULES == set(dir(tandem)) and all(hasattr(tandem, name) for name in names)
    assert _ERRORS == {name for name in names if issubclass(_class_of(name), tandem.TandemError)}


def _class_of(name: str) -> type:
    value = getattr(tandem, name)
    return value if inspect.isclass(value) else object


def test_names_of_submodules_are_not_in_the_front() -> None:
    """Such a name is an AttributeError of the package."""
    for name in ("SimulationContract", "FastLaneWriter", "RestartingVectorEnv", "ClientStats", "no_such_name"):
        with pytest.raises(AttributeError, match=name):
            getattr(tandem, name)


@pytest.mark.parametrize("submodule", sorted(_SUBMODULES))
def test_a_submodule_needs_no_import_of_its_own(submodule: str) -> None:
    """In a new interpreter, `import tandem` makes the submodule usable."""
    assert _output_of(f"import tandem; print(tandem.{submodule}.__name__)") == f"tandem.{submodule}"


def test_an_import_of_the_package_imports_the_standard_library_alone() -> None:
    """Also with the doctor, which must start where the other packages are broken."""
    program = (
        "import sys, tandem.doctor; print([name for name in ('numpy', 'gymnasium', 'grpc') if name in sys.modules])"
    )
    assert _output_of(program) == "[]"


@pytest.mark.parametrize(
    "imports",
    [
        "tandem, gymnasium",
        "gymnasium, tandem",
        "tandem.environments.registration, gymnasium",
        "tandem, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium",  # is it installed?
    ],
)
def test_gymnasium_knows_the_tasks_in_either_order_of_imports(imports: str) -> None:
    """Tandem registers them when both are imported, also if a module of its own imports Gymnasium."""
    assert _output_of(f"import {imports}; print('tandem/Ant-v5' in gymnasium.registry)") == "True"


def test_a_failed_import_of_gymnasium_can_be_tried_again() -> None:
    """The tasks are registered by the one that succeeds; a Gymnasium that is not there is none."""
    program = (
        "import sys, tandem; sys.modules['numpy'] = None\n"
        "try: import gymnasium\n"
        "except ImportError: del sys.modules['numpy']\n"
        "import gymnasium; print('tandem/Ant-v5' in gymnasium.registry)"
    )
    assert _output_of(program) == "True"
    assert _output_of("import sys; sys.modules['gymnasium'] = None; import tandem; print(1)") == "1"


def test_tandem_may_be_imported_while_gymnasium_is() -> None:
    """As by a module that Gymnasium's own import finds."""
    program = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gymnasium.wrappers': import tandem\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import gymnasium; print('tandem' in sys.modules, 'tandem/Ant-v5' in gymnasium.registry)"
    )
    assert _output_of(program) == "True True"


def test_a_wrong_name_is_found_by_type_checkers_too() -> None:
    """Otherwise tools/check reports the comment as unused."""
    with pytest.raises(AttributeError, match="make_vek"):
        tandem.make_vek  # type: ignore[attr-defined]  # noqa: B018


def test_the_core_needs_no_telemetry() -> None:
    """A wheel without `tandem.telemetry` imports, and makes, publishes and serves environments."""
    program = (
        "import sys; sys.modules['tandem.telemetry'] = None\n"
        "import inspect, tandem; assert not hasattr(tandem, 'telemetry') and 'telemetry' not in dir(tandem)\n"
        "inspect.getmembers(tandem)\n"
        "import tandem, tandem.doctor.__main__, tandem.pettingzoo, tandem.vector, tandem.sdk\n"
        "envs = tandem.make_vec('Acrobot-v1', 2, num_workers=1)\n"
        "envs.reset(seed=0)\n"
        "envs.close()\n"
        "print(tandem.publish_frames.__name__, tandem.serve_program.__name__)"
    )
    assert _output_of(program) == "publish_frames serve_program"


def test_help_for_the_package_begins_with_a_guide_of_half_a_screen() -> None:
    """After it come the names of the modules."""
    guide, _, _ = pydoc.plain(pydoc.render_doc(tandem)).partition("PACKAGE CONTENTS")
    assert "make_vec  " in guide
    assert _lines(guide) <= _SCREEN[1] // 2


@pytest.mark.parametrize("function", [tandem.make_vec, tandem.launch_engine, tandem.serve])
def test_help_for_a_function_is_a_screen(function: object) -> None:
    """The signature counts as well."""
    assert _lines(pydoc.plain(pydoc.render_doc(function))) <= _SCREEN[1]


def test_make_vec_has_at_most_12_parameters() -> None:
    """A task's own options come beside them; what else there is belongs into a group."""
    kinds = [parameter.kind for parameter in inspect.signature(tandem.make_vec).parameters.values()]
    assert len(kinds) - kinds.count(inspect.Parameter.VAR_KEYWORD) <= 12
