"""Tests each row of the table of error classes."""

import ast
import inspect
import pickle
from pathlib import Path

import pytest

import tandem
from tandem import _native, errors

_ROWS = [row for row in _native.ERROR_TABLE if row[3] is not None]


def test_only_success_has_no_class() -> None:
    """Only the first row, success, has no error class."""
    assert [row[:2] for row in _native.ERROR_TABLE if row[3] is None] == [(0, "kOk")]


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[1])
def test_row_has_its_class(row: tuple[int, str, int, str, str]) -> None:
    """The row's class exists, is public, is documented, carries the number and derives from TandemError."""
    number, _, _, class_name, _ = row
    error_class = getattr(tandem, class_name)
    assert error_class.code == number
    assert issubclass(error_class, errors.TandemError)
    assert class_name in dir(tandem)
    assert inspect.getdoc(error_class)


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[1])
def test_native_error_becomes_its_class(row: tuple[int, str, int, str, str]) -> None:
    """`from_native` returns an instance of the row's class with the given text."""
    error = errors.from_native(row[3], "expected 1, found 2", "")
    assert type(error).__name__ == row[3]
    assert str(error) == "expected 1, found 2"


def test_every_class_is_a_row() -> None:
    """Each class of the module has a row, and no two rows share a number."""
    classes = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert classes == {*errors.__all__} == {"TandemError", *(row[3] for row in _ROWS)}
    assert len({row[0] for row in _ROWS}) == len(_ROWS)


@pytest.mark.parametrize(
    ("error_class", "builtin"),
    [
        (tandem.StepTimeout, TimeoutError),
        (tandem.PeerGone, ConnectionError),
        (tandem.NotReady, ConnectionError),
        (tandem.InvalidAction, ValueError),
        (tandem.InvalidArgument, ValueError),
        (tandem.AccessDenied, PermissionError),
        (tandem.OutOfSharedMemory, MemoryError),
    ],
)
def test_error_is_also_a_builtin_exception(error_class: type[tandem.TandemError], builtin: type[Exception]) -> None:
    """The class derives from the builtin, so that `except TimeoutError` and the others work."""
    with pytest.raises(builtin):
        raise error_class("expected")


def test_fields_survive_pickling() -> None:
    """An error of another process, such as a node of a Ray cluster, says the same."""
    ended, refused = errors.PeerGone("expected it alive"), errors.InvalidArgument.of("task", "expected an id")
    ended.worker, ended.env_ids = 1, (2, 3)
    assert vars(pickle.loads(pickle.dumps(ended))) == {"worker": 1, "env_ids": (2, 3)}
    assert vars(pickle.loads(pickle.dumps(refused))) == {"argument": "task", "reason": "expected an id"}
    assert str(refused) == "task: expected an id"


def _texts_that_are_read(tree: ast.AST) -> list[int]:
    """Returns the lines that search in, compare or change the text of a caught exception."""
    caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}

    def is_text(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
                return name in caught
        return False

    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                value=value, attr="startswith" | "endswith" | "replace" | "find" | "split" | "partition"
            ):
                used = [value]
            case ast.Compare(left=left, comparators=others):
                used = [left, *others]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=arguments):
                used = arguments
            case _:
                continue
        lines += [node.lineno for each in used if is_text(each)]
    return lines


def test_no_code_recognises_an_error_by_its_text() -> None:
    """Errors have fields: a text may change."""
    assert _texts_that_are_read(ast.parse("try: f()\nexcept E as e:\n  if 'x' in str(e): pass")) == [3]
    package = Path(tandem.__file__).parent
    for path in [*package.rglob("*.py"), *package.parent.glob("tandemctl/*.py")]:
        if not path.name.endswith("_test.py"):
            assert _texts_that_are_read(ast.parse(path.read_text("utf-8"))) == [], path
