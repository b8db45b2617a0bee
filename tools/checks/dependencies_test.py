"""Tests of the module dependencies."""

import pytest

from tools.checks.dependencies import (
    find_circles,
    find_internal_includes,
    find_problems,
    find_uses_of_internals,
    read_graph,
)


def _graph(label: str, used: str, *, attribute: str = "deps", kind: str = "cc_library", used_kind: str = "") -> str:
    """Returns a graph in which one rule depends on another."""
    return f"""<query>
      <rule class="{kind}" name="{label}">
        <list name="{attribute}"><label value="{used}"/></list>
        <rule-input name="{used}"/>
      </rule>
      <rule class="{used_kind or "cc_library"}" name="{used}"/>
    </query>"""


@pytest.mark.parametrize(
    ("label", "used"),
    [
        ("//schema/layout:a", "//base:b"),
        ("//base:a", "//transport/memory:b"),
        ("//transport/wait:a", "//transport/memory:b"),
        ("//transport/ring:a", "//transport/session:b"),
        ("//transport/session:a", "//program:b"),
        ("//program:a", "//transport/session:b"),
        ("//transport/session:a", "//engine_adapter/core:b"),
        ("//transport/session:a", "//transport:b"),
        ("//client_py/tandem:a", "//engine_adapter/core:b"),
        ("//client_py/tandem:_engine.so_deps", "//engine_adapter/core:b"),
        ("//client_py/tandem:_native.so_deps", "//client_py/engine_bindings:b"),
        ("//client_py/engine_bindings:a", "//sdk:b"),
        ("//engine_adapter/core:a", "//client_py/bindings:b"),
        ("//viz/viewer:a", "//slow_lane/store:b"),
        ("//gateway:a", "//engine_adapter/core:b"),
        ("//client_py/tandem:a", "//tests/faults:b"),
        ("//slow_lane/daemon:a", "//slow_lane/testing:b"),
        ("//slow_lane/daemon:a", "//slow_lane/client_py/tandemctl:b"),
        ("//schema/layout:a", "//tools/testing:b"),
        ("//novelty:a", "//schema/layout:b"),
    ],
)
def test_refuses_a_dependency_that_points_up_or_across(label: str, used: str) -> None:
    """The message begins with the dependent rule."""
    (problem,) = [line for line in find_problems(read_graph(_graph(label, used))) if line.startswith(label)]
    assert problem


@pytest.mark.parametrize(
    ("label", "used"),
    [
        ("//base:a", "//schema/layout:b"),
        ("//transport/session:a", "//transport/ring:b"),
        ("//transport/session:a", "//base:b"),
        ("//transport/ring:a", "//transport/memory:b"),
        ("//program:a", "//base:b"),
        ("//viz/inspect:a", "//program:b"),
        ("//client_py/tandem:a", "//transport:b"),
        ("//transport/session:a", "//transport:b.h"),
        ("//transport:a", "//transport/session:b"),
        ("//client_py/tandem:_engine.so_deps", "//client_py/engine_bindings:b"),
        ("//client_py/engine_bindings:a", "//client_py/bindings:b"),
        ("//client_py/engine_bindings:a", "//engine_adapter/host:b"),
        ("//tests/faults:a", "//client_py/tandem:b"),
        ("//slow_lane/testing:a", "//engine_adapter/core:b"),
        ("//client_py:wheel", "//slow_lane/client_py/tandemctl:b"),
        ("//slow_lane/client_py/tandemctl:a", "//client_py/tandem:b"),
        ("//tools:a", "//engine_adapter/core:b"),
        ("//base:a", "@com_google_absl//:absl"),
        ("//client_py:a", "//:LICENSE"),
    ],
)
def test_accepts_a_dependency_that_points_down(label: str, used: str) -> None:
    """External libraries and the root folder's files are below all components."""
    assert not list(find_problems(read_graph(_graph(label, used))))


@pytest.mark.parametrize("program", ["//viz/core:a", "//gateway:a", "//sdk:a", "//client_py/engine_bindings:a"])
@pytest.mark.parametrize("used", ["//transport/session:client_side", "//engine_adapter/host:engine_host"])
def test_refuses_internal_targets_of_the_core_to_programs(program: str, used: str) -> None:
    """The public targets are accepted; the core may use all."""
    (problem,) = find_uses_of_internals(read_graph(_graph(program, used)))
    assert problem.startswith(program) and used in problem
    package, _, name = used.partition(":")
    public = f"//{package[2:].split('/')[0]}:{name}"
    assert not list(find_uses_of_internals(read_graph(_graph(program, public))))
    assert not list(find_uses_of_internals(read_graph(_graph("//engine_adapter/services:a", used))))


def test_accepts_internal_testing_libraries_in_tests_of_programs_only() -> None:
    """A test may use a library of the core that is for tests only, and no other."""
    used = "//transport/memory:unique_region_name"
    graph = _graph("//viz/core:a", used, kind="cc_test")
    rule = f'<rule class="cc_library" name="{used}"'
    for_tests = graph.replace(f"{rule}/>", f'{rule}><boolean name="testonly" value="true"/></rule>')
    assert list(find_uses_of_internals(read_graph(graph)))
    assert not list(find_uses_of_internals(read_graph(for_tests)))
    assert list(find_uses_of_internals(read_graph(for_tests.replace("cc_test", "cc_library"))))


@pytest.mark.parametrize(
    ("path", "included", "refused"),
    [
        ("viz/core/a.cc", "transport/session/open_region.h", True),
        ("viz/core/a.cc", "transport/client_side.h", False),
        ("sdk/a.h", "engine_adapter/host/simulation.h", True),
        ("viz/core/a_test.cc", "transport/memory/testing/placed_file.h", False),
        ("viz/core/a_test.cc", "transport/memory/owned_region.h", True),
        ("viz/core/a.cc", "transport/memory/testing/placed_file.h", True),
        ("transport/client_side.h", "transport/session/open_region.h", True),
        ("transport/session/client_side.cc", "transport/session/open_region.h", False),
        ("tests/faults/a.cc", "transport/session/engine_side.h", False),
        ("tests/web/a.cc", "transport/session/engine_side.h", True),
    ],
)
def test_refuses_internal_headers_of_the_core_to_programs_and_public_headers(
    path: str, included: str, refused: bool
) -> None:
    """The message has the file and the header."""
    for line in ('#include "{}"', "#include <{}>", ' # include "{}"'):
        problems = list(find_internal_includes({path: line.format(included) + "\n"}))
        assert bool(problems) == refused
        assert all(path in problem and included in problem for problem in problems)


@pytest.mark.parametrize(
    "spelling",
    ['"./a.h"', '"../transport/a.h"', "<transport//a.h>", '"viz/../transport/a.h"', '"transport/./a.h"', "A_H"],
)
def test_refuses_other_spellings_of_a_path(spelling: str) -> None:
    """The same header must have one name, which the check above knows."""
    assert list(find_internal_includes({"viz/core/a.cc": f"#include {spelling}\n"}))
    assert not list(find_internal_includes({"viz/core/a.cc": "#include <sys/stat.h>\n"}))


def test_accepts_the_binary_of_another_component_as_data_only() -> None:
    """The library as data, and the binary as a source, are refused."""
    label, used = "//client_py/tandem:a", "//engine_adapter/server:server"
    assert not list(find_problems(read_graph(_graph(label, used, attribute="data", used_kind="cc_binary"))))
    assert list(find_problems(read_graph(_graph(label, used, attribute="data", used_kind="cc_library"))))
    assert list(find_problems(read_graph(_graph(label, used, attribute="srcs", used_kind="cc_binary"))))


def test_accepts_a_second_name_for_the_binary_of_another_component() -> None:
    """An alias of the binary is accepted; an alias of the library is refused."""
    label, used = "//slow_lane:a", "//client_py/tool:b"
    for used_kind, refused in (("py_binary", False), ("py_library", True)):
        graph = _graph(label, used, attribute="actual", kind="alias", used_kind=used_kind)
        assert bool(list(find_problems(read_graph(graph)))) == refused


def test_visibility_is_no_dependency() -> None:
    """A visibility list has labels as well."""
    label, seen_by = "//schema/layout:a", "//client_py:__subpackages__"
    graph = _graph(label, "//schema/layout:b").replace(
        "<rule-input", f'<list name="visibility"><label value="{seen_by}"/></list><rule-input'
    )
    assert not list(find_problems(read_graph(graph)))


def test_accepts_the_testing_library_in_tests_only() -> None:
    """Shipped targets must not depend on tools."""
    label, used = "//client_py/tandem:a", "//tools/testing:pytest_main"
    assert not list(find_problems(read_graph(_graph(label, used, kind="py_test"))))
    assert list(find_problems(read_graph(_graph(label, used, kind="py_library"))))


def test_the_package_stands_without_the_slow_lane() -> None:
    """Only the whole package and the wheel have its modules."""
    used = "//client_py/tandem/telemetry:telemetry"
    assert list(find_problems(read_graph(_graph("//client_py/tandem:environments", used))))
    assert not list(find_problems(read_graph(_graph("//client_py/tandem:tandem", used))))


def test_refuses_folders_in_a_circle_unless_a_test_closes_it() -> None:
    """Rules without a cycle may still have a cycle of folders."""
    closing = (
        '<rule class="cc_library" name="//schema/layout:c"><rule-input name="//schema/messages:a"/>{}</rule></query>'
    )
    graph = _graph("//schema/messages:a", "//schema/layout:b")
    assert not list(find_circles(read_graph(graph)))
    (problem,) = find_circles(read_graph(graph.replace("</query>", closing.format(""))))
    assert "schema/layout" in problem and "schema/messages" in problem
    for_tests = '<boolean name="testonly" value="true"/>'
    assert not list(find_circles(read_graph(graph.replace("</query>", closing.format(for_tests)))))
    packed = {"schema/messages": "client_py/tandem", "schema/layout": "client_py/tandem/telemetry"}
    for folder, other in packed.items():
        closing, graph = closing.replace(folder, other), graph.replace(folder, other)
    assert not list(find_circles(read_graph(graph.replace("</query>", closing.format("")))))
