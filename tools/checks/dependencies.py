"""Checks that dependencies between the project's layers point down only, and that programs use the core's public face.

    client_py, engine_adapter, gateway, viz, slow_lane  ->  program, transport  ->  base  ->  schema
    sdk  ->  engine_adapter;  client_py/tandem:_engine.so  ->  client_py/engine_bindings  ->  client_py, engine_adapter
    within transport: rpc, gpu, monitoring -> session -> frames, ring -> wait, memory -> base

Within one of these, too, the folders never depend on one another in circles; tests may look anywhere in theirs.

The core is schema, base, transport and engine_adapter. Programs, which are all others, use the targets of //transport
and //engine_adapter, and include the headers in these two folders. What lies in their subfolders is the core's own;
tests may also use its libraries for tests. A public header includes no internal one
(docs/decisions/0079-a-public-face-of-headers.md).

The five on top never depend on one another, except that one may take another's binary as `data` (packaging, tests),
or give it a second name by an alias; the same holds for the files of sdk that the wheel installs. Only the extension
module for engines in Python uses engine_adapter (docs/decisions/0050-engines-in-python.md). slow_lane/client_py
stands on client_py, which packs it into the wheel. No layer depends on tests/ or tools/, nor on the tests of
slow_lane, except that test rules may use //tools/testing and //transport/testing. Each layer may use the files
of the root folder, such as the licence. A folder that is not in the table is a problem: its place among the layers has
to be decided first.
"""

import argparse
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

# Layer -> the layers that it may depend on, besides itself.
_BELOW: dict[str, frozenset[str]] = {
    "schema": frozenset(),
    "transport/testing": frozenset({"schema"}),
    "base": frozenset({"schema"}),
}
_BELOW["program"] = _BELOW["transport/wait"] = _BELOW["transport/memory"] = frozenset({"schema", "base"})
_BELOW["transport/ring"] = _BELOW["transport/wait"] | {"transport/wait", "transport/memory"}
_BELOW["transport/frames"] = _BELOW["transport/ring"] | {"transport/ring"}
_BELOW["transport/session"] = _BELOW["transport/frames"] | {"transport/frames"}
_ON_SESSIONS = _BELOW["transport/session"] | {"transport/session"}
_BELOW |= {f"transport/{layer}": _ON_SESSIONS for layer in ("gpu", "monitoring", "rpc")}
_BELOW["transport"] = frozenset(_BELOW)  # the public targets
_TOP = ("client_py", "engine_adapter", "gateway", "viz", "slow_lane")
_BELOW |= {layer: frozenset(_BELOW) for layer in _TOP}
_BELOW["sdk"] = _BELOW["engine_adapter"] | {"engine_adapter"}
_ENGINE_BINDINGS = "client_py/engine_bindings"
_BELOW[_ENGINE_BINDINGS] = _BELOW["sdk"] | {"client_py"}
_LANE_PYTHON = "slow_lane/client_py"
_LINKED = "client_py/tandem/telemetry"  # a link to its tandem/telemetry
_BELOW[_LANE_PYTHON] = _BELOW["client_py"] | {"client_py"}

_CORE = ("schema/", "base/", "transport/", "engine_adapter/")
_CORES_TESTS = ("tests/benchmark/", "tests/end_to_end/", "tests/faults/")  # as //transport:core_and_its_tests
_INTERNAL = ("//transport/", "//engine_adapter/")
# What no public header has: an engine without a host, for a test of the client; a scene that a build writes.
_USES_INTERNALS = frozenset(
    {
        ("//client_py/tandem/testing:trivial_engine", "//transport/session:engine_side"),
        ("//sdk:write_cart", "//engine_adapter/scene:glb_builder"),
        ("//sdk:write_cart", "//engine_adapter/scene:shapes"),
    }
)
_INTERNAL_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*["<]((?:transport|engine_adapter)/(?:\w+/)+[\w.]+)[">]', re.MULTILINE
)

# The same file by another spelling; a macro may be any.
_OTHER_INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(["<](?:\.{1,2}/|[^">\n]*(?://|/\.{1,2}/)).*|[^"<\s].*)$', re.MULTILINE
)

_INSTALLED = "//sdk:installed"
_ENGINE_MODULE = "//client_py/tandem:_engine.so_deps"
_EXCEPTIONS = (
    (_ENGINE_MODULE, _ENGINE_BINDINGS),
    ("//client_py:wheel", _LANE_PYTHON),
    ("//client_py/tandem:tandem", _LANE_PYTHON),
)
# A package packs the slow lane's modules, which stand on its own.
_PACKED = {"client_py/tandem": _LINKED}

_SEE_EVERYTHING = ("tests", "tools", "slow_lane/testing")
_WITHIN = (_ENGINE_BINDINGS, _LANE_PYTHON, *_SEE_EVERYTHING)  # layers that are folders of another
_TESTING = ("//tools/testing:", "//transport/testing:")
# tools/build/targets.bzl adds them to targets.
_OF_MACROS = (
    "//schema/messages:headers",
    "//schema/messages:test_headers",
    "//tools/build:compile_modules.py",
    "//tools/build:headers",
    "//tools/build:merged",
    "//tools/build:test_headers",
    "//tools/build:precompiled/",
)


@dataclass(frozen=True)
class Rule:
    """One target of the build graph."""

    label: str
    kind: str  # such as "cc_library"
    inputs: frozenset[str]  # labels of every attribute but data
    data: frozenset[str]
    for_tests: bool


def read_graph(xml: str) -> list[Rule]:
    """Returns the rules in the output of `bazel query --output=xml`."""
    rules = []
    for element in ElementTree.fromstring(xml).iter("rule"):
        labels: dict[str, set[str]] = {"data": set(), "visibility": set()}
        for attribute in element:
            names = {label.get("value", "") for label in attribute.iter("label")}
            labels.setdefault(attribute.get("name", ""), set()).update(names)
        data = labels.pop("data")
        del labels["visibility"]
        inputs = set().union(*labels.values())
        # What a rule uses without an attribute of its own that says so counts as input, unless it is data only.
        inputs |= {item.get("name", "") for item in element.iterfind("rule-input")} - data
        rules.append(
            Rule(
                label=element.get("name", ""),
                kind=element.get("class", ""),
                inputs=frozenset(inputs),
                data=frozenset(data),
                for_tests=_is_for_tests(element),
            )
        )
    return rules


def _is_for_tests(rule: ElementTree.Element) -> bool:
    testonly = rule.find("boolean[@name='testonly']")
    return rule.get("class", "").endswith("_test") or (testonly is not None and testonly.get("value") == "true")


def folder_of(label: str) -> str:
    """Returns the folder of a label, "engine_adapter/mujoco/render" of //engine_adapter/mujoco/render:egl_context."""
    return label.removeprefix("//").split(":")[0]


def layer_of(label: str) -> str:
    """Returns the layer of a label, "transport/ring" of //transport/ring:spsc; its first folder if it has none."""
    folder = folder_of(label)
    if folder == _LINKED:
        return _LANE_PYTHON
    if within := [layer for layer in _WITHIN if f"{folder}/".startswith(f"{layer}/")]:
        return within[0]
    parts = folder.split("/")
    return "/".join(parts[:2]) if parts[0] == "transport" else parts[0]


def find_uses_of_internals(rules: list[Rule]) -> Iterator[str]:
    """Yields a sentence for each dependency of a program on an internal target of transport or engine_adapter."""
    # //transport:core_and_its_tests names the folders of tests/ that see internals.
    for_tests = {rule.label for rule in rules if rule.for_tests}
    binaries = {rule.label for rule in rules if rule.kind.endswith("_binary")}
    for rule in rules:
        of_core = rule.label[2:].startswith(("transport:", "engine_adapter:", *_CORE))
        if of_core or rule.label.startswith(("//tests/", "//tools", "@")):
            continue
        for used in sorted(rule.inputs | rule.data):
            names_only = used in binaries and (used not in rule.inputs or rule.kind == "alias")
            tests_only = rule.for_tests and (used in for_tests or used.startswith(_TESTING))
            if used.startswith(_INTERNAL) and not (names_only or tests_only or (rule.label, used) in _USES_INTERNALS):
                yield f"{rule.label}: expected a target of //transport or //engine_adapter, found the internal {used}"


def find_internal_includes(sources: dict[str, str]) -> Iterator[str]:
    """Yields a sentence for each internal header that a program or a public header includes.

    Args:
        sources: The text of each C++ file, by its path.
    """
    exceptions = {label[2:].replace(":", "/") + ".cc" for label, _ in _USES_INTERNALS}
    for path, text in sorted(sources.items()):
        folder, _, name = path.rpartition("/")
        is_public = folder in ("transport", "engine_adapter")
        if path in exceptions or (path.startswith((*_CORE, *_CORES_TESTS)) and not is_public):
            continue
        is_test = folder.endswith("/testing") or re.search(r"_(test|fuzz|benchmark)\.cc$", name)
        for include in _OTHER_INCLUDE.finditer(text):
            yield f"{path}: expected #include with a path from the top of the tree, found {include[1]}"
        for include in _INTERNAL_INCLUDE.finditer(text):
            if is_test and "/testing/" in include[1]:
                continue
            what = "a header of base, schema or a public one" if is_public else "transport/*.h or engine_adapter/*.h"
            yield f"{path}: expected {what}, found the internal {include[1]}"


def find_problems(rules: list[Rule]) -> Iterator[str]:
    """Yields a sentence for each dependency of the whole graph that points the wrong way."""
    kinds = {rule.label: rule.kind for rule in rules}
    for rule in rules:
        layer = layer_of(rule.label)
        if layer in _SEE_EVERYTHING or rule.label.startswith(("//:", "@")):
            continue
        if layer not in _BELOW:
            yield f"{rule.label}: expected a layer of the table in tools/checks/dependencies.py, found {layer}"
            continue
        for used in sorted(rule.inputs | rule.data):
            target = layer_of(used)
            if not used.startswith("//") or used.startswith("//:") or target == layer or target in _BELOW[layer]:
                continue
            if target == "transport" and layer.startswith("transport/") and used.endswith(".h"):
                continue
            if used.startswith(_OF_MACROS) or (used.startswith(_TESTING) and rule.for_tests):
                continue
            names_only = used not in rule.inputs or rule.kind == "alias"
            if names_only and target in (*_TOP, _LANE_PYTHON) and kinds.get(used, "").endswith("_binary"):
                continue
            if names_only and used == _INSTALLED:
                continue
            if (rule.label, target) in _EXCEPTIONS:
                continue
            allowed = ", ".join(sorted(_BELOW[layer])) or "nothing"
            yield f"{rule.label}: {layer} may depend on {allowed}; found {used}"


def find_circles(rules: list[Rule]) -> Iterator[str]:
    """Finds folders of what ships that depend on one another in a circle, even if none of their rules does.

    Yields a sentence for the first circle of the whole graph.
    """
    shipped = {rule.label for rule in rules if not rule.for_tests}
    uses: dict[str, set[str]] = {}
    for rule in rules:
        if rule.label in shipped:
            folder = folder_of(rule.label)
            used = (label for label in rule.inputs & shipped if not label.startswith(_OF_MACROS))
            uses.setdefault(folder, set()).update(map(folder_of, used))
            uses[folder] -= {folder, _PACKED.get(folder)}
    try:
        graphlib.TopologicalSorter(uses).prepare()
    except graphlib.CycleError as error:
        yield f"expected folders that depend on one another in one direction; found {' <- '.join(error.args[1])}"


def main() -> int:
    """Checks a graph, prints the problems, and returns the exit code: 0 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=Path, help="output of: bazel query --output=xml 'kind(rule, //...)'")
    rules = read_graph(parser.parse_args().graph.read_text("utf-8"))
    listed = subprocess.run(
        ["git", "ls-files", "*.h", "*.hpp", "*.inc", "*.cc", "*.c"], capture_output=True, text=True, check=True
    )
    sources = {path: Path(path).read_text("utf-8") for path in listed.stdout.splitlines()}
    problems = [
        *find_problems(rules),
        *find_circles(rules),
        *find_uses_of_internals(rules),
        *find_internal_includes(sources),
    ]
    if not rules:
        problems = ["expected rules in the build graph, found none"]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
