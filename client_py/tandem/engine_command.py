"""The command `tandem-engine`: an engine by hand, for a client in another program."""

import os
import sys
from typing import NoReturn

from tandem import engine_program
from tandem.errors import EngineStartFailed


def main() -> NoReturn:
    """Becomes the program that `launch_engine` starts, with the command line's arguments as they are.

    Raises:
      SystemExit: There is no such program, or it cannot be run.
    """
    try:
        server = engine_program.find()
        os.execve(server, [str(server), *sys.argv[1:]], engine_program.variables())
    except (EngineStartFailed, OSError) as error:
        raise SystemExit(f"tandem-engine: {error}") from error


if __name__ == "__main__":
    main()
