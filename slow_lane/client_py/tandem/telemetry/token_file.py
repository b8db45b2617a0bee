"""Reads the token for a daemon that cannot learn the client's user from the kernel."""

import os
import re
import stat
from pathlib import Path

from tandem.arguments import shown
from tandem.errors import AccessDenied, InvalidArgument, TandemError
from tandem.telemetry.wire import load

TOKEN_VARIABLE = "TANDEM_TOKEN_FILE"

_MOST_FILE_BYTES = 4096
_TOKEN = re.compile(rb"[!-~]+")


def read_token(token_file: str | os.PathLike[str] | None, name: str = "token_file") -> str | None:
    """Returns a token file's content without the white space around it; None: no file is named.

    The path None is that of the environment variable TANDEM_TOKEN_FILE, if it is set; error messages call it `name`.

    Raises:
      AccessDenied: The file belongs to another user, or other users may read it.
      InvalidArgument: No readable file, or no token in it.
      ModuleNotFoundError: A file is named, and grpcio or protobuf is missing.
    """
    if token_file is None:
        name = f"{name}, from {TOKEN_VARIABLE}"
        token_file = os.environ.get(TOKEN_VARIABLE) or None
        if token_file is None:
            return None
    if not isinstance(token_file, str | os.PathLike) or not os.fspath(token_file):
        raise InvalidArgument(f"{name}: expected a path, found {shown(token_file)}")
    path = Path(token_file)
    try:
        content = _read(name, path)
    except TandemError:
        raise
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{name}: expected a file that can be read, found: {error}") from error
    token = content.strip(b" \t\n\v\f\r")
    least, most = (load().constants[f"{which}_TOKEN_BYTES"] for which in ("MIN", "MAX"))
    if not least <= len(token) <= most or not _TOKEN.fullmatch(token):
        raise InvalidArgument(
            f"{name}: expected a token of {least} to {most} printable characters without a space, found "
            f"{len(token)} bytes that are no such token; copy the daemon's --token_file: {path}"
        )
    return token.decode("ascii")


def _read(name: str, path: Path) -> bytes:
    # O_NONBLOCK: a pipe without a writer would block the caller.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise InvalidArgument(f"{name}: expected a regular file, found another: {path}")
        if info.st_uid != os.geteuid():
            raise AccessDenied(
                f"{name}: expected a file of this user (uid {os.geteuid()}), found one of uid {info.st_uid}; "
                f"copy the token into a file of your own: {path}"
            )
        if info.st_mode & 0o077:
            raise AccessDenied(
                f"{name}: expected a file that is closed to other users, found mode "
                f"{stat.S_IMODE(info.st_mode):04o}; chmod 600 {path}"
            )
        return os.read(descriptor, _MOST_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
