"""Events as CSV: quoting, numbers, times and columns."""

import math
from typing import Any

import pytest

from tandem.telemetry.wire import load
from tandemctl.export import COLUMNS, ROWS, further_columns, rows_of, text


def _batch(stream: str, **fields: Any) -> Any:
    batch = load().methods["StreamEvents"].response()
    getattr(batch, stream).add(**fields)
    return batch


def _row(stream: str, **fields: Any) -> str:
    if stream == "scalars":
        fields = {"names": ["loss"], "values": [0], **fields}
    (row,) = ROWS[stream](getattr(_batch(stream, **fields), stream))
    assert row.endswith("\n")
    return row[:-1]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("", ""),
        ("plain text; 'x'", "plain text; 'x'"),
        ("a,b", '"a,b"'),
        ('say "hi"', '"say ""hi"""'),
        ('"', '""""'),
        ("two\nlines", '"two\nlines"'),
        ("a\rb", '"a\rb"'),
    ],
)
def test_only_texts_with_special_characters_are_quoted(value: str, field: str) -> None:
    """Applies to each text field of each row."""
    assert text(value) == field
    for stream, name in (("steps", "worker_id"), ("episodes", "metadata_json"), ("lifecycle", "event")):
        assert field in _row(stream, **{name: value})
    texts = [*("worker_id", "agent_id", "action_json", "observation_json", "policy_label", "backend", "frame_ref")]
    texts += ["render_hint_json", "render_payload_json"]
    assert _row("steps", **dict.fromkeys(texts, value)).count(field) >= len(texts)


@pytest.mark.parametrize("number", [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, 123456789.125, math.inf])
def test_numbers_read_back_the_same(number: float) -> None:
    """Numbers have up to 17 digits; infinity and NaN are words."""
    field = _row("steps", reward=number).split(",")[4]
    assert float(field) == number and math.copysign(1, float(field)) == math.copysign(1, number)
    assert _row("episodes", total_reward=number).split(",")[3] == field
    assert _row("steps", reward=math.nan).split(",")[4] == "nan"


@pytest.mark.parametrize(
    ("seconds", "nanos", "time"),
    [
        (1_700_000_000, 0, "2023-11-14T22:13:20Z"),
        (1_700_000_000, 5_000_000, "2023-11-14T22:13:20.005Z"),
        (1_700_000_000, 123_456_789, "2023-11-14T22:13:20.123456789Z"),
        (0, 0, "1970-01-01T00:00:00Z"),
        (-1, 999_999_999, "1969-12-31T23:59:59.999999999Z"),
    ],
)
def test_times_have_nanoseconds(seconds: int, nanos: int, time: str) -> None:
    """Trailing zeros are omitted; an absent time is an empty field, and 1970-01-01 is a time."""
    for stream in COLUMNS:
        fields = _row(stream, timestamp={"seconds": seconds, "nanos": nanos}).split(",")
        assert fields[COLUMNS[stream].split(",").index("timestamp")] == time
        assert _row(stream).split(",")[COLUMNS[stream].split(",").index("timestamp")] == ""


def test_an_event_is_a_line_with_a_field_for_each_column() -> None:
    """The fields are in the order of the columns."""
    timestamp = {"seconds": 1_700_000_000, "nanos": 5_000_000}
    step = {"seq_id": 7, "worker_id": "w", "episode_index": 1, "step_index": 2, "reward": 0.5, "truncated": True}
    assert _row("steps", **step, timestamp=timestamp, action_json="[1, 2]") == (
        '7,w,1,2,0.5,false,true,2023-11-14T22:13:20.005Z,,"[1, 2]",,,,0,,,,0'
    )
    more = {"policy_label": "p", "backend": "b", "episode_seed": 2**64 - 1, "frame_ref": "f", "payload_version": 3}
    hints = {"render_hint_json": "h", "render_payload_json": "r", "observation_json": "o", "terminated": True}
    assert _row("steps", agent_id="a", **more, **hints) == f"0,,0,0,0,true,false,,a,,o,p,b,{2**64 - 1},f,h,r,3"
    assert _row("episodes", seq_id=3, total_reward=-1, steps=9, metadata_json='{"a": 1}') == (
        '3,,0,-1,9,false,false,,,"{""a"": 1}"'
    )
    assert _row("lifecycle", seq_id=1, event="run_started") == "1,,run_started,,"
    numbers = _batch("scalars", seq_id=2, step=9, names=["a,b", "kl"], values=[0.1, math.nan]).scalars
    assert rows_of("scalars", numbers) == ['2,,9,"a,b",0.10000000000000001,\n', "2,,9,kl,nan,\n"]
    for stream, columns in COLUMNS.items():
        assert _row(stream).count(",") == len(columns.split(",")) - 1
        assert further_columns(stream) == ()


def test_fields_without_a_column_of_their_own_follow_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new field of a message needs no change here."""
    monkeypatch.setitem(COLUMNS, "lifecycle", COLUMNS["lifecycle"].replace(",payload_json", ""))
    further_columns.cache_clear()
    assert further_columns("lifecycle") == ("payload_json",)
    assert rows_of("lifecycle", _batch("lifecycle", payload_json="a,b").lifecycle)[0].endswith(',"a,b"\n')
    further_columns.cache_clear()
