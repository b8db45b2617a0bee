"""`python -m tandem.conformance ENGINE`: checks whether an engine's program keeps all rules of the protocol."""

import os
import sys
from pathlib import Path
from typing import NoReturn

_PROGRAM = Path(__file__).parent / "_programs" / "tandem-conformance"


def main() -> NoReturn:
    """Replaces this process by `tandem-conformance`, which runs an ENGINE.py by this Python; SystemExit if it cannot.

    --help describes the arguments.
    """
    words = [_PROGRAM.name, *([f"--python={sys.executable}"] if sys.executable else []), *sys.argv[1:]]
    try:
        os.execv(_PROGRAM, words)
    except OSError as error:
        raise SystemExit(
            f"{_PROGRAM.name}: {error}; install the wheel, or in a clone: "
            "tools/bazel run //engine_adapter/conformance:suite"
        ) from error


if __name__ == "__main__":
    main()
