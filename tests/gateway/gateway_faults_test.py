"""Deaths, freezes and crowds around the gateway."""

import contextlib
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import schema.protos.hazel.agent_pb2 as agent_pb2
import schema.protos.hazel.agent_pb2_grpc as agent_pb2_grpc
import schema.protos.hazel.telemetry_pb2 as telemetry_pb2
import schema.protos.hazel.telemetry_pb2_grpc as telemetry_pb2_grpc

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    stop,
    unique_name,
    watchdog,
)
from tandem.testing.gateways import Gateway
from tests.gateway.stubs import SECS, SERVICES, ZEROS, Stubs, attach_when_free, connected, engine, refused

# Steps until its parent kills it.
_ENDLESS_PROGRAM = """
import sys, grpc
from schema.protos.hazel import agent_pb2, agent_pb2_grpc
stub = agent_pb2_grpc.AgentServiceStub(grpc.insecure_channel(sys.argv[1]))
assert stub.ResetAgent(agent_pb2.ResetAgentRequest()).success
while stub.Step(agent_pb2.StepRequest(actions=[0.0] * 6)).success:
    print("stepped", flush=True)
"""


def test_a_killed_engine_is_replaced() -> None:
    """The call in progress fails with UNAVAILABLE; later ones reach the next engine of the name."""
    name = unique_name()
    with Gateway(name) as gateway, connected(gateway) as stubs:
        with engine(name) as first:
            assert stubs.reset().success
            stop(first.pid)
            step = stubs.agent.Step.future(agent_pb2.StepRequest(actions=ZEROS, timeout_s=60))
            os.kill(first.pid, signal.SIGKILL)
            assert step.code() == grpc.StatusCode.UNAVAILABLE and "not ready yet" in step.details()
        with engine(name):
            assert stubs.mujoco_info().success
            assert stubs.reset().success
            assert stubs.step(ZEROS).success


def test_a_frozen_engine_ends_a_step_at_its_timeout() -> None:
    """And answers again after it wakes; the late results are dropped."""
    name = unique_name()
    with engine(name) as frozen, Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        before = stubs.step(ZEROS).observation.frame_number
        stop(frozen.pid)
        late = stubs.step([0.5] * 6, timeout_s=2)
        assert not late.success and late.message
        assert not stubs.step(ZEROS, timeout_s=0.2).success
        os.kill(frozen.pid, signal.SIGCONT)
        answer = stubs.step(ZEROS)
        assert answer.success and answer.observation.frame_number == before + 2


def test_an_engine_of_another_task_is_served_as_it_is() -> None:
    """A program's first step there is an error: its episode has ended. Actions of the old size are refused."""
    name = unique_name()
    with Gateway(name) as gateway, connected(gateway) as stubs:
        with engine(name):
            assert stubs.reset().success
        with engine(name, task="Hopper-v5"):
            with refused(grpc.StatusCode.UNAVAILABLE):
                stubs.step(ZEROS)
            assert stubs.mujoco_info().nu == 3
            with refused(grpc.StatusCode.INVALID_ARGUMENT, "expected 3 numbers"):
                stubs.step(ZEROS)
            assert stubs.step([0.0] * 3).success


def test_a_step_after_the_slots_release_is_an_error_once() -> None:
    """The engine has begun another episode; ResetAgent would be no error."""
    name = unique_name()
    with engine(name), Gateway(name, "--release_after=0s") as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        assert stubs.step(ZEROS).success
        attach_when_free(name).close()
        assert stubs.reset().success
        assert stubs.step(ZEROS).success
        attach_when_free(name).close()
        with refused(grpc.StatusCode.UNAVAILABLE, "ResetAgent"):
            stubs.step(ZEROS)
        assert stubs.step(ZEROS).success


def test_a_killed_gateway_harms_neither_engine_nor_trainer() -> None:
    """Its place as the client is free at once."""
    name = unique_name()
    with engine(name) as served, Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        assert gateway.stop(signal.SIGKILL) == -signal.SIGKILL
        with tandem.SharedMemoryClient(name) as trainer:
            trainer.reset()
            trainer.step(np.zeros((1, 6), np.float32))
        assert served.poll() is None


def test_a_killed_program_frees_the_engine() -> None:
    """Its connection ends, and with it the gateway's client slot."""
    name = unique_name()
    with engine(name), Gateway(name, "--release_after=1h") as gateway:
        command = [sys.executable, "-c", _ENDLESS_PROGRAM, gateway.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "stepped\n"
            program.kill()
        attach_when_free(name).close()


def _frame(kind: int, flags: int, payload: bytes, stream: int = 1) -> bytes:
    """Returns a frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def test_a_connection_that_ends_before_its_call_begins_leaves_the_engine_free() -> None:
    """The kernel may report the connection's end before gRPC has read the call."""
    name = unique_name()
    fields = {":path": "/hazel.rpc.AgentService/ResetAgent", ":authority": "x", "te": "trailers"}
    fields["content-type"] = "application/grpc"
    # POST by http, then each field as a literal; an empty request.
    headers = b"\x83\x86" + b"".join(
        b"\0" + b"".join(bytes([len(text)]) + text.encode() for text in field) for field in fields.items()
    )
    call = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, b"", 0) + _frame(1, 4, headers) + _frame(0, 1, bytes(5))
    with engine(name), Gateway(name, "--release_after=1h") as gateway:
        with socket.create_connection((gateway.host, gateway.port)) as patient:
            patient.sendall(call)
            answer = b""
            while b"grpc-status" not in answer:
                answer += patient.recv(4096)
        for _ in range(20):
            for _ in range(10):
                with socket.create_connection((gateway.host, gateway.port)) as impatient:
                    impatient.sendall(call)
            attach_when_free(name).close()


def test_a_hundred_programs_are_answered() -> None:
    """Each on its own connection; one of them trains."""
    name = unique_name()
    with engine(name), Gateway(name) as gateway, ThreadPoolExecutor(100) as threads, connected(gateway) as trainer:
        assert trainer.reset().success

        def ask(_: int) -> bool:
            with connected(gateway) as stubs:
                return all(stubs.mujoco_info().success for _ in range(3))

        asked = threads.map(ask, range(100))
        assert all(trainer.step(ZEROS).success for _ in range(100))
        assert all(asked)


def test_a_slow_reader_loses_items_and_slows_nothing() -> None:
    """The count of its lost items is in the stream's end."""
    name = unique_name()
    with engine(name, flags=("--stream_hz=telemetry=1000",)), Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        telemetry = telemetry_pb2_grpc.TelemetryServiceStub(stubs.channel)
        stream = telemetry.StreamTelemetry(telemetry_pb2.StreamTelemetryRequest())
        first = next(stream)
        for _ in range(200):
            assert stubs.step(ZEROS).success
        second = next(stream)
        assert second.frame_number > first.frame_number
        stream.cancel()


def test_a_cancelled_stream_has_no_place_any_more() -> None:
    """Each of many streams in a row gets an item, though the threads of the cancelled ones need a while to end."""
    name = unique_name()
    with engine(name), Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        telemetry = telemetry_pb2_grpc.TelemetryServiceStub(stubs.channel)
        for _ in range(200):
            stream = telemetry.StreamTelemetry(telemetry_pb2.StreamTelemetryRequest())
            next(stream)
            stream.cancel()


def _random_message(kind: Any, rng: random.Random, depth: int = 0) -> Any:
    """Returns a message whose fields are random, each present with probability 0.5."""
    numbers = [0, 1, 2**31 - 1, 0.5, float("nan"), -1, 2**32 - 1, 1e30]
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        if rng.random() < 0.5 or depth > 3 or (field.message_type and field.message_type.GetOptions().map_entry):
            continue
        many = field.is_repeated
        if field.message_type:
            nested = _random_message(field.message_type._concrete_class, rng, depth + 1)
            getattr(message, field.name).MergeFrom([nested] if many else nested)
            continue
        value: Any = rng.choice(numbers)
        if field.cpp_type == field.CPPTYPE_STRING:
            value = rng.choice(["", "agent_0", "agent_9", "track", "Main", "\0x", "z" * 5000])
            value = value.encode() if field.type == field.TYPE_BYTES else value
        elif field.cpp_type == field.CPPTYPE_BOOL:
            value = True
        elif field.cpp_type not in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
            value = rng.choice([0, 1, 7, 99, 2**31 - 1])
        if many:
            getattr(message, field.name).extend([value] * rng.choice([1, 6, 200]))
        else:
            setattr(message, field.name, value)
    return message


def test_random_requests_of_each_rpc_harm_nothing() -> None:
    """Whatever their status is: the gateway and its engine then answer as before."""
    rng = random.Random(31)
    name = unique_name()
    with engine(name) as served, Gateway(name) as gateway, connected(gateway) as stubs:
        asked = 0
        for service in SERVICES:
            for method in service.methods:
                call = stubs.channel.unary_stream(f"/{service.full_name}/{method.name}")
                for _ in range(8):
                    message = _random_message(method.input_type._concrete_class, rng)
                    for request in (message.SerializeToString(), rng.randbytes(rng.randrange(64))):
                        answers = call(request, timeout=0.1)
                        with contextlib.suppress(grpc.RpcError, StopIteration):
                            next(answers)
                        answers.cancel()
                        asked += 1
        assert asked == 40 * 16
        assert served.poll() is None and stubs.mujoco_info().success
        assert stubs.reset().success and stubs.step(ZEROS).success


def _step_both(stubs: Stubs) -> list[agent_pb2.StepResponse]:
    """Steps agent_0 and agent_1."""
    requests = [agent_pb2.StepRequest(actions=ZEROS, agent_name=agent) for agent in ("agent_0", "agent_1")]
    return [step.result() for step in [stubs.agent.Step.future(request, timeout=SECS) for request in requests]]


def test_a_program_that_ended_steps_no_agent() -> None:
    """Its Step, which waits for the other agent, has no effect; its successor steps the same agent."""
    name = unique_name()
    with engine(name, num_envs=2), Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset("agent_1").success  # keeps the client slot
        with connected(gateway) as ended:
            waiting = ended.agent.Step.future(agent_pb2.StepRequest(actions=[1.0] * 6, timeout_s=1e6))
            assert ended.reset("agent_0").success
        assert waiting.code() == grpc.StatusCode.CANCELLED
        # The gateway notices the end some time after it; a watchdog ends the wait.
        while True:
            with contextlib.suppress(grpc.RpcError):
                assert not stubs.step(ZEROS, timeout_s=0.01).success
                break
        assert all(answer.success and list(answer.observation.actions) == ZEROS for answer in _step_both(stubs))


def test_a_killed_engine_ends_a_step_that_waits_for_other_agents() -> None:
    """Before its timeout."""
    name = unique_name()
    with engine(name, num_envs=2) as served, Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset("agent_0").success and stubs.reset("agent_1").success
        waiting = stubs.agent.Step.future(agent_pb2.StepRequest(actions=ZEROS, timeout_s=1e6))
        assert stubs.reset("agent_1").success
        os.kill(served.pid, signal.SIGKILL)
        assert waiting.code() == grpc.StatusCode.UNAVAILABLE


def test_images_for_a_program_that_ended_delay_no_other() -> None:
    """A step may ask for more images than the engine renders in minutes."""
    name = unique_name()
    image = agent_pb2.GetCameraFrameRequest(name="track", width=16, height=16)
    with engine(name), Gateway(name) as gateway, connected(gateway) as stubs:
        with connected(gateway) as ended:
            assert ended.reset().success
            request = agent_pb2.StepRequest(actions=ZEROS, camera_requests=[image] * 3000)
            step = ended.agent.Step.future(request)
            assert ended.mujoco_info().success
        assert step.code() == grpc.StatusCode.CANCELLED
        assert stubs.reset().success


def test_compressed_requests_are_refused() -> None:
    """Before they are decompressed: 64 MiB would be far above the limit."""
    name = unique_name()
    with Gateway(name) as gateway, connected(gateway) as stubs:
        call = stubs.channel.unary_unary("/hazel.rpc.AgentService/GetAgentSchema")
        with refused(grpc.StatusCode.UNIMPLEMENTED, "gzip"):
            call(bytes(64 << 20), timeout=SECS, compression=grpc.Compression.Gzip)
        peak = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{gateway.pid}/status").read_text())
        assert peak is not None and int(peak[1]) < 50 << 10


def test_a_signal_ends_the_gateway_during_calls() -> None:
    """Ctrl-C, with an open stream and a step that waits."""
    name = unique_name()
    with engine(name) as frozen, Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        telemetry = telemetry_pb2_grpc.TelemetryServiceStub(stubs.channel)
        stream = telemetry.StreamTelemetry(telemetry_pb2.StreamTelemetryRequest())
        next(stream)
        stop(frozen.pid)
        step = agent_pb2_grpc.AgentServiceStub(stubs.channel).Step.future(agent_pb2.StepRequest(actions=ZEROS))
        assert gateway.stop(signal.SIGINT) == 0
        assert step.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        os.kill(frozen.pid, signal.SIGCONT)
