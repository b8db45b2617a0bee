"""How old a picture is when the page has drawn it: on this machine, idle and busy, and behind a slow line.

Run it by hand on an idle machine: bazel test //tests/web:latency_test --test_output=all --test_arg=-s
"""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest

from tandem.testing.engines import busy_processes
from tests.web.page_fixture import running_view
from tests.web.picture_ages import SECS, Writer, ages_of, page_at, print_ages
from tests.web.slow_line import SlowLine
from tools.testing import pytest_main


@pytest.fixture
def writer() -> Iterator[Writer]:
    """A writer of 640x480 at 30/s."""
    publishing = Writer()
    yield publishing
    publishing.close()


def test_on_this_machine_a_picture_is_young(writer: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the pictures are drawn within 60 ms of their publication."""
    with running_view() as view, page_at(view.address, writer.run) as page:
        ages = ages_of(page, writer)
    print_ages(capsys, "this machine", ages)
    assert np.median(ages) < 0.06


def test_beside_busy_processors_the_page_keeps_ten_pictures(writer: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    """Server, browser and writer share the processors with programs that use all of them."""
    with running_view() as view, page_at(view.address, writer.run) as page, busy_processes(os.cpu_count() or 1):
        ages = ages_of(page, writer)
    print_ages(capsys, "all processors busy", ages)
    assert len(ages) > 10 * SECS


def test_behind_a_slow_line_no_picture_is_older_than_a_second(
    writer: Writer, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 Mbit/s, and 100 ms in each direction: pictures become small and fewer."""
    with running_view() as view:
        parts = urlsplit(view.address)
        line = SlowLine(parts.port or 0, delay_secs=0.1, bytes_per_second=125_000)
        with line.run() as port, page_at(f"http://127.0.0.1:{port}/?{parts.query}", writer.run) as page:
            ages = ages_of(page, writer)
            page.save("slow-line")
    print_ages(capsys, "1 Mbit/s, 100 ms", ages)
    assert len(ages) > SECS
    assert max(ages) < 1


if __name__ == "__main__":
    pytest_main.run(__file__)
