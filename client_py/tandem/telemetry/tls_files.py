"""`TlsFiles`: the files by which a client connects to a daemon on another machine."""

import base64
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem.arguments import shown
from tandem.errors import InvalidArgument
from tandem.telemetry.wire import load

# Of the fields of TlsFiles, in their order.
TLS_VARIABLES = ("TANDEM_TLS_CA", "TANDEM_TLS_CERT", "TANDEM_TLS_KEY")


_BEGIN = "-----BEGIN CERTIFICATE-----"
# The two times of X.509's Validity, as DER: UTCTime until 2049, then GeneralizedTime.
_VALIDITY = re.compile(rb"\x30[\x1e\x20\x22]" + 2 * rb"(?:\x17\x0d|\x18\x0f)((?:\d{2}){6,7}Z)")


def _time_of(text: bytes) -> datetime:
    digits = text.decode("ascii").removesuffix("Z")
    century = "" if len(digits) == 14 else "19" if digits >= "5" else "20"
    return datetime.strptime(century + digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files for mutual TLS: the client knows the daemon, and the daemon knows the client.

    Attributes:
      authorities: The signers of the daemon's certificate; one that has signed itself is its own authority.
      certificate: The client's, which an authority of the daemon's --tls_client_ca has signed.
      key: Its key, without passphrase.
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

        Raises:
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
            pem = Path(self.certificate).read_text("ascii", errors="replace")
            der = base64.b64decode(pem.partition(_BEGIN)[2].partition("-----")[0])
            begin, end = (_time_of(time) for time in _VALIDITY.search(der).groups())  # type: ignore[union-attr]
        except (OSError, ValueError, AttributeError):
            dates = ""
        else:
            now = datetime.now(UTC)
            dates = (
                f", which expired on {end:%Y-%m-%d %H:%M} UTC"
                if now > end
                else f", which is not valid before {begin:%Y-%m-%d %H:%M} UTC"
                if now < begin
                else f", which is valid until {end:%Y-%m-%d %H:%M} UTC"
            )
        return (
            f"If one is there, it may have refused this client's certificate{dates}; one of the daemon's "
            f"--tls_client_ca must have signed it: {os.fspath(self.certificate)}"
        )

    def credentials(self) -> Any:
        """Returns grpc's credentials of a channel.

        Raises:
          InvalidArgument: A file cannot be read, or is no PEM file.
        """
        texts = []
        for path in (self.authorities, self.key, self.certificate):
            try:
                text = Path(path).read_bytes()
            except (OSError, ValueError) as error:
                raise InvalidArgument(f"tls: expected a file that can be read, found: {error}") from error
            if b"-----BEGIN" not in text:  # grpc would fail at each call, without a reason
                raise InvalidArgument(f"tls: expected a PEM file, found another: {path}")
            texts.append(text)
        return load().grpc.ssl_channel_credentials(*texts)
