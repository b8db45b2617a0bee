"""`Own`: the methods that an engine defines itself."""

import numpy as np

from tandem._native import MethodId
from tandem.arguments import shown, text
from tandem.errors import InvalidArgument
from tandem.services.caller import Service


class Own(Service):
    """Calls an engine's own methods; `client.own` is one. The description of the client's task lists them."""

    def call(self, name: str, data: bytes = b"", *, timeout: float | None = None) -> bytes:
        """Calls a method of the engine's own, such as "set_weather"; returns the answer's bytes.

        Both are in the method's content type: JSON, say, or any format of the engine's author.

        Raises:
          InvalidArgument: No method has this name; the message lists the names.
          Unsupported: The engine has no methods of its own, or the service is off.
          EngineFailed: The method failed; the message is the engine's.
          MessageTooLarge: The request or the answer has more than 64 MiB.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidArgument(f"data: expected bytes, found {shown(data)}; json.dumps(...).encode() makes some")
        fields = {"name": text("name", name, "; nothing was sent"), "data": np.frombuffer(data, np.uint8)}
        answer: bytes = self._caller.call(MethodId.CallOwn, timeout, **fields)["data"].tobytes()
        return answer
