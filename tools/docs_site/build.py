"""Builds the site: copies the pages, adds those of tools/docs_site/reference.py, and runs Sphinx.

docs/, slow_lane/docs, the changelog, sources -> a folder of pages with links between them -> sphinx-build -> HTML
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.docs_site import reference

_ROOT = Path(__file__).parents[2]
# Pages: their place in the tree -> their place in the site. The rest of docs/ keeps its place there.
_PLACES = {f"slow_lane/docs/{path.name}": f"slow_lane/{path.name}" for path in _ROOT.glob("slow_lane/docs/*.md")}
_PLACES |= {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
_PLACES |= {"docs/README.md": "index.md", "docs/decisions/README.md": "decisions/index.md"}
# The navigation: the caption of a part, and its pages.
_PARTS = {
    "Start": "install gymnasium environments own_robot engines engines_c godot jobs page",
    "How-to": "moving examples frameworks states many_agents commands frames viewer inspector gpu ray docker slurm "
    "grpc slow_lane/telemetry slow_lane/telemetry_queries troubleshooting",
    "Reference": "reference/python reference/tandem_h reference/cpp reference/csharp reference/rpcs reference/errors "
    "reference/command_lines reference/variables reference/events reference/database methods inspector_keys tasks "
    "differences failures randomization scene engine_services conformance platforms slow_lane/slow_lane",
    "Concepts": "architecture performance waiting slow_lane/slow_lane_design glossary",
    "Protocol": "protocol protocol/sessions protocol/exchanges protocol/doorbells protocol/memory_orders "
    "protocol/fields protocol/descriptions protocol/rpc_rings protocol/attendants protocol/workers "
    "protocol/own_rewards protocol/frame_rings protocol/image_slots protocol/live_scene protocol/gpu_arrays "
    "protocol/limits",
    "Project": "benchmarks scaling decisions/index adding_tasks contributing security changelog",
}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```.*?^```)", re.M | re.S)


def _linked(text: str, source: Path, place: Path) -> str:
    """Returns a page whose links to pages are the site's; other links become the names of files."""

    def replaced(match: re.Match[str]) -> str:
        path = os.path.normpath(source.parent / match[2])
        site = _PLACES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if site is None:
            return match[1] if match[1].strip("`") == path else f"{match[1]} (`{path}`)"
        return f"[{match[1]}]({os.path.relpath(site, place.parent)}{match[3] or ''})"

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(replaced, part) for part in parts)


def _navigation() -> str:
    return "".join(
        f"\n```{{toctree}}\n:caption: {caption}\n:hidden:\n\n" + "\n".join(pages.split()) + "\n```\n"
        for caption, pages in _PARTS.items()
    )


def _write_pages(folder: Path) -> None:
    shutil.copytree(_ROOT / "docs", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("README.md"))
    sources = {path.relative_to(folder).as_posix(): f"docs/{path.relative_to(folder)}" for path in folder.rglob("*.md")}
    sources |= {site: source for source, site in _PLACES.items() if source.endswith(".md")}
    for site, source in sources.items():
        text = (_ROOT / source).read_text("utf-8")
        if site == "index.md":
            text += _navigation()
        page = folder / site
        page.parent.mkdir(exist_ok=True)
        page.write_text(_linked(text, Path(source), Path(site)), "utf-8")
    decisions = sorted(path.stem for path in (folder / "decisions").glob("0*.md"))
    toctree = "\n```{toctree}\n:hidden:\n\n" + "\n".join(decisions) + "\n```\n"
    (folder / "decisions/index.md").write_text(reference.decisions() + toctree, "utf-8")
    (folder / "reference").mkdir()
    for name, text in reference.pages().items():
        (folder / name).write_text(text, "utf-8")


def main() -> None:
    """Builds the site into a folder; a warning, such as a dead link, is an error."""
    parser = argparse.ArgumentParser(prog="tools/docs")
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as scratch:
        _write_pages(Path(scratch))
        command = [sys.executable, "-m", "sphinx", "--builder=html", "--fail-on-warning", "--keep-going", "--quiet"]
        command += ["--jobs=auto", f"--conf-dir={Path(__file__).parent}", f"--doctree-dir={scratch}/.doctrees"]
        sys.exit(subprocess.run([*command, scratch, str(out)], check=False).returncode)


if __name__ == "__main__":
    main()
