"""The proxy and the schemas in schema/telemetry give the same verdict on every line.

The lines are those of event_samples.txt and of the fuzz target's corpus, and, for each field of each schema, a valid
line with that field set to values of every kind.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

_CHECK_EVENTS = Path("slow_lane/proxy/check_events")
_SAMPLES = Path("slow_lane/proxy/event_samples.txt")
_FUZZ_CORPUS = Path("slow_lane/proxy/event_line_corpus")
_KINDS = ("step", "episode", "lifecycle", "scalars")
_SCHEMAS: dict[str, dict[str, Any]] = {
    kind: json.loads(Path(f"schema/telemetry/{kind}.v1.schema.json").read_text("utf-8")) for kind in _KINDS
}
_FIELDS = frozenset(name for schema in _SCHEMAS.values() for name in schema["properties"])
_MAX_DEPTH = 64

# A valid line of each kind.
_VALID: dict[str, dict[str, Any]] = {
    "step": {"event_type": "step", "episode": 1, "step_index": 2, "reward": 3.5},
    "episode": {"type": "EPISODE", "episode_index": 1, "total_reward": 3.5, "steps": 2},
    "lifecycle": {"event": "run_started"},
    "scalars": {"type": "scalars", "step": 1, "scalars": {"loss": 0.5}},
}

# Values of every kind, as JSON, with the values on both sides of each field's limits.
_VALUES = (
    *("null", "true", "false", "0", "-0", "1", "2", "-1", "1.0", "-0.0", "1.5", "-1.5", "1e3", "1e-3", "1E+2"),
    *("4294967295", "4294967296", "4294967295.0", "9999999999", "10000000000", "9999999999.5"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("18446744073709551615", "18446744073709551616", "1.8446744073709550e19", "1.8446744073709552e19"),
    *("9999999999999999999", "10000000000000000000", "1e308", "1e309", "-1e309", "1e-400", "123456789012345678901234"),
    *("NaN", "Infinity", "-Infinity", '"NaN"', '"Infinity"', '"-Infinity"', '"nan"', '"+Infinity"'),
    *('""', '"x"', '"1"', '"1.0"', '"-1"', '" 1"', '"1\\n"', '"9999999999999999999"', '"10000000000000000000"'),
    *('"step"', '"Step"', '"STEP"', '"step\\n"', '"steps"', '"episode"', '"ePISODE"', '"init"', '"\\u0073tep"'),
    *('"\\u0000"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\x"', '"é"', '"a\tb"', "'x'", "x", ""),
    *("[]", "[1]", "[1,]", "[", "]", "{}", "{", '{"a":1}', '{"a":1,"a":2}', "{1:2}", "01", "1.", ".5", "+1", "0x1"),
    *('{"episode_index":3}', '{"episode_index":-3}', '{"episode_index":null}', '{"episode_index":"3"}'),
    *('{"episode_index":3,"episode_index":3}', '{"a":{"episode_index":-3}}', '{"episode_index":3.0}'),
    *('"{}"', '"{"', '"[]"', '"3"', '"null"', '" {} "', '"{} x"', '"{\\"episode_index\\":3}"'),
    *('"{\\"episode_index\\":-3}"', '"{\\"episode_index\\":3,\\"episode_index\\":3}"', '"{\\"a\\":NaN}"'),
    *('{"a":"NaN","b":-1e308}', '{"a":null}', '{"a":true}', '{"":1}', '{"a":[1]}', '{"a":"nan"}', '{"a":1,"b":"1"}'),
    *('{"' + "é" * 200 + '":1}', '{"' + "é" * 201 + '":1}', '"scalars"', '"sCALARS"'),
    *('"{\\"episode_index\\":null}"', '"{\\"a\\":1e309}"', "[" * 64 + "]" * 64, "[" * 65 + "]" * 65),
    *('{"a":' * 63 + "1" + "}" * 63, '{"a":' * 64 + "1" + "}" * 64, "1 ", " 1", "\t1\r", "\x0b1", "\u00a01", "1/**/"),
    *('"' + '{\\"a\\":' * n + "1" + "}" * n + '"' for n in (64, 65)),
)


class _Object(dict[str, Any]):
    """A JSON object that records its repeated names."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.repeated = {name for name in names if names.count(name) > 1}


def _integer(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"expected an integer within 64 bits, found {text}")
    return number


def _real(text: str) -> float:
    number = float(text)
    if abs(number) == float("inf"):
        raise ValueError(f"expected a number within a double, found {text}")
    return number


def _refuse(text: str) -> None:
    raise ValueError(f"expected JSON, found {text}")


def _depth(value: Any) -> int:
    """Returns the nesting depth of objects and arrays; empty ones do not count."""
    parts = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(map(_depth, parts)) if isinstance(parts, list) and parts else 0


def _parse(text: str) -> Any:
    """Parses JSON by the rules of event_line.h that a schema cannot express.

    Args:
      text: The JSON.

    Returns:
      The value.

    Raises:
      ValueError: The text breaks a rule.
    """
    value = json.loads(text, object_pairs_hook=_Object, parse_int=_integer, parse_float=_real, parse_constant=_refuse)
    json.dumps(value, ensure_ascii=False).encode()  # refuses a lone surrogate
    if _depth(value) > _MAX_DEPTH:
        raise ValueError(f"expected a depth of at most {_MAX_DEPTH}, found {_depth(value)}")
    if isinstance(value, _Object) and "episode_index" in value.repeated:
        raise ValueError("expected episode_index once")
    return value


def _content_schema(
    validator: Any, schema: Any, instance: Any, _parent: Any
) -> Iterator[jsonschema.exceptions.ValidationError]:
    """Validates a string's content, which the standard leaves to the schema's user."""
    if not validator.is_type(instance, "string"):
        return
    try:
        content = _parse(instance)
    except ValueError as error:
        yield jsonschema.exceptions.ValidationError(str(error))
        return
    yield from validator.descend(content, schema)


_Validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"contentSchema": _content_schema})
_VALIDATORS = {kind: _Validator(schema) for kind, schema in _SCHEMAS.items()}


def verdict(line: bytes) -> str:
    """Returns the kind of a line, by the schemas.

    Args:
      line: The line without its newline.

    Returns:
      One of _KINDS, "text" or "malformed".
    """
    if not line.lstrip(b" \t\r").startswith(b"{"):
        return "text"
    try:
        event = _parse(line.decode("utf-8"))
    except ValueError:
        return "malformed"
    if event.repeated & _FIELDS:
        return "malformed"
    kinds = [kind for kind, validator in _VALIDATORS.items() if validator.is_valid(event)]
    assert len(kinds) <= 1, f"expected one schema to fit, found {kinds}: {line!r}"
    kind = kinds[0] if kinds else "malformed"
    metadata = event.get("metadata"), event.get("metadata_json")
    if kind in ("step", "episode") and any("episode_index" in getattr(one, "repeated", ()) for one in metadata):
        return "malformed"
    return kind


def proxy_verdicts(lines: list[bytes]) -> list[tuple[str, str]]:
    """Returns the verdicts of the proxy's own code.

    Args:
      lines: The lines without newlines.

    Returns:
      The kind of each line, with the reason if it is malformed.
    """
    asked = subprocess.run([_CHECK_EVENTS], input=b"\n".join(lines) + b"\n", stdout=subprocess.PIPE, check=False)
    assert asked.returncode in (0, 1)
    answers = [answer.partition("\t") for answer in asked.stdout.decode("utf-8").splitlines()]
    assert len(answers) == len(lines)
    assert all(bool(reason) == (kind == "malformed") for kind, _, reason in answers)
    return [(kind, reason) for kind, _, reason in answers]


def _samples() -> list[tuple[str, bytes]]:
    """Returns the samples: the kind of each line, and the line."""
    samples = []
    for sample in _SAMPLES.read_bytes().split(b"\n")[:-1]:
        kind, tab, line = sample.partition(b"\t")
        assert tab, f"expected a kind, a tab and a line, found {sample!r}"
        samples.append((kind.decode(), line))
    return samples


def _with(base: dict[str, Any], name: str, value: str, *, instead: bool = True) -> bytes:
    """Returns a line with a field set, instead of the field's own value or after it."""
    fields = [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in base.items() if key != name or not instead]
    return "{{{}}}".format(", ".join([*fields, f"{json.dumps(name)}: {value}"])).encode()


def _differences(lines: list[bytes]) -> list[str]:
    """Returns a description of each line on which the verdicts differ."""
    verdicts = [(verdict(line), *answer) for line, answer in zip(lines, proxy_verdicts(lines), strict=True)]
    return [
        f"schemas: {expected}, proxy: {kind} {reason}: {line!r}"
        for line, (expected, kind, reason) in zip(lines, verdicts, strict=True)
        if expected != kind
    ]


@pytest.mark.parametrize("kind", _KINDS)
def test_the_schemas_and_their_examples_are_valid(kind: str) -> None:
    """Each example has the kind of its schema."""
    jsonschema.Draft202012Validator.check_schema(_SCHEMAS[kind])
    for example in _SCHEMAS[kind]["examples"]:
        assert verdict(json.dumps(example).encode()) == kind


def test_parser_and_schemas_agree_on_the_samples() -> None:
    """The samples name each line's kind."""
    samples = _samples()
    answers = proxy_verdicts([line for _, line in samples])
    wrong = [
        f"expected {kind}, schemas: {verdict(line)}, proxy: {answer}: {line!r}"
        for (kind, line), answer in zip(samples, answers, strict=True)
        if not kind == verdict(line) == answer[0]
    ]
    assert not wrong
    assert {kind for kind, _ in samples} == {*_KINDS, "text", "malformed"}


def test_parser_and_schemas_agree_on_the_fuzz_corpus() -> None:
    """A corpus file whose first byte is below 0x80 contains lines."""
    files = [file.read_bytes() for file in sorted(_FUZZ_CORPUS.iterdir())]
    lines = [line for file in files if file[0] < 0x80 for line in file.split(b"\n")]
    assert len(lines) > 10
    assert not _differences(lines)


@pytest.mark.parametrize("kind", _KINDS)
def test_parser_and_schemas_accept_the_same_values(kind: str) -> None:
    """Each field has each value, instead of its own value and as a second one."""
    lines = [
        _with(_VALID[kind], name, value, instead=instead)
        for name in sorted(_FIELDS | {"unknown"})
        for value in _VALUES
        for instead in (True, False)
    ]
    assert not _differences(lines)
    assert {kind, "malformed"} <= {found for found, _ in proxy_verdicts(lines)}


@pytest.mark.parametrize("kind", _KINDS)
def test_parser_and_schemas_require_the_same_fields(kind: str) -> None:
    """Each field of a valid line is left out once."""
    valid = _VALID[kind]
    lines = [json.dumps({name: valid[name] for name in valid if name != missing}).encode() for missing in valid]
    assert not _differences(lines)
    assert {verdict(line) for line in lines} == {"malformed"}
