"""Certificates of TLS for tests."""

import subprocess
from pathlib import Path

# The first name of each certificate; others are localhost and 127.0.0.1.
NAME = "gpu1.example"


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Makes a key, and a certificate that it has signed, which is its own authority; returns certificate and key."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key.pem"
    names = f"subjectAltName=DNS:{NAME},DNS:localhost,IP:127.0.0.1"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "1", "-subj", f"/CN={name}", "-addext", names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key
