"""tandem-view's server refuses foreign and hostile requests, and survives them."""

import base64
import contextlib
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tandem.testing.daemons import process_state
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import DEADLINE_SECS, VIEW, View, pss_kib, running_view, wait_for


@pytest.fixture
def view() -> Iterator[View]:
    """A running server behind a token."""
    with running_view() as program:
        yield program


def _exchange(connection: socket.socket, request: bytes) -> tuple[int, str, bytes]:
    """Sends a request, and returns the status, the headers and the body of the answer; 0: none."""
    connection.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            more = connection.recv(65536)
        except ConnectionResetError:
            more = b""
        if not more:
            return 0, "", data
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    headers = head.decode("latin-1")
    length = re.search(r"(?im)^content-length: (\d+)", headers)
    wanted = int(length[1]) if length and not request.startswith(b"HEAD") else 0
    while len(body) < wanted:
        more = connection.recv(65536)
        assert more, f"expected {wanted} bytes, found {len(body)}"
        body += more
    return int(headers.split()[1]), headers, body


def _get(
    view: View, path: str, *, method: str = "GET", host: str | None = None, **headers: str
) -> tuple[int, str, bytes]:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(view.address).netloc if host is None else host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with view.connect() as connection:
        return _exchange(connection, ("\r\n".join(lines) + "\r\n\r\n").encode())


def _cookie(view: View) -> str:
    parts = urlsplit(view.address)
    status, headers, _ = _get(view, f"/?{parts.query}")
    assert status == 200
    found = re.search(r"(?im)^set-cookie: ([^;]+)(.*)$", headers)
    assert found is not None, headers
    assert "HttpOnly" in found[2]
    assert "SameSite=Strict" in found[2]
    return found[1]


def _upgrade(view: View, **headers: str) -> int:
    key = base64.b64encode(os.urandom(16)).decode()
    fields = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": key}
    return _get(view, "/socket", **fields, **headers)[0]


def test_the_token_is_exchanged_for_a_cookie(view: View) -> None:
    """Without the cookie nothing of the page is readable."""
    assert _get(view, "/")[0] == 403
    assert _get(view, "/app.js")[0] == 403
    assert _get(view, "/?token=" + "0" * 32)[0] == 403
    assert _get(view, "/?token=")[0] == 403
    cookie = _cookie(view)
    status, headers, body = _get(view, "/", Cookie=cookie)
    assert status == 200
    assert body.startswith(b"<!doctype html>")
    assert "default-src 'self'" in headers
    assert "nosniff" in headers
    assert _get(view, "/app.js", Cookie=cookie)[0] == 200
    token = urlsplit(view.address).query.removeprefix("token=")
    assert token not in cookie
    assert _get(view, "/", Cookie=f"{cookie.split('=')[0]}={token}")[0] == 403


def test_refuses_foreign_hosts(view: View) -> None:
    """So a name of an attacker that resolves to this machine gets nothing, even with the cookie."""
    cookie = _cookie(view)
    foreign = ("evil.example", "evil.example:8900", "localhost.evil.example", "localhost@evil.example", "10.0.0.1", "")
    for host in (*foreign, "localhost:evil", "127.0.0.1.evil.example:80", "[::1", "::1", "localhost, evil.example"):
        assert _get(view, "/", host=host, Cookie=cookie)[0] == 403, host
        assert _get(view, "/?" + urlsplit(view.address).query, host=host)[0] == 403, host
    with view.connect() as connection:
        assert _exchange(connection, b"GET / HTTP/1.0\r\n\r\n")[0] == 403
    for host in ("localhost", "127.0.0.1:1", "[::1]:8900"):
        assert _get(view, "/", host=host, Cookie=cookie)[0] == 200, host


def test_refuses_websockets_of_foreign_pages(view: View) -> None:
    """A WebSocket needs the cookie and this page's origin."""
    cookie, own = _cookie(view), f"http://{urlsplit(view.address).netloc}"
    assert _upgrade(view, Cookie=cookie, Origin=own) == 101
    assert _upgrade(view, Origin=own) == 403
    assert _upgrade(view, Cookie=cookie) == 403
    for origin in ("null", "http://evil.example", own + "0", own.replace("http", "https"), "http://localhost:1"):
        assert _upgrade(view, Cookie=cookie, Origin=origin) == 403, origin
    assert _get(view, "/socket", Cookie=cookie, Origin=own)[0] == 426


def test_has_no_other_paths_and_methods(view: View) -> None:
    """Paths are compared with a table of the page's files."""
    cookie = _cookie(view)
    for path in ("/../main.cc", "/..%2f..%2fetc/passwd", "//etc/passwd", "/%2e%2e/", "/app.js/", "/.", "/index.html"):
        assert _get(view, path, Cookie=cookie)[0] == 404, path
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert _get(view, "/", method=method, Cookie=cookie)[0] == 405, method
    assert _get(view, "/", method="HEAD", Cookie=cookie)[0] == 200


def test_survives_requests_that_are_none(view: View) -> None:
    """Garbage, endless headers and bodies end their connection only."""
    for garbage in (
        b"\r\n" * 10,
        b"\x16\x03\x01\x02\x00\x01\x00" * 50,
        b"GET " + b"/" * 100_000,
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000,
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 100_000,
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n12345",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX : y\r\n",
        b"GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n",
        b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n",
        b"X" * 5000 + b" / HTTP/1.1\r\nHost: localhost\r\n",
        b"get / HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /\x00\x1b[2J HTTP/1.1\r\nHost: localhost\r\n",
    ):
        with view.connect() as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            assert _exchange(connection, garbage + b"\r\n\r\n")[0] in (0, 400, 403, 405, 413), garbage[:20]
    assert _get(view, "/", Cookie=_cookie(view))[0] == 200


def test_starts_a_daemon_with_control_unless_told_otherwise() -> None:
    """A daemon that runs already is used; it goes on without the server. The folder of recordings is made."""
    with tempfile.TemporaryDirectory(prefix="tandem-") as name:  # short: a socket's path has at most 107 characters
        record = Path(name) / "data/daemon.pid"
        flags = (f"--daemon_target=unix:{name}/d.sock", f"--data_dir={name}/data", f"--recordings={name}/new/folder")
        for control in ((), ("--control", "--nodaemon")):
            with running_view(*control, *flags) as program:
                assert _get(program, "/", Cookie=_cookie(program))[0] == 200
            assert not record.exists()
        assert (Path(name) / "new/folder").is_dir()
        pids = []
        for _ in range(2):
            with running_view("--control", *flags) as program:
                assert _get(program, "/", Cookie=_cookie(program))[0] == 200
            pids.append(int(record.read_text("ascii")))
        pid = pids[0]
        try:
            assert pids == [pid, pid] and process_state(pid) not in ("", "Z")
        finally:
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: process_state(pid) in ("", "Z"), "the daemon's end")


def test_a_folder_of_recordings_that_cannot_be_made_is_refused() -> None:
    """At the start, not when a user records."""
    command = [str(VIEW), "--control", "--nodaemon", "--recordings=/proc/none"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECS, check=False)
    assert refused.returncode == 1 and "--recordings: expected a folder" in refused.stderr, refused


def test_survives_thousands_of_half_open_connections(view: View) -> None:
    """The oldest make room for new ones, so that a browser still gets in; descriptors and memory stay bounded."""
    files = Path(f"/proc/{view.process.pid}/fd")
    held: list[socket.socket] = []
    # Of this process alone: the server runs already.
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    memory = pss_kib(view.process.pid)
    try:
        for _ in range(min(10_000, limits[1] - 100)):
            connection = view.connect()
            connection.send(b"GET / HT")
            held.append(connection)
        assert len(list(files.iterdir())) < 300
        assert pss_kib(view.process.pid) - memory < 16 * 1024
        assert _get(view, "/", Cookie=_cookie(view))[0] == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for connection in held:
            connection.close()
    wait_for(lambda: len(list(files.iterdir())) < 40, "closed connections")


def test_serves_a_socket_of_its_user_only(tmp_path: Path) -> None:
    """The file has mode 0600 and vanishes at the end; the ssh command is printed; no token is needed."""
    path = tmp_path / "view.sock"
    program = subprocess.Popen([VIEW, f"--socket={path}", "--daemon_target="], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        lines = [program.stdout.readline() for _ in range(4)]
        assert f"ssh -N -L 8900:{path} " in lines[1], lines
        assert lines[3].strip() == "http://localhost:8900/"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            request = b"GET / HTTP/1.1\r\nHost: localhost:8900\r\n\r\n"
            assert _exchange(connection, request)[0] == 200
            assert _exchange(connection, request.replace(b"localhost", b"evil.example"))[0] == 403
        second = subprocess.run([VIEW, f"--socket={path}"], capture_output=True, text=True, check=False)
        assert second.returncode == 1
        assert "another program listens" in second.stderr.replace("\n", " ")
    finally:
        program.terminate()
        assert program.wait(DEADLINE_SECS) == 0
    assert not path.exists()


def test_a_signal_after_the_address_ends_it_cleanly() -> None:
    """It is caught before the address is printed."""
    with running_view() as view:
        view.process.send_signal(signal.SIGINT)
        assert view.process.wait(DEADLINE_SECS) == 0


def test_goes_on_after_the_end_of_its_terminal() -> None:
    """With nohup: the signal stays ignored."""
    with running_view(before=("nohup",)) as view:
        view.process.send_signal(signal.SIGHUP)
        assert _get(view, "/", Cookie=_cookie(view))[0] == 200
        status = Path(f"/proc/{view.process.pid}/status").read_text("ascii")
        ignored = re.search(r"SigIgn:\s*(\w+)", status)
        assert ignored is not None and int(ignored[1], 16) & 1 << (signal.SIGHUP - 1)


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "8900", "nonsense:1", "127.1.2.3:0"])
def test_refuses_addresses_that_others_reach(listen: str) -> None:
    """The message has the next action."""
    done = subprocess.run([VIEW, f"--listen={listen}"], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert "expected" in done.stderr
    assert "found" in done.stderr
