"""What an engine says of its frames, taken apart: it is a peer's text, and may be anything."""

import json
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.environments.images import separate
from tools.testing import pytest_main

SOUND: dict[str, Any] = {"step": 1, "envs": [0, 1, 2], "rows": 2, "columns": 2}


def metadata(**others: Any) -> bytes:
    """That of three environments, with some entries changed."""
    return json.dumps({**SOUND, **others}).encode()


def nested(depth: int) -> str:
    """A list in a list in a list."""
    return "[" * depth + "]" * depth


def test_each_environment_gets_its_tile() -> None:
    """Row by row."""
    frame = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    first, second, third = separate(frame, metadata(), 3)
    assert np.array_equal(first, frame[:2, :3])
    assert np.array_equal(second, frame[:2, 3:])
    assert np.array_equal(third, frame[2:, :3])


@pytest.mark.parametrize(
    "told",
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
def test_inconsistent_header_is_a_mismatch(told: bytes) -> None:
    """Also at the edge of what can be nested."""
    with pytest.raises(tandem.LayoutMismatch, match="frame"):
        separate(np.zeros((4, 6, 3), np.uint8), told, 3)


@pytest.mark.parametrize(
    ("error", "kind"),
    [("Unsupported", tandem.Unsupported), ("EngineFailed", tandem.EngineFailed), ("json", tandem.EngineFailed)],
)
def test_an_engine_without_renderer_gives_the_reason(error: str, kind: type[tandem.TandemError]) -> None:
    """By the error's name; one that is not known is a failure."""
    with pytest.raises(kind, match="no EGL"):
        separate(np.zeros((4, 6, 3), np.uint8), metadata(error=error, error_text="no EGL"), 3)


if __name__ == "__main__":
    pytest_main.run(__file__)
