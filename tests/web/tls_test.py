"""tandem-view for other machines: HTTPS only, for the names of its certificate."""

import re
import ssl
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tandem.testing.certificates import NAME
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import VIEW, View, running_view
from tests.web.tls_client import certificate_flags, get, trusting


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The flags of a new certificate, which its own key has signed."""
    return certificate_flags(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def view(flags: tuple[str, str]) -> Iterator[View]:
    """A server at all addresses of the machine."""
    with running_view("--allow_remote", *flags, listen="0.0.0.0:0") as program:
        yield program


def test_serves_the_names_of_its_certificate(view: View, flags: tuple[str, str]) -> None:
    """The printed address has the first of them; other hosts are refused; the cookie is for HTTPS only."""
    parts = urlsplit(view.address)
    assert (parts.scheme, parts.hostname) == ("https", NAME)
    answer = get(view, trusting(flags), f"/?{parts.query}", parts.netloc)
    assert answer.startswith("HTTP/1.0 200"), answer
    assert re.search(r"(?im)^set-cookie: .*; Secure", answer)
    assert get(view, trusting(flags), f"/?{parts.query}", "evil.example").startswith("HTTP/1.0 403")
    assert get(view, trusting(flags), "/", parts.netloc).startswith("HTTP/1.0 403")


def test_answers_nothing_without_encryption(view: View, flags: tuple[str, str]) -> None:
    """Neither HTTP nor old TLS get a byte of the page; then a browser gets in."""
    with view.connect() as connection:
        connection.sendall(f"GET /?{urlsplit(view.address).query} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        received = b""
        try:
            while more := connection.recv(65536):
                received += more
        except ConnectionResetError:
            pass
        assert b"HTTP/1" not in received
    old = trusting(flags)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with view.connect() as plain, pytest.raises((ssl.SSLError, ConnectionResetError)):
        old.wrap_socket(plain, server_hostname=NAME)
    assert get(view, trusting(flags), "/", NAME).startswith("HTTP/1.0 403")


@pytest.mark.parametrize(
    ("listen", "expected"), [("0.0.0.0:0", "this machine alone reaches"), ("127.1.2.3:0", "found one for gpu1.example")]
)
def test_refuses_other_addresses(flags: tuple[str, str], listen: str, expected: str) -> None:
    """Without --allow_remote, and with a certificate of other names."""
    program = subprocess.run([VIEW, f"--listen={listen}", *flags], capture_output=True, text=True, check=False)
    assert program.returncode == 1
    assert expected in program.stderr
