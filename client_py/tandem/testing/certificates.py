"""Certificates of TLS for tests."""

import subprocess
from pathlib import Path

# The first name of each certificate; others are localhost and 127.0.0.1.
NAME = "gpu1.example"


def make_certificate(folder: Path, name: str, *addresses: str) -> tuple[Path, Path]:
    """Makes a key, and a certificate that it has signed, which is its own authority; returns certificate and key.

    Args:
      folder: Where the files are made.
      name: Of the files, NAME.pem and NAME.key.pem.
      addresses: More IP addresses of the certificate.
    """
    cert, key = folder / f"{name}.pem", folder / f"{name}.key.pem"
    names = ",IP:".join(dict.fromkeys([f"subjectAltName=DNS:{NAME},DNS:localhost", "127.0.0.1", *addresses]))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", "1", "-subj", f"/CN={name}", "-addext", names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def expire(cert: Path, key: Path) -> None:
    """Signs a certificate again, so that its time is over since yesterday."""
    _sign(cert, "x509", "-in", str(cert), "-signkey", str(key), "-days", "-1")


def postpone(cert: Path, key: Path) -> None:
    """Signs a certificate again, so that its time begins in 2049; without other names."""
    folder = cert.parent
    (folder / "index").write_text("", "ascii")
    (folder / "ca.conf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index\nnew_certs_dir={folder}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n",
        "utf-8",
    )
    words = ["-batch", "-config", f"{folder}/ca.conf", "-ss_cert", str(cert), "-cert", str(cert), "-keyfile", str(key)]
    _sign(cert, "ca", *words, "-startdate", "490101000000Z", "-enddate", "491231000000Z")


def _sign(cert: Path, *words: str) -> None:
    new = cert.with_suffix(".new")
    subprocess.run(["openssl", *words, "-out", str(new)], check=True, capture_output=True)
    new.replace(cert)
