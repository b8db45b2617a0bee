"""The engine's program: its path, its environment variables, and the command `tandem-engine`, which runs it."""

import os
import sys
from pathlib import Path
from typing import NoReturn

from tandem.errors import EngineStartFailed
from tandem.printable import printable

VARIABLE = "TANDEM_ENGINE_SERVER"
_PACKAGE = Path(__file__).parent.parent


def find(server: str | os.PathLike[str] | None = None) -> Path:
    """Finds the program and returns its absolute path; `server` is as for `launch_engine`.

    Raises:
      EngineStartFailed: No such file; the message lists the paths.
    """
    asked = server or os.environ.get(VARIABLE)
    after = f"set {VARIABLE} to its path"
    if asked:
        candidates = [Path(asked)]
        after = "omit server" if server else f"unset {VARIABLE}"
    else:
        root = _PACKAGE.parent.parent
        built = Path("engine_adapter", "server", "server")
        candidates = [_PACKAGE / "engine_server", root / built, root / "bazel-bin" / built]
    for candidate in candidates:
        if os.path.isfile(candidate):  # False for an invalid path, where Path.is_file raises
            return candidate.absolute()
    raise EngineStartFailed(
        f"expected an engine's program, found none at {printable(', '.join(map(str, candidates)))}; build it, or "
        f"{after}"
    )


def command(server: str | os.PathLike[str] | None = None) -> list[str]:
    """Returns the words that run the program: a file *.py runs in this Python. Raises as `find`."""
    found = find(server)
    return [sys.executable, str(found)] if found.suffix == ".py" else [str(found)]


def variables() -> dict[str, str]:
    """Returns this process's variables, and RUNFILES_DIR, by which a program of a build tree finds its data."""
    runfiles = _PACKAGE.parent.parent.parent
    if runfiles.name.endswith(".runfiles"):
        return {**os.environ, "RUNFILES_DIR": str(runfiles)}
    return dict(os.environ)


def main() -> NoReturn:
    """Replaces this process by the program, with the same arguments; SystemExit if there is none, or it cannot run."""
    try:
        server = find()
        os.execve(server, [str(server), *sys.argv[1:]], variables())
    except (EngineStartFailed, OSError) as error:
        raise SystemExit(f"tandem-engine: {error}") from error


if __name__ == "__main__":
    main()
