"""Programs written for LuckyEngine, by the package luckyrobots 0.5.0, train on an engine of Tandem."""

import grpc
import numpy as np
import pytest
from luckyrobots import LuckyEngineClient, LuckyEnv
from luckyrobots.grpc.generated import agent_pb2
from luckyrobots.reflection import describe_service, list_services

from tandem.engine.process import EngineProcess, launch_engine
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.gateways import Gateway
from tools.testing import pytest_main

_SERVER = "engine_adapter/server/server"


def _engine(name: str, **options: int) -> EngineProcess:
    return launch_engine("HalfCheetah-v5", name=name, server=_SERVER, **options)


def _client(gateway: Gateway) -> LuckyEngineClient:
    client = LuckyEngineClient(host=gateway.host, port=gateway.port, timeout=60, robot_name="unitreego2")
    client.connect()
    # Its health check fails without this: the stub is made by its first use.
    assert client.mujoco is not None
    return client


def test_a_client_finds_the_server_resets_and_steps() -> None:
    """The calls of a program's first lines."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        client = _client(gateway)
        assert client.wait_for_server(timeout=10)
        schema = client.get_agent_schema().schema
        assert (schema.observation_size, schema.action_size) == (17, 6)
        assert client.get_mujoco_info(robot_name="unitreego2").nq == 9
        # A dict becomes an empty contract on the wire.
        assert client.reset_agent(randomization_cfg={"friction_range": [0.5, 1.5]}).success
        answer = client.step(actions=[0.0] * 6)
        client.close()
    assert len(answer.observation) == 17
    assert list(answer.reward_signals) == ["reward"]


def test_lucky_env_runs_an_episode() -> None:
    """Its default reward is the task's, and the episode ends by truncation."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        # It ignores the result of its health check, which fails (see above): its whole timeout passes.
        env = LuckyEnv(host=gateway.host, port=gateway.port, timeout=1)
        try:
            assert env.observation_space.shape == (17,) and env.action_space.shape == (6,)
            observation, _ = env.reset()
            assert observation.shape == (17,) and observation.dtype == np.float32
            action, steps, truncated = np.full(6, 0.3, np.float32), 0, False
            while not truncated:
                observation, reward, terminated, truncated, info = env.step(action)
                assert reward == pytest.approx(info["reward_forward"] + info["reward_ctrl"], rel=1e-4, abs=1e-4)
                assert not terminated
                steps += 1
            assert steps == 999  # the reset has made the first step
            env.reset()
            assert not env.step(action)[3]
        finally:
            env.close()


def test_lucky_env_gets_the_negotiated_reward_terms() -> None:
    """Its reward function chooses among them; "time_out" is a termination of every task."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        env = LuckyEnv(
            host=gateway.host,
            port=gateway.port,
            timeout=1,
            reward_fn=lambda signals: 2 * signals["reward_forward"],
            reward_terms=["reward_forward", "reward_ctrl"],
            termination_terms=["time_out"],
        )
        try:
            env.reset()
            _, reward, _, _, info = env.step(np.full(6, 0.3, np.float32))
            assert set(info["reward_signals"]) == {"reward_forward", "reward_ctrl"}
            assert reward == pytest.approx(2 * info["reward_forward"])
            assert info["termination_flags"] == {"terminated": False, "time_out": False}
        finally:
            env.close()
        with pytest.raises(RuntimeError, match="did you mean 'reward_forward'"):
            LuckyEnv(host=gateway.host, port=gateway.port, timeout=1, reward_terms=["reward_forwards"])


def test_a_dozen_zeros_are_an_error_with_the_number_of_actions() -> None:
    """The package's own benchmark sends them."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        client = _client(gateway)
        assert client.reset_agent().success
        with pytest.raises(grpc.RpcError, match="expected 6 numbers") as caught:
            client.step(actions=[0.0] * 12)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        client.close()


def _fields(message: object) -> list[tuple[object, ...]]:
    rows = []
    for field in message.fields:
        kinds = [kind.full_name for kind in (field.message_type, field.enum_type) if kind is not None]
        rows.append((field.number, field.name, field.type, field.has_presence, *kinds))
    return sorted(rows)


def test_the_protos_are_those_of_the_package() -> None:
    """By reflection: each service, its RPCs, and each field of all messages."""
    with Gateway(unique_name()) as gateway, grpc.insecure_channel(gateway.address) as channel:
        services = [name for name in list_services(channel) if name.startswith("hazel.rpc.")]
        assert len(services) == 9
        seen = set()
        for service in services:
            served = describe_service(channel, service)
            expected = agent_pb2.DESCRIPTOR.pool.FindServiceByName(service)
            ours = {method.name: method for method in served.methods}
            waiting = []
            for method in expected.methods:
                assert ours[method.name].server_streaming == method.server_streaming, method.full_name
                waiting += [
                    (method.input_type, ours[method.name].input_type),
                    (method.output_type, ours[method.name].output_type),
                ]
            while waiting:
                theirs, own = waiting.pop()
                if theirs.full_name in seen:
                    continue
                seen.add(theirs.full_name)
                assert _fields(theirs) == _fields(own), theirs.full_name
                pairs = zip(
                    sorted(theirs.fields, key=lambda field: field.number),
                    sorted(own.fields, key=lambda field: field.number),
                    strict=True,
                )
                for one, other in pairs:
                    if one.message_type is not None:
                        waiting.append((one.message_type, other.message_type))
                    if one.enum_type is not None:
                        assert one.enum_type.values_by_name.keys() == other.enum_type.values_by_name.keys()
                        for key, value in one.enum_type.values_by_name.items():
                            assert other.enum_type.values_by_name[key].number == value.number
        assert len(seen) > 100


if __name__ == "__main__":
    pytest_main.run(__file__)
