"""Invalid arguments are refused, with the argument's name and the expected and found values."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    launch_trivial,
    nothing_left_behind,
    unique_name,
    watchdog,
)


@pytest.fixture(name="client")
def client_fixture() -> Iterator[tandem.SharedMemoryClient]:
    """Attaches a client to an engine of two environments."""
    with launch_trivial() as engine, tandem.SharedMemoryClient(engine.name) as client:
        yield client


@pytest.mark.parametrize(
    ("seed", "named"),
    [
        ("a", "seed: expected an integer in 0 .. 18446744073709551615, found 'a'"),
        ("ab", "seed: expected an integer in 0 .. 18446744073709551615, found 'ab'"),
        (b"a", "found b'a'"),
        (bytearray(2), r"found bytearray\(b'.x00.x00'\)"),
        (1.5, "seed: expected an integer in 0 .. 18446744073709551615, found 1.5"),
        (-1, "found -1"),
        (2**64, "found 18446744073709551616"),
        (2**64 - 1, "seed: expected at most 18446744073709551614, since environment 1 takes seed [+] 1"),
        ([1, "a"], r"seed\[1\]: expected an integer in .*, found 'a'"),
        ([1, 2, 3], "seed: expected 2 seeds, one for each environment that is reset, found 3"),
        ([], "expected 2 seeds, .* found 0"),
        (np.array([1.0, 2.0]), r"seed\[0\]: expected an integer"),
    ],
)
def test_an_invalid_seed_is_named(client: tandem.SharedMemoryClient, seed: object, named: str) -> None:
    """The message has the expected range, and the index of the invalid seed in a list."""
    with pytest.raises(tandem.InvalidArgument, match=named):
        client.reset(seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["a\0b", "a\ud800", 7])
def test_invalid_names_are_refused(bad: Any) -> None:
    """A NUL does not truncate the name, and a surrogate raises no UnicodeEncodeError."""
    for call in (
        lambda: tandem.SharedMemoryClient(bad),
        lambda: tandem.SharedMemoryClient(unique_name(), wait=bad),
        lambda: tandem.Attendant(bad),
        lambda: tandem.Attendant(unique_name(), label=bad),
        lambda: tandem.FastLaneReader.attach(bad),
        lambda: tandem.fastlane.FastLaneWriter.create(
            bad, tandem.fastlane.FastLaneConfig(width=2, height=2, channels=3)
        ),
    ):
        with pytest.raises(tandem.InvalidArgument, match="expected a str without NULs") as caught:
            call()
        assert str(caught.value).isprintable()


def test_a_link_in_place_of_a_region_is_refused_at_once() -> None:
    """The error comes before the time-out, which is infinite."""
    name = unique_name()
    path = Path("/dev/shm", name)
    path.symlink_to("/dev/null")
    try:
        with pytest.raises(tandem.LayoutMismatch, match="expected a file, found a link"):
            tandem.SharedMemoryClient(name, timeout=math.inf)
    finally:
        path.unlink()


def test_the_name_of_a_run_is_escaped() -> None:
    """The error message escapes the control characters of the run's name."""
    with pytest.raises(tandem.NotReady) as caught:
        tandem.FastLaneReader.attach("no\x1b[31m\u202e run")
    assert "no\\x1b[31m\\xe2\\x80\\xae run" in str(caught.value)
