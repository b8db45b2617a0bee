"""Packs files into a NuGet package, a zip file with a description. Equal files make equal packages.

Data flow: Tandem.dll, its comments, the library for its system, licences -> Tandem.VERSION.nupkg.
"""

import argparse
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>Tandem</id>
    <version>{version}</version>
    <authors>Tandem</authors>
    <license type="expression">Apache-2.0</license>
    <description>Engines, clients and attendants of Tandem in C#, over libtandem.so.1.</description>
    <dependencies>
      <group targetFramework=".NETStandard2.0" />
    </dependencies>
  </metadata>
</package>
"""

# The parts that the Open Packaging Conventions ask for.
_RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/Tandem.nuspec" Id="R1" />
</Relationships>
"""
_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  {overrides}
</Types>
"""


def pack(package: Path, version: str, files: dict[str, bytes]) -> None:
    """Writes the package; `files`: path in it -> content."""
    files = {"Tandem.nuspec": _NUSPEC.format(version=version).encode(), **files}
    overrides = "\n  ".join(
        f'<Override PartName="/{path}" ContentType="application/octet" />' for path in sorted(files)
    )
    files["_rels/.rels"] = _RELATIONS.encode()
    files["[Content_Types].xml"] = _TYPES.format(overrides=overrides).encode()
    with ZipFile(package, "w") as archive:
        for path, data in sorted(files.items()):
            # ZipInfo's time stamp is 1980; the system is the same on every machine.
            entry = ZipInfo(path)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, ZIP_DEFLATED)


def main() -> None:
    """Reads the command line and writes the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the package")
    parser.add_argument("--version", required=True, help="of the package")
    parser.add_argument("--notice", type=Path, action="append", default=[], help="licence: .../NAME/copyright")
    parser.add_argument("files", nargs="+", metavar="PATH=FILE", help="what the package has at PATH")
    arguments = parser.parse_args()
    files = {path: Path(file).read_bytes() for path, _, file in (pair.partition("=") for pair in arguments.files)}
    files |= {f"licences/{notice.parent.name}/{notice.name}": notice.read_bytes() for notice in arguments.notice}
    pack(arguments.out, arguments.version, files)


if __name__ == "__main__":
    main()
