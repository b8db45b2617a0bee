"""`tools/generate_csharp` writes all messages. The test needs no C# compiler."""

import json
import re
import subprocess
from pathlib import Path

COMMAND = "tools/generate_csharp"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True)


def test_writes_one_file_with_every_message(tmp_path: Path) -> None:
    """The folder is created; each message has a reader and a plain class, with the schema's numbers."""
    folder = tmp_path / "new" / "Generated"
    result = run(folder)
    assert result.returncode == 0, result.stderr
    (file,) = folder.iterdir()
    code = file.read_text(encoding="utf-8")
    listing = json.loads(Path("schema/goldens/rpc_v1/listing.json").read_text(encoding="utf-8"))
    payloads = {envelope["payload_type"] for envelope in listing.values() if "payload_type" in envelope}
    assert len(payloads) > 40
    assert payloads <= set(re.findall(r"public struct (\w+) : IFlatbufferObject", code))
    assert {f"{name}T" for name in payloads} <= set(re.findall(r"public class (\w+)", code))
    assert "public enum MethodId : ushort" in code
    assert "GetServices = 241," in code


def test_replaces_only_its_earlier_output(tmp_path: Path) -> None:
    """Other files in the folder stay."""
    (tmp_path / "hazel_rpc_generated.cs").write_text("old", encoding="utf-8")
    (tmp_path / "mine.cs").write_text("mine", encoding="utf-8")
    assert run(tmp_path).returncode == 0
    assert "EnvelopeT" in (tmp_path / "hazel_rpc_generated.cs").read_text(encoding="utf-8")
    assert (tmp_path / "mine.cs").read_text(encoding="utf-8") == "mine"


def test_flatc_is_the_one_named(tmp_path: Path) -> None:
    """Another version of the C# library may need another flatc."""
    result = run("--flatc", tmp_path / "none", tmp_path)
    assert result.returncode == 1
    assert str(tmp_path / "none") in result.stderr
    (tmp_path / "flatc").symlink_to("/usr/bin/flatc")
    assert run("--flatc", tmp_path / "flatc", tmp_path / "out").returncode == 0


def test_prints_usage(tmp_path: Path) -> None:
    """--help prints the usage to stdout; wrong usage prints an error."""
    assert run("--help").stdout.startswith("Usage: tools/generate_csharp")
    for arguments in ([], ["--flatc"], [tmp_path, tmp_path], [""]):
        result = run(*arguments)
        assert result.returncode == 2
        assert "--help" in result.stderr
