"""Makes the wheel for Windows from the one for Linux: its Python sources and models, and programs built by mingw-w64.

Left out is what Windows lacks (docs/platforms.md): the daemon with tandemctl, the gateway, and views. The modules
and programs are linked statically, but for MuJoCo's DLL, which lies beside the program.

    python windows_wheel.py --out FOLDER tandem_shm-0.1.0-cp311-*-linux*.whl tandem/engine_server.exe=FILE ...
"""

import argparse
import base64
import hashlib
import re
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

TAG = "cp311-cp311-win_amd64"
_LEFT_OUT = re.compile(
    r"tandem/(_programs|_sdk/lib)/|tandem/engine_server$|tandemctl/|[^/]*\.libs/|.*\.so$|.*/RECORD$|.*/$"
)
_COMMANDS = re.compile(r"^tandem(ctl|-daemon|-gateway|-inspect|-view|-conformance) *=.*\n", re.MULTILINE)


def convert(linux: Path, folder: Path, files: dict[str, Path]) -> Path:
    """Writes the wheel with `files`, path in the wheel -> file, into a folder; returns it."""
    name = "-".join(linux.name.split("-")[:2])
    wheel = folder / f"{name}-{TAG}.whl"
    record = []
    with ZipFile(linux) as source, ZipFile(wheel, "w", ZIP_DEFLATED) as archive:

        def add(path: str, data: bytes) -> None:
            archive.writestr(ZipInfo(path), data, ZIP_DEFLATED)  # of 1980: equal files make equal wheels
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}\n")

        for path in sorted(source.namelist()):
            if _LEFT_OUT.match(path):
                continue
            data = source.read(path)
            if path.endswith(".dist-info/WHEEL"):
                data = re.sub(rb"(?m)^Tag: .*\n", b"", data).rstrip() + f"\nTag: {TAG}\n".encode()
            elif path.endswith(".dist-info/entry_points.txt"):
                data = _COMMANDS.sub("", data.decode()).encode()
            add(path, data)
        for path, file in sorted(files.items()):
            # pip puts scripts beside Python's own.
            add(f"{name}.data/{path}" if path.startswith("scripts/") else path, file.read_bytes())
        own = f"{name}.dist-info/RECORD"
        archive.writestr(ZipInfo(own), "".join([*record, f"{own},,\n"]))
    return wheel


def main() -> None:
    """Reads the command line and makes the wheel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the wheel")
    parser.add_argument("linux", type=Path, help="the wheel for Linux and Python 3.11")
    parser.add_argument("files", nargs="+", metavar="PATH=FILE", help="what the wheel has at PATH")
    arguments = parser.parse_args()
    files = {path: Path(file) for path, _, file in (pair.partition("=") for pair in arguments.files)}
    print(convert(arguments.linux, arguments.out, files))


if __name__ == "__main__":
    main()
