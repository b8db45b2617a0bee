"""A certificate for tandem-view, and requests by HTTPS without a browser."""

import ssl
import subprocess
from pathlib import Path

from tests.web.page_fixture import View

# The first name of the certificate; others are localhost and 127.0.0.1.
NAME = "gpu1.example"


def make_certificate(folder: Path) -> tuple[str, str]:
    """Makes a certificate that its own key has signed; returns tandem-view's flags for it."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = f"subjectAltName=DNS:{NAME},DNS:localhost,IP:127.0.0.1"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "1", "-subj", "/CN=test", "-addext", names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
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
