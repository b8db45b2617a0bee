"""`python -m tandem.scene`: a running engine's 3D scene in a file, a page that opens from disk or an animated GLB."""

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from tandem.engine.program import VIEW_VARIABLE, view


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tandem.scene",
        description="Records an engine's 3D scene into a file, until the time is over, the engine ends, or Ctrl-C.",
        epilog="example: python -m tandem.scene demo --save demo.html --seconds 10; then open demo.html in a browser",
        allow_abbrev=False,
    )
    parser.add_argument("name", help="name of an engine")
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        required=True,
        help="*.html: a page with everything in it; *.glb: glTF with an animation of environment 0, for other programs",
    )
    parser.add_argument("--seconds", type=float, default=10, help="how long; at most 600; default: %(default)s")
    parser.add_argument("--envs", type=int, default=16, help="number of environments in the page; default: %(default)s")
    parsed = parser.parse_args(words)
    if parsed.save.suffix not in (".html", ".glb"):
        parser.error(f"--save: expected a file *.html or *.glb, found {parsed.save}")
    if not 0 < parsed.seconds <= 600:
        parser.error(f"--seconds: expected more than 0 and at most 600, found {parsed.seconds:g}")
    if parsed.envs < 1:
        parser.error(f"--envs: expected at least 1, found {parsed.envs}")
    return parsed


def main(words: list[str] | None = None) -> NoReturn:
    """Becomes `tandem-view`, which records. Exit codes: 0, also after Ctrl-C; 1 without a scene or the file; 2."""
    arguments = _arguments(words)
    program = view()
    if program is None:
        sys.exit(f"tandem: expected the program tandem-view, found none; install the wheel, or set {VIEW_VARIABLE}")
    flags = [f"--run={arguments.name}", f"--save={arguments.save}", f"--seconds={arguments.seconds}"]
    os.execv(program, [str(program), *flags, f"--envs={arguments.envs}"])


if __name__ == "__main__":
    main()
