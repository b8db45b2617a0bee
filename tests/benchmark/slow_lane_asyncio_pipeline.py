"""A direct implementation of the slow lane's original design with asyncio, gRPC and sqlite3.

    slow_lane_asyncio_pipeline.py serve TABLE             # the daemon; prints its port
    slow_lane_asyncio_pipeline.py proxy PORT WORKER ...   # waits for a line on stdin, then runs the worker

The proxy reads the worker's output through asyncio's pipe, makes a message of each line, and sends all in one client
stream. The daemon puts them into a queue of 4096, as in that design. A thread commits all queued rows in one
transaction with synchronous=FULL, while the daemon receives the next messages.
"""

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import schema.protos.trainer_pb2 as trainer_pb2
import schema.protos.trainer_pb2_grpc as trainer_pb2_grpc

_QUEUED = 4096
_LONGEST_LINE = 16 << 20
_COLUMNS = (
    "run_id",
    "episode_index",
    "step_index",
    "action_json",
    "observation_json",
    "reward",
    "terminated",
    "truncated",
)
_TABLE = f"CREATE TABLE steps (seq_id INTEGER PRIMARY KEY, {', '.join(_COLUMNS)})"
_INSERT = f"INSERT INTO steps ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' for _ in _COLUMNS)})"


class _Table:
    """The daemon's table, with one writer that takes rows from a queue."""

    def __init__(self, path: str) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(_TABLE)
        self.queue: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue(_QUEUED)

    async def write(self) -> None:
        """Writes rows until it is cancelled."""
        while True:
            rows = [await self.queue.get()]
            while not self.queue.empty():
                rows.append(self.queue.get_nowait())
            await asyncio.to_thread(self._commit, rows)
            for _ in rows:
                self.queue.task_done()

    def _commit(self, rows: list[tuple[Any, ...]]) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(_INSERT, rows)
        self._database.execute("COMMIT")


class _Service(trainer_pb2_grpc.TrainerServiceServicer):
    def __init__(self, table: _Table) -> None:
        self._table = table

    async def PublishRunSteps(self, steps: Any, context: Any) -> Any:  # noqa: N802, the method's name on the wire
        accepted = 0
        async for step in steps:
            row = tuple(getattr(step, column) for column in _COLUMNS)
            await self._table.queue.put(row)
            accepted += 1
        await self._table.queue.join()
        return trainer_pb2.PublishTelemetryResponse(accepted=accepted)


async def _serve(path: str) -> None:
    table = _Table(path)
    server = grpc.aio.server()
    trainer_pb2_grpc.add_TrainerServiceServicer_to_server(_Service(table), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    await table.write()


async def _steps_of(output: asyncio.StreamReader) -> AsyncIterator[Any]:
    async for line in output:
        event = json.loads(line)
        if event["event_type"] != "step":
            continue
        yield trainer_pb2.RunStep(
            run_id=event["run_id"],
            episode_index=event["episode"],
            step_index=event["step_index"],
            action_json=json.dumps(event["action"]),
            observation_json=json.dumps(event["observation"]),
            reward=event["reward"],
            terminated=event["terminated"],
            truncated=event["truncated"],
        )


async def _proxy(port: str, *command: str) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await channel.channel_ready()
        sys.stdin.readline()
        worker = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, limit=_LONGEST_LINE
        )
        assert worker.stdout is not None
        stub = trainer_pb2_grpc.TrainerServiceStub(channel)
        await stub.PublishRunSteps(_steps_of(worker.stdout))
        await worker.wait()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[2:]) if sys.argv[1] == "serve" else _proxy(*sys.argv[2:]))
