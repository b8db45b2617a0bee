"""The engine's program: its path, its environment variables, and the command `tandem-engine`, which runs it."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from tandem.errors import EngineStartFailed
from tandem.printable import printable

if sys.platform == "win32":
    from tandem.engine import child_windows

VARIABLE = "TANDEM_ENGINE_SERVER"
GATEWAY_VARIABLE = "TANDEM_GATEWAY"
VIEW_VARIABLE = "TANDEM_VIEW"
_PACKAGE = Path(__file__).parent.parent


def find(server: str | os.PathLike[str] | None = None) -> Path:
    """Finds the program and returns its absolute path; `server` is as for `launch_engine`.

    EngineStartFailed: No such file; the message lists the paths.
    """
    asked = server or os.environ.get(VARIABLE)
    after = f"set {VARIABLE} to its path"
    if asked:
        candidates = [Path(asked)]
        after = "omit server" if server else f"unset {VARIABLE}"
    else:
        candidates = _places("engine_server", Path("engine_adapter", "server", "server"))
    for candidate in candidates:
        if os.path.isfile(candidate):  # False for an invalid path, where Path.is_file raises
            return candidate.absolute()
    raise EngineStartFailed(
        f"expected an engine's program, found none at {printable(', '.join(map(str, candidates)))}; build it, or "
        f"{after}"
    )


def _places(installed: str, built: Path) -> list[Path]:
    """Returns where a program may be: in the package, or where Bazel builds it."""
    root = _PACKAGE.parent.parent
    if sys.platform == "win32":
        return [_PACKAGE / f"{installed}.exe"]
    return [_PACKAGE / installed, root / built, root / "bazel-bin" / built]


def gateway() -> Path | None:
    """Returns the absolute path of tandem-gateway; None if there is none."""
    places = _places("_programs/tandem-gateway", Path("engine_adapter", "gateway", "tandem-gateway"))
    return _first(GATEWAY_VARIABLE, places)


def view() -> Path | None:
    """Returns the absolute path of tandem-view; None if there is none."""
    return _first(VIEW_VARIABLE, _places("_programs/tandem-view", Path("viz", "web", "tandem-view")))


def _first(variable: str, places: list[Path]) -> Path | None:
    asked = os.environ.get(variable)
    for place in [Path(asked)] if asked else places:
        if os.path.isfile(place):
            return place.absolute()
    return None


def command(server: str | os.PathLike[str] | None = None) -> list[str]:
    """Returns the words that run the program: a file *.py runs in this Python. Raises as `find`."""
    found = find(server)
    return [interpreter(), str(found)] if found.suffix == ".py" else [str(found)]


def interpreter() -> str:
    """Returns the path of this Python's program; EngineStartFailed: it is unknown."""
    if not isinstance(sys.executable, str) or not sys.executable:
        raise EngineStartFailed(f"sys.executable: expected this Python's program, found {sys.executable!r}; set it")
    return sys.executable


def inherited_variables() -> dict[str, str]:
    """Returns this process's variables without PYTHONINSPECT, which keeps a Python from ending."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONINSPECT"}


def variables() -> dict[str, str]:
    """Returns this process's variables, and those by which a program finds others.

    RUNFILES_DIR: a build tree's data. TANDEM_GATEWAY: tandem-gateway, for the flag --grpc.
    """
    all_of_them = inherited_variables()
    runfiles = _PACKAGE.parent.parent.parent
    if runfiles.name.endswith(".runfiles"):
        all_of_them["RUNFILES_DIR"] = str(runfiles)
    if (found := gateway()) is not None:
        all_of_them[GATEWAY_VARIABLE] = str(found)
    return all_of_them


def main() -> NoReturn:
    """Replaces this process by the program, with the same arguments; SystemExit if there is none, or it cannot run."""
    try:
        server = find()
        if sys.platform == "win32":  # where exec would end this process at once
            sys.exit(child_windows.run(str(server), sys.argv[1:], variables()))
        os.execve(server, [str(server), *sys.argv[1:]], variables())
    except (EngineStartFailed, OSError) as error:
        raise SystemExit(f"tandem-engine: {error}") from error


if __name__ == "__main__":
    main()
