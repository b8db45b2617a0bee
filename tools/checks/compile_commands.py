"""Turns Bazel's compile actions into compile_commands.json, for clang-tidy and editors.

Reads `bazel aquery --output=jsonproto` on standard input, writes the file's content to standard output.
"""

import argparse
import json
import sys
from typing import Any

# What g++ is given and clang does not know.
_GCC_ONLY = {"-fno-canonical-system-headers", "-Wno-free-nonheap-object", "-Wunused-but-set-parameter"}


def compile_commands(graph: dict[str, Any], workspace: str, output_base: str) -> list[dict[str, Any]]:
    """Lists how each source file of the workspace is compiled: entries of a compilation database.

    A file that is compiled more than once has its first entry only.

    Args:
      graph: The action graph, as aquery prints it.
      workspace: Top of the source tree; commands run there.
      output_base: Bazel's output base, where external repositories lie.
    """
    entries: dict[str, dict[str, Any]] = {}
    for action in graph.get("actions", []):
        arguments = action.get("arguments", [])
        if "-c" not in arguments:
            continue
        source = arguments[arguments.index("-c") + 1]
        if source.startswith(("external/", "bazel-out/")) or source in entries:
            continue
        arguments = [
            argument.replace("external/", f"{output_base}/external/", 1)
            if argument.startswith("external/")
            else argument
            for argument in arguments
            if argument not in _GCC_ONLY
        ]
        entries[source] = {"directory": workspace, "file": source, "arguments": arguments}
    return [entries[source] for source in sorted(entries)]


def main() -> None:
    """Reads the action graph and prints the database."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", required=True, help="top of the source tree")
    parser.add_argument("--output_base", required=True, help="what `bazel info output_base` prints")
    arguments = parser.parse_args()
    json.dump(compile_commands(json.load(sys.stdin), arguments.workspace, arguments.output_base), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
