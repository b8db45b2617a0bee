"""The command line of `python -m tandem.examples`. The programs lie beside it; in a clone, in client_py/examples."""

import argparse
import ast
import sys
from pathlib import Path

from tandem.printable import printable

_HERE = Path(__file__).parent
_FOLDERS = (_HERE, _HERE.parents[1] / "examples")


def programs() -> dict[str, Path]:
    """Returns the programs' files by their names, sorted."""
    files = [
        file
        for folder in _FOLDERS
        for file in folder.rglob("*.py")
        if not file.stem.startswith("_") and not file.stem.endswith("_test")
    ]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


def about(program: Path) -> str:
    """Returns the first line of a program's docstring."""
    return (ast.get_docstring(ast.parse(program.read_bytes())) or "").partition("\n")[0]


def copy(name: str, folder: Path) -> Path:
    """Copies a program into a folder; returns the new file.

    ValueError: No such program. OSError: No such folder, or the file exists.
    """
    found = programs()
    name = name.removesuffix(".py")
    if name not in found:
        raise ValueError(f"NAME: expected one of {', '.join(found)}; found {name!r}")
    target = folder / f"{name}.py"
    with target.open("xb") as file:
        file.write(found[name].read_bytes())
    return target


def main(words: list[str] | None = None) -> int:
    """Lists the programs, or copies one; returns the exit code: 1 if the copy cannot be written, 2 for a wrong word."""
    parser = argparse.ArgumentParser(
        prog="python -m tandem.examples",
        description="Lists programs to copy, engines and trainers, or copies one. Overwrites nothing.",
        epilog="example: python -m tandem.examples pendulum_engine",
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="of a program; without it: list all")
    parser.add_argument("folder", nargs="?", metavar="FOLDER", type=Path, default=Path(), help="default: this one")
    parsed = parser.parse_args(words)
    if parsed.name is None:
        width = max(map(len, programs()), default=0)
        for name, program in programs().items():
            print(f"{name:<{width}}  {about(program)}")
        return 0
    try:
        print(copy(parsed.name, parsed.folder))
    except ValueError as error:
        parser.error(printable(str(error)))
    except FileExistsError as error:
        found = printable(str(error.filename))
        print(f"tandem: expected no file {found}, found one; move it, or name another FOLDER", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"tandem: expected a FOLDER to write to, found: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
