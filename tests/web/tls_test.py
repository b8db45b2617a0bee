"""tandem-view for other machines: HTTPS only, for the names of its certificate."""

import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tests.web.page_fixture import DEADLINE_SECS, VIEW, Page, Trainer, View, running_view, wait_for
from tools.testing import pytest_main

_NAME = "gpu1.example"


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The flags of a new certificate, which its own key has signed."""
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = f"subjectAltName=DNS:{_NAME},DNS:localhost,IP:127.0.0.1"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "1", "-subj", "/CN=test", "-addext", names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return f"--tls_cert={cert}", f"--tls_key={key}"


@pytest.fixture
def view(flags: tuple[str, str]) -> Iterator[View]:
    """A server at all addresses of the machine."""
    with running_view("--allow_remote", *flags, listen="0.0.0.0:0") as program:
        yield program


def _client(flags: tuple[str, str]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=flags[0].split("=")[1])


def _connect(view: View) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(view.address).port or 0), timeout=DEADLINE_SECS)


def _get(view: View, client: ssl.SSLContext, path: str, host: str) -> str:
    """Returns the answer, status and headers and body."""
    with _connect(view) as plain, client.wrap_socket(plain, server_hostname=_NAME) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        answer = b""
        while more := connection.recv(65536):
            answer += more
    return answer.decode("latin-1")


def test_serves_the_names_of_its_certificate(view: View, flags: tuple[str, str]) -> None:
    """The printed address has the first of them; other hosts are refused; the cookie is for HTTPS only."""
    parts = urlsplit(view.address)
    assert (parts.scheme, parts.hostname) == ("https", _NAME)
    answer = _get(view, _client(flags), f"/?{parts.query}", parts.netloc)
    assert answer.startswith("HTTP/1.0 200"), answer
    assert re.search(r"(?im)^set-cookie: .*; Secure", answer)
    assert _get(view, _client(flags), f"/?{parts.query}", "evil.example").startswith("HTTP/1.0 403")
    assert _get(view, _client(flags), "/", parts.netloc).startswith("HTTP/1.0 403")


def test_answers_nothing_without_encryption(view: View, flags: tuple[str, str]) -> None:
    """Neither HTTP nor old TLS get a byte of the page; then a browser gets in."""
    with _connect(view) as connection:
        connection.sendall(f"GET /?{urlsplit(view.address).query} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        received = b""
        try:
            while more := connection.recv(65536):
                received += more
        except ConnectionResetError:
            pass
        assert b"HTTP/1" not in received
    old = _client(flags)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with _connect(view) as plain, pytest.raises((ssl.SSLError, ConnectionResetError)):
        old.wrap_socket(plain, server_hostname=_NAME)
    assert _get(view, _client(flags), "/", _NAME).startswith("HTTP/1.0 403")


def test_survives_thousands_of_handshakes_that_do_not_end(view: View, flags: tuple[str, str]) -> None:
    """The oldest make room; descriptors stay bounded; the rest end after ten seconds."""
    files = Path(f"/proc/{view.process.pid}/fd")
    held: list[socket.socket] = []
    try:
        for _ in range(3000):
            held.append(_connect(view))
            held[-1].send(b"\x16\x03\x01\x02\x00")  # the beginning of a hello
            if len(held) > 300:  # this process has a limit of descriptors, too
                held.pop(0).close()
        assert len(list(files.iterdir())) < 900
        assert _get(view, _client(flags), "/", _NAME).startswith("HTTP/1.0 403")
        wait_for(lambda: len(list(files.iterdir())) < 40, "closed connections")
    finally:
        for connection in held:
            connection.close()


def test_a_browser_shows_a_run(flags: tuple[str, str]) -> None:
    """Pictures and actions pass, as without encryption."""
    trainer = Trainer(unique_name())
    page = Page(accepts_any_certificate=True)
    try:
        with running_view("--control", *flags) as view:
            assert view.address.startswith("https://127.0.0.1:")
            page.open(view.address)
            page.open_run(trainer.name)
            page.click("article .open")
            wait_for(lambda: page.text("article .badge") == "LIVE", "a live image")
            pixels, step = page.pixels(), page.step()
            wait_for(lambda: page.pixels() != pixels and page.step() > step, "other pixels of a later step")
            box = "article.full input[name=camera]"
            wait_for(lambda: page.all(box)[0].is_selected(), "the camera's switch")
            page.click(box)
            wait_for(lambda: page.all(box)[0].is_enabled() and not page.all(box)[0].is_selected(), "a switch")
            assert page.errors() == []
            assert "camera off: done" in view.end()
    finally:
        page.close()
        trainer.close()


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        ("0.0.0.0:0", "this machine alone reaches"),
        ("127.1.2.3:0", "found one for gpu1.example"),
    ],
)
def test_refuses_other_addresses(flags: tuple[str, str], listen: str, expected: str) -> None:
    """Without --allow_remote, and with a certificate of other names."""
    program = subprocess.run([VIEW, f"--listen={listen}", *flags], capture_output=True, text=True, check=False)
    assert program.returncode == 1
    assert expected in program.stderr


if __name__ == "__main__":
    pytest_main.run(__file__)
