"""The stubs of the native modules declare exactly the modules' names."""

import ast
import inspect
import types
from pathlib import Path

import pytest

from tandem import _engine, _native

_STUBS = {
    module: ast.parse(Path(__file__).with_name(f"{module.__name__.rpartition('.')[2]}.pyi").read_text("utf-8"))
    for module in (_engine, _native)
}
_STUB = _STUBS[_native]


def _declared(body: list[ast.stmt]) -> set[str]:
    names = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    assigned = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    annotated = [node.target for node in body if isinstance(node, ast.AnnAssign)]
    names |= {target.id for target in (*assigned, *annotated) if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_") or name.startswith("__")}


def _present(owner: types.ModuleType | type) -> set[str]:
    return {name for name in vars(owner) if not name.startswith("_")}


@pytest.mark.parametrize("module", _STUBS, ids=lambda module: module.__name__)
def test_module_is_as_declared(module: types.ModuleType) -> None:
    """The declared functions, classes and constants are the module's."""
    assert _declared(_STUBS[module].body) == _present(module)


@pytest.mark.parametrize(
    "node",
    # MethodId's members are the schema's.
    [node for node in _STUB.body if isinstance(node, ast.ClassDef) and node.name not in ("_Methods", "MethodId")],
    ids=lambda node: node.name,
)
def test_class_is_as_declared(node: ast.ClassDef) -> None:
    """The declared methods and properties are the class's, and each has the declared kind."""
    native = getattr(_native, node.name)
    assert {name for name in _declared(node.body) if not name.startswith("__")} == _present(native)
    for member in node.body:
        if isinstance(member, ast.Assign):
            continue
        if isinstance(member, ast.AnnAssign):  # a property: a name that cannot be assigned
            assert isinstance(member.target, ast.Name) and ast.unparse(member.annotation).startswith("Final[")
            name, is_property = member.target.id, True
        else:
            assert isinstance(member, ast.FunctionDef)
            name, is_property = member.name, any(ast.unparse(mark) == "property" for mark in member.decorator_list)
        assert isinstance(inspect.getattr_static(native, name), property) == is_property
