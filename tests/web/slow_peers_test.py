"""tandem-view ends connections that send too little for ten seconds."""

import contextlib
import socket
import time
from pathlib import Path

from tandem.testing.certificates import NAME
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import running_view, wait_for
from tests.web.socket_client import cookie_of
from tests.web.tls_client import certificate_flags, get, trusting


def test_ends_a_connection_that_sends_no_request() -> None:
    """A slow client has ten seconds."""
    with running_view() as view, view.connect() as connection:
        connection.send(b"GET / HTTP/1.1\r\n")
        begin = time.monotonic()
        assert connection.recv(100) == b""
        assert time.monotonic() - begin > 5


def test_ends_a_connection_that_sends_its_request_byte_by_byte() -> None:
    """The ten seconds are for the whole request; each byte does not extend them."""
    with running_view() as view, view.connect() as connection:
        connection.settimeout(0.25)
        connection.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        begin = time.monotonic()

        def has_ended() -> bool:
            try:
                connection.send(b"y")
                return connection.recv(100) == b""
            except TimeoutError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                return True

        wait_for(has_ended, "the end of the connection")
        assert time.monotonic() - begin > 5


def test_ends_a_connection_that_does_not_read_its_answers() -> None:
    """A client sends requests for the page and never reads."""
    with running_view() as view:
        cookie = cookie_of(view.address)
        files = Path(f"/proc/{view.process.pid}/fd")
        few = len(list(files.iterdir()))
        with view.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(0.25)
            request = f"GET /app.js HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n".encode()
            with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
                for _ in range(100_000):
                    connection.send(request)
            wait_for(lambda: len(list(files.iterdir())) > few, "an open connection")
            wait_for(lambda: len(list(files.iterdir())) <= few, "a closed connection")


def test_survives_thousands_of_handshakes_that_do_not_end(tmp_path: Path) -> None:
    """The oldest make room; descriptors stay bounded; the rest end after ten seconds."""
    flags = certificate_flags(tmp_path)
    held: list[socket.socket] = []
    with running_view("--allow_remote", *flags, listen="0.0.0.0:0") as view:
        files = Path(f"/proc/{view.process.pid}/fd")
        try:
            for _ in range(3000):
                held.append(view.connect())
                held[-1].send(b"\x16\x03\x01\x02\x00")  # the beginning of a hello
                if len(held) > 300:  # this process has a limit of descriptors, too
                    held.pop(0).close()
            assert len(list(files.iterdir())) < 900
            assert get(view, trusting(flags), "/", NAME).startswith("HTTP/1.0 403")
            wait_for(lambda: len(list(files.iterdir())) < 40, "closed connections")
        finally:
            for connection in held:
                connection.close()
