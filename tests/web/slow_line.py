"""A relay with the bandwidth and the delay of a slow line, between a browser and a server of this machine."""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path

# What waits on the line at most, as in a router. More stops the sender, as TCP does.
_QUEUE_BYTES = 64 << 10
_READ_BYTES = 1500  # a packet


class SlowLine:
    """Forwards TCP connections to a server, with a limited rate and a delay for each direction."""

    def __init__(
        self, server: int | Path, *, delay_secs: float, bytes_per_second: float = math.inf, host: str = "127.0.0.1"
    ) -> None:
        """Describes the line; `run` runs it.

        Args:
          server: Its port, or its Unix socket.
          delay_secs: From one end to the other.
          bytes_per_second: For each direction of all connections together.
          host: The address of the port.
        """
        self._host = host
        self._server = server
        self._rate = bytes_per_second
        self._delay = delay_secs
        self._free = {"up": 0.0, "down": 0.0}  # when the line has sent what it has

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_QUEUE_BYTES // _READ_BYTES)

        async def deliver() -> None:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        delivery = asyncio.create_task(deliver())
        try:
            data = b"x"
            while data:
                data = await reader.read(_READ_BYTES)
                self._free[direction] = max(self._free[direction], time.monotonic()) + len(data) / self._rate
                await queue.put((self._free[direction] + self._delay, data))
            await delivery
        finally:
            delivery.cancel()

    async def _serve(self, browser: asyncio.StreamReader, to_browser: asyncio.StreamWriter) -> None:
        try:
            if isinstance(self._server, Path):
                server, to_server = await asyncio.open_unix_connection(self._server)
            else:
                server, to_server = await asyncio.open_connection(self._host, self._server)
        except OSError:  # no server: as ssh does
            to_browser.close()
            return
        with contextlib.suppress(ConnectionError), contextlib.closing(to_browser), contextlib.closing(to_server):
            await asyncio.gather(self._forward(browser, to_server, "up"), self._forward(server, to_browser, "down"))

    @contextlib.contextmanager
    def run(self) -> Iterator[int]:
        """Runs the relay in a thread.

        Yields:
          The relay's port at 127.0.0.1.
        """
        ports: list[int] = []
        ready, loop = threading.Event(), asyncio.new_event_loop()

        async def listen() -> None:
            listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            ports.append(listener.sockets[0].getsockname()[1])
            ready.set()

        def work() -> None:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(listen())
            loop.run_forever()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        ready.wait()
        try:
            yield ports[0]
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
