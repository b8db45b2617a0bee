"""`TlsFiles`: the files by which a client connects to a daemon on another machine."""

import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem.arguments import shown
from tandem.errors import InvalidArgument
from tandem.telemetry.wire import load

# Of the fields of TlsFiles, in their order.
TLS_VARIABLES = ("TANDEM_TLS_CA", "TANDEM_TLS_CERT", "TANDEM_TLS_KEY")


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files for mutual TLS: the client knows the daemon, and the daemon knows the client.

    `authorities` are the signers of the daemon's certificate; one that has signed itself is its own authority. An
    authority of the daemon's --tls_client_ca has signed `certificate`, whose `key` has no passphrase.
    """

    authorities: str | os.PathLike[str]
    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]

    def __post_init__(self) -> None:
        """Checks the types; InvalidArgument: no path."""
        for name in ("authorities", "certificate", "key"):
            value = getattr(self, name)
            if not isinstance(value, str | os.PathLike) or not os.fspath(value):
                raise InvalidArgument(f"TlsFiles.{name}: expected a path, found {shown(value)}")

    @classmethod
    def from_environment(cls) -> "TlsFiles | None":
        """Returns the files of TANDEM_TLS_CA, TANDEM_TLS_CERT and TANDEM_TLS_KEY; None: none of the three is set.

        InvalidArgument: One or two of them are set.
        """
        values = [os.environ.get(name) or "" for name in TLS_VARIABLES]
        if not any(values):
            return None
        if missing := [name for name, value in zip(TLS_VARIABLES, values, strict=True) if not value]:
            raise InvalidArgument(f"tls: expected the variables {', '.join(TLS_VARIABLES)}, found no {missing[0]}")
        return cls(authorities=values[0], certificate=values[1], key=values[2])

    def advice(self) -> str:
        """Returns a text for a daemon that does not answer: it may have refused the certificate, which gRPC hides."""
        try:
            # What ssl.SSLSocket.getpeercert returns, of a file.
            fields = ssl._ssl._test_decode_cert(os.fspath(self.certificate))  # type: ignore[attr-defined]
            begin, end = (
                datetime.fromtimestamp(ssl.cert_time_to_seconds(fields[key]), UTC) for key in ("notBefore", "notAfter")
            )
        except (OSError, ValueError):
            dates = ""
        else:
            now = datetime.now(UTC)
            what, time = ("expired on", end) if now > end else ("is valid until", end)
            if now < begin:
                what, time = "is not valid before", begin
            dates = f", which {what} {time:%Y-%m-%d %H:%M} UTC"
        return (
            f"If one is there, it may have refused this client's certificate{dates}; one of the daemon's "
            f"--tls_client_ca must have signed it: {os.fspath(self.certificate)}"
        )

    def credentials(self) -> Any:
        """Returns grpc's credentials of a channel; InvalidArgument: a file cannot be read, or is no PEM file."""
        texts = []
        for path in (self.authorities, self.key, self.certificate):
            try:
                text = Path(path).read_bytes()
            except (OSError, ValueError) as error:
                raise InvalidArgument.of("tls", f"expected a file that can be read, found: {error}") from error
            if b"-----BEGIN" not in text:  # grpc would fail at each call, without a reason
                raise InvalidArgument.of("tls", f"expected a PEM file, found another: {path}")
            texts.append(text)
        return load().grpc.ssl_channel_credentials(*texts)
