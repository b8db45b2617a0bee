"""The page behind a line of 1 Mbit/s: a network namespace, whose interface the kernel limits (tc tbf).

The server is in the namespace. A relay delays both directions by 100 ms, since not every kernel has netem. Needs root.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import running_view
from tests.web.picture_ages import SECS, Writer, ages_of, page_at, print_ages
from tests.web.slow_line import SlowLine
from tests.web.tls_client import certificate_flags
from tools.testing import pytest_main

_LINE = "rate 1mbit burst 5kb latency 300ms"
# Of a block for documentation (RFC 5737).
_HERE, _THERE = "203.0.113.213", "203.0.113.214"


# Debian has ip and tc where the PATH of tests does not look.
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True, timeout=60, env={**os.environ, "PATH": _PATH})


@contextlib.contextmanager
def _namespace() -> Iterator[int]:
    """Makes a network namespace at the other end of a slow line; yields the pid of a process in it."""
    with subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 1000"], stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            holder.stdout.readline()  # it is in the namespace
            # The name of an interface has at most 15 characters.
            here, there = f"tandem{os.getpid() % 10**8}", "line"
            inside = f"nsenter --net=/proc/{holder.pid}/ns/net"
            _run(f"ip link add {here} type veth peer name {there} netns {holder.pid}")
            _run(f"ip address add {_HERE}/30 dev {here}")
            _run(f"{inside} ip address add {_THERE}/30 dev {there}")
            for where, name in (("", here), (inside, there)):
                # Without IPv6, whose address comes some seconds later: a browser then fails what it loads
                # (ERR_NETWORK_CHANGED).
                _run(f"{where} ip link set {name} addrgenmode none up")
                _run(f"{where} tc qdisc add dev {name} root tbf {_LINE}")
            yield holder.pid
        finally:
            holder.kill()  # the interfaces end with the namespace


@pytest.fixture
def writer() -> Iterator[Writer]:
    """A writer of 640x480 at 30/s."""
    publishing = Writer()
    yield publishing
    publishing.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network interfaces")
@pytest.mark.skipif(
    not all(shutil.which(tool, path=_PATH) for tool in ("ip", "tc")), reason="needs Debian's package iproute2"
)
def test_behind_a_shaped_line_no_picture_is_older_than_a_second(
    writer: Writer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As behind a relay that limits the rate itself; the queue of the line holds more."""
    remote = ("--allow_remote", *certificate_flags(tmp_path))
    with contextlib.ExitStack() as open_now:
        pid = open_now.enter_context(_namespace())
        before = ("nsenter", f"--net=/proc/{pid}/ns/net")
        view = open_now.enter_context(running_view(*remote, listen="0.0.0.0:0", before=before))
        parts = urlsplit(view.address)
        line = SlowLine(parts.port or 0, delay_secs=0.1, host=_THERE)
        port = open_now.enter_context(line.run())
        address = f"https://127.0.0.1:{port}/?{parts.query}"
        page = open_now.enter_context(page_at(address, writer.run, accepts_any_certificate=True))
        ages = ages_of(page, writer)
        page.save("shaped-line")
        assert page.errors() == []
    print_ages(capsys, "1 Mbit/s by tc tbf, 100 ms", ages)
    assert len(ages) > SECS
    assert max(ages) < 1


if __name__ == "__main__":
    pytest_main.run(__file__)
