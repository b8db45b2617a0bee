"""A browser's end of the page's WebSocket, without a browser."""

import base64
import json
import os
import socket
import struct
from typing import Any
from urllib.parse import urlsplit

_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10


def cookie_of(address: str) -> str:
    """Exchanges the token of a printed address for the cookie, "name=value"."""
    parts = urlsplit(address)
    with socket.create_connection(("127.0.0.1", parts.port or 0)) as connection:
        connection.sendall(f"GET /?{parts.query} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        answer = b""
        while more := connection.recv(65536):
            answer += more
    (line,) = [line for line in answer.split(b"\r\n") if line.lower().startswith(b"set-cookie:")]
    return line.split(b":", 1)[1].split(b";")[0].strip().decode()


class SocketClient:
    """A connected WebSocket, which does not block.

    Attributes:
      pictures: How many have come, and snapshots of poses.
      picture: Head and file of the last one.
      texts: The last message of each kind, by its `is`.
    """

    def __init__(self, address: str, cookie: str) -> None:
        """Connects to the server of an address, with its cookie."""
        netloc = urlsplit(address).netloc
        self._socket = socket.create_connection(("127.0.0.1", urlsplit(address).port or 0), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            "GET /socket HTTP/1.1",
            f"Host: {netloc}",
            f"Origin: http://{netloc}",
            f"Cookie: {cookie}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
        )
        self._socket.sendall("\r\n".join((*lines, "", "")).encode())
        self._data = b""
        while b"\r\n\r\n" not in self._data:
            more = self._socket.recv(65536)
            assert more, "expected an answer, found the end of the connection"
            self._data += more
        head, self._data = self._data.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101"), head
        self._socket.setblocking(False)
        self.pictures = 0
        self.picture: tuple[dict[str, Any], bytes] = {}, b""
        self.texts: dict[str, Any] = {}

    def fileno(self) -> int:
        """Returns the descriptor, for selectors."""
        return self._socket.fileno()

    def send(self, **message: Any) -> None:
        """Sends a message of the page; `do` names the action."""
        self._send(_TEXT, json.dumps(message).encode())

    def _send(self, kind: int, payload: bytes) -> None:
        mask = os.urandom(4)
        size = struct.pack(">B", 0x80 | len(payload)) if len(payload) < 126 else struct.pack(">BH", 0xFE, len(payload))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self._socket.sendall(bytes([0x80 | kind]) + size + mask + masked)

    def send_bytes(self, data: bytes) -> None:
        """Sends bytes as they are, such as a frame that is none."""
        self._socket.setblocking(True)
        try:
            self._socket.sendall(data)
        finally:
            self._socket.setblocking(False)

    def take(self, *, draws: bool = True) -> bool:
        """Takes what has come, and acknowledges pictures if `draws`.

        Returns:
          False at the end of the connection.
        """
        try:
            more = self._socket.recv(1 << 20)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        self._data += more
        while (frame := self._frame()) is not None:
            kind, payload = frame
            if kind == _TEXT:
                message = json.loads(payload)
                self.texts[message["is"]] = message
            elif kind == _BINARY:
                self.pictures += 1
                begin = 4 + struct.unpack("<I", payload[:4])[0]
                head = json.loads(payload[4:begin])
                self.picture = head, payload[begin:]
                if draws:
                    done = "posed" if "poses" in head else "drawn"
                    self.send(do=done, view=head["view"], sent=head["sent"])
            elif kind == _PING:
                self._send(_PONG, payload)
            elif kind == _CLOSE:
                return False
        return bool(more)

    def _frame(self) -> tuple[int, bytes] | None:
        """Removes a complete frame, which the server does not mask, from what has come."""
        if len(self._data) < 2:
            return None
        size, begin = self._data[1] & 0x7F, 2
        if size >= 126:
            begin = 4 if size == 126 else 10
            if len(self._data) < begin:
                return None
            (size,) = struct.unpack(">H" if begin == 4 else ">Q", self._data[2:begin])
        if len(self._data) < begin + size:
            return None
        assert self._data[0] & 0x80, "expected a message in one frame"
        kind, payload = self._data[0] & 0x0F, self._data[begin : begin + size]
        self._data = self._data[begin + size :]
        return kind, payload

    def close(self) -> None:
        """Ends the connection without a word."""
        self._socket.close()
