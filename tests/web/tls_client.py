"""A certificate for tandem-view, and requests by HTTPS without a browser."""

import ssl
from pathlib import Path

from tandem.testing.certificates import NAME, make_certificate
from tests.web.page_fixture import View


def certificate_flags(folder: Path) -> tuple[str, str]:
    """Makes a certificate; returns tandem-view's flags for it."""
    cert, key = make_certificate(folder, "cert")
    return f"--tls_cert={cert}", f"--tls_key={key}"


def trusting(flags: tuple[str, str]) -> ssl.SSLContext:
    """Returns the settings of a client that trusts the certificate of these flags."""
    return ssl.create_default_context(cafile=flags[0].split("=")[1])


def get(view: View, client: ssl.SSLContext, path: str, host: str) -> str:
    """Returns the answer, status and headers and body."""
    with view.connect() as plain, client.wrap_socket(plain, server_hostname=NAME) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        answer = b""
        while more := connection.recv(65536):
            answer += more
    return answer.decode("latin-1")
