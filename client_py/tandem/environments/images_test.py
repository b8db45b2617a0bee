"""Separation of a frame into images; the metadata comes from the engine process and may be any bytes."""

import json
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.environments.images import separate

SOUND: dict[str, Any] = {"step": 1, "envs": [0, 1, 2], "rows": 2, "columns": 2}


def metadata(**others: Any) -> bytes:
    """Returns the metadata of a frame of three environments, with the given entries changed."""
    return json.dumps({**SOUND, **others}).encode()


def nested(depth: int) -> str:
    """Returns a JSON list nested to the given depth."""
    return "[" * depth + "]" * depth


def test_each_environment_gets_its_tile() -> None:
    """The images are cut from the grid row by row."""
    frame = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    first, second, third = separate(frame, metadata(), 3)
    assert np.array_equal(first, frame[:2, :3])
    assert np.array_equal(second, frame[:2, 3:])
    assert np.array_equal(third, frame[2:, :3])


@pytest.mark.parametrize(
    "frame_metadata",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        metadata(rows="two"),
        metadata(rows=None),
        metadata(rows=float("inf")),
        metadata(columns=float("nan")),
        metadata(rows=0),
        metadata(columns=-2),
        metadata(rows=1),
        metadata(rows=3),
        metadata(rows=10**1000),
        metadata(columns=7),
        metadata(envs=None),
        metadata(envs=[0, 1]),
        metadata(envs=[0, 2, 1]),
        nested(100_000).encode(),
        *(metadata(envs="?").replace(b'"?"', nested(depth).encode()) for depth in range(700, 1000, 7)),
        metadata(error_text="?").replace(b'"?"', nested(100_000).encode()),
    ],
)
def test_inconsistent_header_is_a_mismatch(frame_metadata: bytes) -> None:
    """Metadata that is not valid JSON, or does not fit the frame, is refused, also with the deepest nesting."""
    with pytest.raises(tandem.LayoutMismatch, match="frame"):
        separate(np.zeros((4, 6, 3), np.uint8), frame_metadata, 3)


@pytest.mark.parametrize(
    ("error", "kind"),
    [("Unsupported", tandem.Unsupported), ("EngineFailed", tandem.EngineFailed), ("json", tandem.EngineFailed)],
)
def test_an_engine_without_renderer_gives_the_reason(error: str, kind: type[tandem.TandemError]) -> None:
    """The error has the class that the metadata names; an unknown name becomes EngineFailed."""
    with pytest.raises(kind, match="no EGL"):
        separate(np.zeros((4, 6, 3), np.uint8), metadata(error=error, error_text="no EGL"), 3)
