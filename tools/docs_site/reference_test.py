"""A source whose description is missing is an error that names it; the rest is on its page."""

import subprocess
from pathlib import Path

import pytest

from tools.docs_site import reference

# Of each page: a file, its text, what is removed from it, what the page has, and what the error names.
_SOURCES = {
    "errors": (
        "schema/layout/error_codes.h",
        '  ROW(1, kGone, kAborted, Gone,  \\\n      "it has "  \\\n      "left")',
        '"it has "  \\\n      "left"',
        "| 1 | `kGone` | `Gone` | `kAborted` | it has left |",
        "kGone",
    ),
    "rpcs": (
        "schema/messages/hazel_rpc.fbs",
        "/// The method.\nenum MethodId : ushort {\n  NONE = 0,\n\n  // Agent\n  Reset = 2,\n}\n\n"
        "/// Resets.\ntable ResetRequest {\n  env:uint;\n}\n\ntable ResetResponse {}\n",
        "/// Resets.\n",
        "| Agent | `Reset` | 2 |",
        "ResetRequest, ResetResponse",
    ),
    "events": (
        "schema/telemetry/step.v1.schema.json",
        '{"title": "A step", "description": "One.", "properties": {"reward": {"description": "Of the step."}}}',
        "Of the step.",
        "| `reward` | Of the step. |",
        "reward",
    ),
    "database": (
        "slow_lane/store/schema.sql",
        "CREATE VIEW steps AS SELECT runs.run_id, reward\n  FROM runs;",
        "CREATE VIEW steps",
        "| `steps` | `run_id`, `reward` |",
        "views",
    ),
    "csharp": (
        "sdk/csharp/Engine.cs",
        "/// <summary>Serves.</summary>\npublic void Serve(int envs)\n{\n}\n",
        "Serves.",
        "public void Serve(int envs)",
        "Serve",
    ),
    "decisions": (
        "docs/decisions/README.md",
        "| 1 | [One](0001-one.md) |\n",
        "One",
        "| 1 | [One](0001-one.md) |",
        "0001-one.md",
    ),
    "variables": (
        "tools/docs_site/variables.toml",
        'TANDEM_NAME = "a name"\n',
        'TANDEM_NAME = "a name"',
        "| `TANDEM_NAME` | a name |",
        "TANDEM_NAME",
    ),
}


@pytest.mark.parametrize("page", _SOURCES)
def test_each_source_is_described(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its page; without the description the page is refused."""
    path, text, removed, expected, name = _SOURCES[page]
    monkeypatch.setattr(reference, "_ROOT", tmp_path)
    program = tmp_path / "program.cc"
    program.write_text('getenv("TANDEM_NAME");\n', "utf-8")
    for words in (["init"], ["add", "program.cc"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    record = tmp_path / "docs/decisions/0001-one.md"
    record.parent.mkdir(parents=True)
    record.write_text("# 1. One\n", "utf-8")
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    assert expected in getattr(reference, page)()
    file.write_text(text.replace(removed, ""), "utf-8")
    with pytest.raises(reference.Undescribed, match=name):
        getattr(reference, page)()


def test_a_name_that_no_program_reads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of a variable which went with its code."""
    monkeypatch.setattr(reference, "_ROOT", tmp_path)
    subprocess.run(["git", "init"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "tools/docs_site").mkdir(parents=True)
    (tmp_path / "tools/docs_site/variables.toml").write_text('TANDEM_OLD = "unused"\n', "utf-8")
    with pytest.raises(reference.Undescribed, match="no TANDEM_OLD"):
        reference.variables()
