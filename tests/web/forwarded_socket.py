"""A port of this machine that forwards to a Unix socket, as `ssh -L` does."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def forwarded(path: Path) -> Iterator[int]:
    """Forwards each connection, in a thread; a connection ends at once while there is no server.

    Args:
      path: The server's socket.

    Yields:
      The port at 127.0.0.1.
    """
    ports: list[int] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(browser: asyncio.StreamReader, to_browser: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(to_browser):
            server, to_server = await asyncio.open_unix_connection(path)
            with contextlib.closing(to_server):
                await asyncio.gather(forward(browser, to_server), forward(server, to_browser))

    async def listen() -> None:
        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
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
