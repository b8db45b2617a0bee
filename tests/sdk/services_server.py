"""`services_server`: the engine of sdk/csharp/testing/ServicesServer.cs as a program, for tests of other folders."""

from pathlib import Path


def services_server(folder: Path) -> Path:
    """Writes the program into a folder, and returns it."""
    program = folder / "server"
    library, checks = Path("sdk/libtandem.so.1").absolute().parent, Path("sdk/csharp/Checks.exe").absolute()
    program.write_text(
        f"#!/bin/sh\nexport LD_LIBRARY_PATH='{library}' MONO_DISABLE_SHARED_AREA=1\n"
        f"exec mono '{checks}' Server \"$@\"\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program
