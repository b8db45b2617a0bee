"""Programs written for LuckyEngine, by the package luckyrobots 0.5.0, train on an engine of Tandem."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from luckyrobots import LuckyEngineClient, LuckyEnv
from luckyrobots.async_session import AsyncSession
from luckyrobots.debug import draw_velocity_command
from luckyrobots.grpc.generated import agent_pb2, mujoco_scene_pb2
from luckyrobots.reflection import describe_service, list_services

from tandem.engine.process import EngineProcess, launch_engine
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.gateways import Gateway
from tests.sdk.services_server import services_server

_SERVER = "engine_adapter/server/server"


def _engine(name: str, **options: Any) -> EngineProcess:
    return launch_engine("HalfCheetah-v5", name=name, server=_SERVER, **options)


def _client(gateway: Gateway) -> LuckyEngineClient:
    client = LuckyEngineClient(host=gateway.host, port=gateway.port, timeout=60, robot_name="unitreego2")
    client.connect()
    # Its health check fails without this: the stub is made by its first use.
    assert client.mujoco is not None
    return client


@pytest.fixture
def short_health_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits the health check of LuckyEnv to one second."""
    # LuckyEnv ignores the result of its health check, which fails (see above): its whole timeout passes.
    wait = LuckyEngineClient.wait_for_server
    monkeypatch.setattr(LuckyEngineClient, "wait_for_server", lambda self, timeout: wait(self, timeout=1))


def test_a_client_finds_the_server_resets_and_steps() -> None:
    """The calls of a program's first lines."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        client = _client(gateway)
        assert client.wait_for_server(timeout=60)
        schema = client.get_agent_schema().schema
        assert (schema.observation_size, schema.action_size) == (17, 6)
        assert client.get_mujoco_info(robot_name="unitreego2").nq == 9
        # A dict becomes an empty contract on the wire.
        assert client.reset_agent(randomization_cfg={"friction_range": [0.5, 1.5]}).success
        answer = client.step(actions=[0.0] * 6)
        client.close()
    assert len(answer.observation) == 17
    assert list(answer.reward_signals) == ["reward"]


@pytest.mark.usefixtures("short_health_check")
def test_lucky_env_runs_an_episode() -> None:
    """Its default reward is the task's, and the episode ends by truncation."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        env = LuckyEnv(host=gateway.host, port=gateway.port, timeout=60)
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


@pytest.mark.usefixtures("short_health_check")
def test_lucky_env_gets_the_negotiated_reward_terms() -> None:
    """Its reward function chooses among them; "time_out" is a termination of every task."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        env = LuckyEnv(
            host=gateway.host,
            port=gateway.port,
            timeout=60,
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
        client = _client(gateway)
        contract = {"rewards": {"engine_terms": [{"name": "reward_forwards"}]}}
        assert not client.validate_task_contract(contract)["is_valid"]
        with pytest.raises(RuntimeError, match="did you mean 'reward_forward'"):
            client.negotiate_task(contract)
        assert "reward_ctrl" in [term["name"] for term in client.get_capability_manifest()["rewards"]]
        client.close()


def _first(stream: Any) -> Any:
    item = next(stream)
    stream.cancel()
    return item


def test_a_client_reads_and_changes_the_scene() -> None:
    """Each call of the package's client that engines of Tandem have, but for images."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        client = _client(gateway)
        assert len(client.get_joint_state().state.velocities) == 9
        assert len(_first(client.stream_joint_state()).state.positions) == 9
        assert client.get_telemetry_schema()["nu"] == 6
        assert len(_first(client.stream_telemetry()).observation_qpos) == 9
        info = client.get_scene_info()
        entities = client.list_entities(include_transforms=True, include_components=True)
        assert info["entity_count"] == len(entities)
        torso = client.get_entity(name="torso")
        assert torso is not None and client.get_entity(entity_id=torso["id"]) == torso
        assert client.get_entity(name="nothing") is None
        floor = client.get_entity(name="floor")
        x, y, z = floor["transform"]["position"]
        rotation = floor["transform"]["rotation"]
        assert client.set_entity_transform(floor["id"], position=(x, y, z - 1), rotation=rotation)
        assert client.get_entity(name="floor")["transform"]["position"][2] == pytest.approx(z - 1)
        assert client.set_simulation_mode("deterministic") and client.get_simulation_mode() == "deterministic"
        assert client.enter_play_mode().success and client.exit_play_mode().success
        assert client.agent.ListRobotControllers(agent_pb2.ListRobotControllersRequest()).controllers == []
        assert client.agent.ListPolicyDescriptors(agent_pb2.ListPolicyDescriptorsRequest()).policies == []
        client.report_progress(run_id="r", task_name="t")
        assert draw_velocity_command(client, (0, 0, 1), 1, 0, 0)
        model = client.get_model_info()
        assert (model.nq, model.nv, model.nu, model.njnt) == (9, 9, 6, 9)
        assert [joint["name"] for joint in client.list_all_joints()][-1] == "ffoot"
        assert client.list_all_actuators()[0]["target_joint_index"] == 3
        state = client.get_full_state(include_ctrl=False).state
        assert len(state.qpos) == len(state.qvel) == 9 and not state.ctrl
        assert len(_first(client.stream_full_state()).state.ctrl) == 6
        gains = client.mujoco_scene.GetActuatorGains(mujoco_scene_pb2.GetActuatorGainsRequest())
        assert [gain.actuator_name for gain in gains.actuators] == [joint.name for joint in model.actuators]
        assert client.mujoco_scene.SetQpos(mujoco_scene_pb2.SetQposRequest(bulk=[0.25])).values_written == 1
        assert client.get_full_state().state.qpos[0] == 0.25
        assert client.set_ctrl([0.1] * 6).actuators_written == 6
        assert client.reset_scene(preserve_time=True).success
        assert client.set_action_group("legs", [0.5], [2])
        assert list(client.step(actions=[0.0] * 6).actions) == [0, 0, 0.5, 0, 0, 0]
        assert not client.get_camera_config("track").found
        assert not client.set_camera_config("track", None).ok
        client.close()


def test_an_engine_of_the_sdk_has_telemetry_cameras_and_contracts(tmp_path: Path) -> None:
    """One in C#."""
    name = unique_name()
    with launch_engine(server=services_server(tmp_path), name=name), Gateway(name) as gateway:
        client = _client(gateway)
        assert client.get_telemetry_schema()["nu"] == 2
        assert len(_first(client.stream_telemetry()).observation_qpos) == 2
        assert [camera["name"] for camera in client.list_cameras()] == ["front", "rear"]
        frame = _first(client.stream_camera(name="rear", width=8, height=6))
        assert (frame.width, frame.height, frame.channels) == (8, 6, 4)
        assert [entity["name"] for entity in client.list_entities()] == ["cart", "front"]
        terrain = {"terrain_type": "ice"}  # which this engine expects
        contract = agent_pb2.SimulationContract(friction_range=[2, 2], mass_scale_range=[1, 2], **terrain)
        answer = client.agent.ResetAgent(agent_pb2.ResetAgentRequest(simulation_contract=contract))
        assert answer.success and "mass_scale_range" in answer.message and "friction_range" not in answer.message
        assert len(client.step(actions=[0.5]).observation) == 1
        client.close()


def test_a_client_gets_images_as_rows_of_rgba() -> None:
    """Of cameras and of the viewport, in streams and with a step; the refusal of a too large one has its size."""
    name = unique_name()
    with _engine(name), Gateway(name) as gateway:
        client = _client(gateway)
        assert "track" in [camera["name"] for camera in client.list_cameras()]
        assert client.get_viewport_info()["available_viewports"]
        for stream in (
            client.stream_camera(name="track", width=64, height=48),
            client.stream_viewport(width=64, height=48, format="jpeg"),
        ):
            frame = _first(stream)
            assert (frame.width, frame.height, frame.channels, frame.format) == (64, 48, 4, "raw")
            pixels = np.frombuffer(frame.data, np.uint8).reshape(48, 64, 4)
            assert (pixels[..., 3] == 255).all()
            assert pixels[..., :3].std() > 10  # no empty picture
        assert client.reset_agent().success
        client.configure_cameras([{"name": "track", "width": 32, "height": 24}])
        (camera,) = client.step(actions=[0.0] * 6).camera_frames
        assert (camera.name, camera.width, camera.height) == ("track", 32, 24)
        client.configure_cameras([{"name": "track", "width": 1920, "height": 1080}])
        with pytest.raises(grpc.RpcError, match="1920 x 1080") as caught:
            client.step(actions=[0.0] * 6)
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        client.close()


def test_an_async_session_calls_while_it_steps() -> None:
    """With asyncio, on one connection."""
    name = unique_name()

    async def run(gateway: Gateway) -> None:
        async with AsyncSession(host=gateway.host, port=gateway.port) as session:
            await session.connect(timeout_s=60)
            assert (await session.agent.ResetAgent(agent_pb2.ResetAgentRequest())).success
            step = agent_pb2.StepRequest(actions=[0.0] * 6)
            answers = await asyncio.gather(
                *(session.agent.Step(step) for _ in range(20)),
                session.enter_play_mode(),
                session.list_robot_controllers(),
            )
            assert all(answer.success for answer in answers[:20])
            frames = [answer.observation.frame_number for answer in answers[:20]]
            assert sorted(frames) == list(range(min(frames), min(frames) + 20))
            assert (await session.reset_scene()).success

    with _engine(name), Gateway(name) as gateway:
        asyncio.run(run(gateway))


def _fields(message: Any) -> list[tuple[object, ...]]:
    rows = []
    for field in message.fields:
        kinds = [kind.full_name for kind in (field.message_type, field.enum_type) if kind is not None]
        rows.append((field.number, field.name, field.type, field.has_presence, *kinds))
    return sorted(rows)


def test_the_protos_are_those_of_the_package() -> None:
    """By reflection: each service, its RPCs, and each field of all messages. Its other RPCs are refused."""
    with Gateway(unique_name()) as gateway, grpc.insecure_channel(gateway.address) as channel:
        services = [name for name in list_services(channel) if name.startswith("hazel.rpc.")]
        assert len(services) == 8
        seen = set()
        refused = 0
        for service in services:
            served = describe_service(channel, service)
            expected = agent_pb2.DESCRIPTOR.pool.FindServiceByName(service)
            ours = {method.name: method for method in served.methods}
            waiting = []
            for method in expected.methods:
                if method.name not in ours:
                    call = channel.unary_stream(f"/{service}/{method.name}")
                    with pytest.raises(grpc.RpcError, match=f"{method.name}: .*--list_rpcs"):
                        next(call(b"", timeout=60))
                    refused += 1
                    continue
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
        assert len(seen) > 70
        assert refused == 21
