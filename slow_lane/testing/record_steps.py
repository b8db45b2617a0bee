"""A watcher that records each received step of a run in a file; it may be killed and started again.

Each line of the file is one block of steps, written by one call: "SEQ_ID STEP_INDEX COUNT", with the numbers of the
block's first step. Started again, the watcher continues after the last complete line.
"""

import os
import sys
import time

import grpc
import schema.protos.slow_lane_pb2 as messages
import schema.protos.slow_lane_pb2_grpc as service

_UNWANTED = 2**64 - 1
_RETRY_SECS = 0.05


def _received(path: str) -> int:
    """Returns the last number in the file; removes an incomplete line at its end."""
    try:
        with open(path, "r+b") as file:
            text = file.read()
            complete = text.rfind(b"\n") + 1
            file.truncate(complete)
    except FileNotFoundError:
        return 0
    lines = text[:complete].splitlines()
    if not lines:
        return 0
    first, _, count = map(int, lines[-1].split())
    return first + count - 1


def main(address: str, run_id: str, path: str) -> None:
    """Watches until the run has ended and all its steps were received.

    Args:
      address: The daemon's address.
      run_id: The run.
      path: The file for the record.
    """
    since = _received(path)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        # A killed daemon is started again soon, at the same address.
        with grpc.insecure_channel(address, options=[("grpc.max_receive_message_length", 64 << 20)]) as channel:
            request = messages.StreamEventsRequest(
                run_id=run_id,
                since_step=since,
                since_episode=_UNWANTED,
                since_lifecycle=_UNWANTED,
                since_malformed=_UNWANTED,
                follow=True,
            )
            try:
                for batch in service.SlowLaneStub(channel).StreamEvents(request):
                    for offset, step in enumerate(batch.steps):
                        assert step.seq_id == since + 1 + offset, f"{step.seq_id} came after {since + offset}"
                        assert step.step_index == batch.steps[0].step_index + offset
                    os.write(file, f"{batch.steps[0].seq_id} {batch.steps[0].step_index} {len(batch.steps)}\n".encode())
                    since += len(batch.steps)
                return
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
        time.sleep(_RETRY_SECS)


if __name__ == "__main__":
    main(*sys.argv[1:])
