"""The site's reference pages, made from sources: nothing on them is written by hand.

A page is empty of nothing: a source without a description is an error, with its name.
"""

import json
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_BIN = _ROOT / "bazel-bin"
_MODULES = ("tandem", "tandem.checkpoint", "tandem.sb3", "tandem.services", "tandem.telemetry", "tandem.vector")


class Undescribed(ValueError):
    """A source that the reference cannot describe."""


def _read(path: str) -> str:
    return (_ROOT / path).read_text("utf-8")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in lines)


def _described(name: str, text: str | None) -> str:
    if not text or not text.strip():
        raise Undescribed(f"{name}: expected a description, found none")
    return " ".join(text.split())


def decisions() -> str:
    """Returns the index of decision records, which has number and title of each."""
    index = _read("docs/decisions/README.md")
    for path in sorted((_ROOT / "docs/decisions").glob("0*.md")):
        title = re.match(r"# (\d+)\. (.*)", path.read_text("utf-8"))
        if not title or f"| {title[1]} | [{title[2]}]({path.name})" not in index:
            raise Undescribed(f"docs/decisions/README.md: expected number and title of {path.name}")
    return index


def errors() -> str:
    """Returns the table of error codes (schema/layout/error_codes.h)."""
    row = re.compile(r"ROW\((\d+), (\w+), (\w+), (\w+),\s*((?:\"[^\"]*\"\s*)*)\)")
    text = _read("schema/layout/error_codes.h").replace("\\\n", "\n")
    rows = [
        (number, f"`{name}`", f"`{python}`", f"`{absl}`", _described(name, "".join(re.findall(r'"([^"]*)"', meaning))))
        for number, name, absl, python, meaning in row.findall(text)
    ]
    return "# Errors\n\n" + _table(("number", "C++", "Python", "absl", "meaning"), rows)


def rpcs() -> str:
    """Returns the methods and messages of the RPCs (schema/messages/hazel_rpc.fbs)."""
    text = _read("schema/messages/hazel_rpc.fbs")
    methods = re.search(r"enum MethodId : ushort \{(.*?)\n\}", text, re.S)
    assert methods is not None
    rows, service = [], ""
    for line in methods[1].splitlines():
        if comment := re.fullmatch(r"\s*// (\w.*)", line):
            service = comment[1]
        elif method := re.fullmatch(r"\s*(\w+) = (\d+),?.*", line):
            rows.append((service, f"`{method[1]}`", method[2]))
    result = ["# RPCs\n", _table(("service", "method", "number"), [row for row in rows if row[2] != "0"])]
    block = re.compile(r"((?:^///[^\n]*\n)+)^(table|struct|enum|union) (\w+)[^{\n]*\{(.*?)^\}", re.M | re.S)
    declared = re.findall(r"^(?:table|struct|enum|union) (\w+)", text, re.M)
    found = {}
    for comment, kind, name, body in block.findall(text):
        about = _described(name, re.sub(r"^/// ?", "", comment, flags=re.M))
        found[name] = f"\n## {name}\n\n{about}\n\n```text\n{kind} {name} {{{body}}}\n```\n"
    for name in declared:  # the answer of a request that is described
        if name.endswith("Response") and name.removesuffix("Response") + "Request" in found:
            found.setdefault(name, f"\n## {name}\n\nAnswers {name.removesuffix('Response')}.\n")
    if missing := [name for name in declared if name not in found]:
        raise Undescribed(f"hazel_rpc.fbs: expected a comment with /// above {', '.join(missing)}")
    return "\n".join(result) + "".join(found.values())


def events() -> str:
    """Returns the fields of the events that workers print (schema/telemetry)."""
    result = ["# Events\n"]
    for path in sorted((_ROOT / "schema/telemetry").glob("*.json")):
        schema = json.loads(path.read_text("utf-8"))
        result.append(f"\n## {schema['title']}\n\n{_described(path.name, schema.get('description'))}\n\n")
        rows = []
        for name, field in schema["properties"].items():
            if "$ref" in field:
                field = {**schema["$defs"][field["$ref"].rpartition("/")[2]], **field}
            if field == {"type": "null"}:  # what other events have
                continue
            rows.append((f"`{name}`", _described(f"{path.name}: {name}", field.get("description"))))
        result.append(_table(("field", "means"), rows))
    return "".join(result)


def database() -> str:
    """Returns the views of the daemon's database (slow_lane/store)."""
    columns = re.compile(r"CREATE VIEW (\w+) AS SELECT (.*?)\s+FROM", re.S)
    rows = [
        (f"`{view}`", ", ".join(f"`{name.strip().rpartition('.')[2]}`" for name in names.split(",")))
        for view, names in columns.findall(_read("slow_lane/store/schema.sql"))
    ]
    if not rows:
        raise Undescribed("slow_lane/store: expected views, found none")
    return "# Database\n\n" + _table(("view", "columns"), rows)


def _help(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd=_ROOT)
    return f"```text\n{done.stdout.strip()}\n```\n"


def command_lines() -> str:
    """Returns the `--help` of each command of the wheel."""
    programs = {
        "tandem-daemon": _BIN / "slow_lane/daemon/tandem-daemon",
        "tandem-engine": _BIN / "engine_adapter/server/server",
        "tandem-gateway": _BIN / "gateway/tandem-gateway",
        "tandem-inspect": _BIN / "viz/inspect/inspect",
        "tandem-view": _BIN / "viz/web/tandem-view",
    }
    scripts = tomllib.loads(_read("pyproject.toml"))["project"]["scripts"]
    if missing := sorted(set(scripts) - set(programs) - {"tandemctl"}):
        raise Undescribed(f"tools/docs_site/reference.py: expected the program of {', '.join(missing)}")
    result = ["# Command lines\n"]
    for name, program in programs.items():
        result.append(f"\n## {name}\n\n{_help(program, '--help')}")
    python = _ROOT / "tools/python"
    summary = _help(python, "-m", "tandemctl", "--help")
    result.append(f"\n## tandemctl\n\n{summary}")
    for name in re.findall(r"^  ([a-z]+) {2,}\S", summary, re.M):
        result.append(f"\n### tandemctl {name}\n\n{_help(python, '-m', 'tandemctl', name, '--help')}")
    return "".join(result)


def variables() -> str:
    """Returns the environment variables that programs read, and where."""
    about = tomllib.loads(_read("tools/docs_site/variables.toml"))
    named = re.compile(r"\b(?:TANDEM|MOSAIC)_[A-Z_]*[A-Z]\b(?!_)")
    found: set[str] = set()
    for path in _sources():
        if re.search(r"getenv|EnvironmentVariable|environ|VARIABLE", text := path.read_text("utf-8")):
            found |= set(named.findall("".join(re.findall(r'"[^"\n]*"', text))))
    if missing := sorted(found - set(about)):
        raise Undescribed(f"tools/docs_site/variables.toml: expected {', '.join(missing)}")
    if unused := sorted(set(about) - found):
        raise Undescribed(f"tools/docs_site/variables.toml: expected no {', '.join(unused)}: no source reads it")
    return "# Variables\n\n" + _table(("variable", "means"), [(f"`{name}`", text) for name, text in about.items()])


def _sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.cc", "*.h", "*.py"], check=True, capture_output=True, text=True, cwd=_ROOT
    ).stdout.split()
    return [_ROOT / path for path in listed if not re.search(r"test|examples/|^tools/", path)]


def _c_like(title: str, paths: Iterable[str]) -> str:
    """Returns headers as sections: the comment at the top as text, the declarations as they stand."""
    result = [f"# {title}\n"]
    for path in paths:
        text = _read(path)
        top = re.match(r"\s*(?:/\*(.*?)\*/|((?://.*\n)+))", text, re.S)
        if top is None:
            raise Undescribed(f"{path}: expected a comment at its top")
        body = re.sub(
            r"^#(?:ifndef|define|endif|pragma|include).*_H_?.*\n|^#include.*\n|^#pragma once\n",
            "",
            text[top.end() :],
            flags=re.M,
        )
        about = top[1] if top[1] is not None else re.sub(r"^// ?", "", top[2], flags=re.M)
        kind = "c" if path.endswith("tandem.h") else "csharp" if path.endswith(".cs") else "cpp"
        result.append(f"\n## {path}\n\n```text\n{about.strip()}\n```\n\n```{kind}\n{body.strip()}\n```\n")
    return "".join(result)


def tandem_h() -> str:
    """Returns the C interface."""
    return _c_like("tandem.h", ["sdk/tandem.h", "sdk/tandem.hpp"])


def python() -> str:
    """Returns the names of the public modules, with their signatures and docstrings."""
    import griffe  # of the site's environment

    # Two folders have the package's modules.
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "tandem")
        package.mkdir()
        for part in ("slow_lane/client_py/tandem", "client_py/tandem"):
            for path in (_ROOT / part).iterdir():
                if not (package / path.name).exists():
                    (package / path.name).symlink_to(path)
        loader = griffe.GriffeLoader(search_paths=[folder], allow_inspection=False)
        loader.load("tandem")
        loader.resolve_aliases(implicit=True)
        result = ["# Python\n"]
        for name in _MODULES:
            module = loader.modules_collection[name]
            result.append(f"\n## {name}\n\n{_docstring(module)}")
            for each in module.exports or ():
                result.append(_object(f"{name}.{each}", module[str(each)]))
    return "".join(result)


def _docstring(found: Any) -> str:
    if found.docstring is None:
        raise Undescribed(f"{found.path}: expected a docstring")
    parts = []
    for section in found.docstring.parse("google", warn_missing_types=False, warn_unknown_params=False):
        match section.kind.value:
            case "text":
                parts += [_paragraph(each) for each in section.value.split("\n\n")]
            case "examples":
                parts += [_paragraph(text) for _, text in section.value]
            case "admonition":
                parts.append(_paragraph(section.value.contents))
            case kind:
                named = (
                    (getattr(each, "name", "") or str(each.annotation), each.description) for each in section.value
                )
                rows = "\n".join(f"- `{name}`: {' '.join(text.split())}" for name, text in named)
                parts.append(f"{kind.capitalize()}:\n\n{rows}")
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    """Returns text as it is, and code and tables as a block."""
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    return f"```text\n{text}\n```" if re.search(r"^ |\S {3,}\S", text, re.M) else text


def _object(name: str, found: Any) -> str:
    """Returns a class with its public methods, a function, a value, or an enumeration with its values."""
    head = f"\n### {name}\n\n"
    if found.is_function:
        return head + _function(found)
    if not found.is_class:
        return head + (_docstring(found) if found.docstring else "")
    members = [each for each in found.members.values() if not each.name.startswith("_")]
    if any("Enum" in str(base) for base in found.bases):
        values = ", ".join(f"`{each.name}`" for each in members if each.is_attribute)
        return head + (_docstring(found) if found.docstring else "") + f"Values: {values}\n"
    init = found.members.get("__init__")
    shown = [init] if init is not None and init.docstring else []
    shown += [each for each in members if each.is_function and each.docstring]
    return head + _docstring(found) + "".join(_function(each) for each in shown)


def _function(found: Any) -> str:
    shown: list[str] = []
    for each in found.parameters:
        if each.name in ("self", "cls"):
            continue
        kind = str(each.kind.value)
        if kind == "keyword-only" and not any(text.startswith("*") for text in shown):
            shown.append("*")
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        default = f" = {each.default}" if each.default is not None and not stars else ""
        annotation = f": {each.annotation}" if each.annotation else ""
        shown.append(f"{stars}{each.name}{annotation}{default}")
    parameters = ", ".join(shown)
    if len(parameters) > 80:
        parameters = "".join(f"\n    {each}," for each in shown) + "\n"
    return f"```python\n{found.name}({parameters}) -> {found.returns}\n```\n\n{_docstring(found)}\n"


def cpp() -> str:
    """Returns the public headers (docs/decisions/0079)."""
    public = sorted(
        path.relative_to(_ROOT).as_posix()
        for folder in ("engine_adapter", "transport")
        for path in (_ROOT / folder).glob("*.h")
    )
    return _c_like("C++", public)


def csharp() -> str:
    """Returns the public types of the C# assembly, with their comments."""
    result = ["# C#\n"]
    member = re.compile(r"((?:^ *///.*\n)+)(?:^ *\[.*\n)*^ *(public [^{;=]*)", re.M)
    for path in sorted((_ROOT / "sdk/csharp").glob("*.cs")):
        members = member.findall(path.read_text("utf-8"))
        if members:
            result.append(f"\n## {path.stem}\n")
        for comment, signature in members:
            text = re.sub(r"^ *///", "", comment, flags=re.M)
            text = re.sub(r'<(?:see|paramref) \w+="(?:\w:)?([^"]*)"\s*/>', r"`\1`", text)
            text = re.sub(r"<param name=\"(\w+)\">", r"`\1`: ", text)
            about = _described(f"{path.name}: {signature}", re.sub(r"</?\w+[^>]*>", " ", text))
            result.append(f"\n```csharp\n{' '.join(signature.split())}\n```\n\n{about}\n")
    return "".join(result)


_PAGES: tuple[Callable[[], str], ...] = (
    command_lines, cpp, csharp, database, errors, events, python, rpcs, tandem_h, variables,
)  # fmt: skip


def pages() -> dict[str, str]:
    """Returns the reference pages by their place in the site; Undescribed: a source lacks a description."""
    return {f"reference/{page.__name__}.md": page() for page in _PAGES}
