"""Values from a MuJoCo engine equal those of Gymnasium's environments in the same state."""

import threading
from collections.abc import Iterator
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures

_TASK = "Ant-v5"  # has a free joint, cameras and lights


@pytest.fixture(scope="module")
def shared() -> Iterator[tandem.SharedMemoryClient]:
    """A client of two Ant environments."""
    with (
        tandem.launch_engine(_TASK, num_envs=2) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        yield client


class Twins:
    """Gymnasium's environments, which make the same steps as the client's."""

    def __init__(self, client: tandem.SharedMemoryClient, steps: int = 5) -> None:
        """Brings the client's and Gymnasium's environments into the same state."""
        self.client = client
        self.envs: list[Any] = [gymnasium.make(_TASK).unwrapped for _ in range(client.num_envs)]
        client.reset(seed=11)
        for env_id, env in enumerate(self.envs):
            env.reset(seed=11 + env_id)
        rng = np.random.default_rng(0)
        for _ in range(steps):
            self.step(rng.uniform(-1, 1, client.actions.shape).astype(np.float32))

    def step(self, actions: NDArray[np.float32]) -> None:
        """Steps both with the same actions."""
        self.client.step(actions)
        for env, action in zip(self.envs, actions, strict=True):
            env.step(action)

    def expect_equal_states(self) -> None:
        """Compares the joint states of all environments."""
        for state, env in zip(self.client.mujoco.joint_state([0, 1]), self.envs, strict=True):
            np.testing.assert_array_equal(state.positions, env.data.qpos.astype(np.float32))
            np.testing.assert_array_equal(state.velocities, env.data.qvel.astype(np.float32))


@pytest.fixture
def twins(shared: tandem.SharedMemoryClient) -> Twins:
    """Environments five steps after a reset."""
    return Twins(shared)


def test_info_has_the_models_sizes_and_names(twins: Twins) -> None:
    """Sizes and names equal those of MuJoCo's model."""
    model = twins.envs[0].model
    info = twins.client.mujoco.info()
    assert (info.nq, info.nv, info.nu) == (model.nq, model.nv, model.nu)
    assert info.joint_names == tuple(model.joint(i).name for i in range(model.njnt))
    assert info.actuator_names == tuple(model.actuator(i).name for i in range(model.nu))


def test_joints_are_those_of_each_environment(twins: Twins) -> None:
    """The states come in the requested order; the default is environment 0."""
    twins.expect_equal_states()
    assert [state.env_id for state in twins.client.mujoco.joint_state([1, 0])] == [1, 0]
    state = twins.client.mujoco.joint_state()
    assert state.env_id == 0 and state.positions.dtype == np.float32 and state.positions.flags.owndata
    np.testing.assert_array_equal(state.positions, twins.envs[0].data.qpos.astype(np.float32))


def test_controls_replace_the_next_steps_actions(twins: Twins) -> None:
    """Controls by actuator number are clamped to the actuator's range, and replace actions of one step only."""
    sent = twins.client.mujoco.send_control({3: 0.25, 1: 99.0}, env_ids=[1])
    assert sent == tandem.services.ControlsSent(2, ())
    actions = np.zeros((2, 8), np.float32)
    twins.client.step(actions)
    twins.envs[0].step(actions[0])
    actions[1, 3], actions[1, 1] = 0.25, 1
    twins.envs[1].step(actions[1])
    twins.expect_equal_states()
    twins.step(np.zeros((2, 8), np.float32))
    twins.expect_equal_states()


def test_controls_come_in_bulk_and_by_name(shared: tandem.SharedMemoryClient) -> None:
    """The error for an unknown actuator names the argument."""
    assert shared.mujoco.send_control(np.linspace(-1, 1, 8)).actuators_written == 8
    assert shared.mujoco.send_control([0.5, 0.5]).actuators_written == 2
    with pytest.raises(tandem.InvalidArgument, match="actuator_name"):
        shared.mujoco.send_control({"no such motor": 1.0})
    with pytest.raises(tandem.InvalidArgument, match="actuator_index"):
        shared.mujoco.send_control({8: 1.0})


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (np.array([np.nan]), "finite numbers, found array"),
        ({0: float("inf")}, "finite number, found inf"),
        ({0: 1e39}, "finite number, found 1e"),
        ("fast", "finite numbers, found 'fast'"),
        ({0: "fast"}, "finite number, found 'fast'"),
        ({"hip_1": None}, "hip_1.*finite number, found None"),
        ({"hip_1": [1.0]}, "hip_1.*finite number, found"),
        ({1.5: 1.0}, "integer in 0 .. 4294967295, found 1.5"),
        (None, "finite numbers, found None"),
        ([], r"one or more finite numbers, found \[\]"),
        ({}, "one at least, of the model's 8 actuators, found none"),
        ([0.1] * 9, "at most 8 controls.*found 9"),
        ([[0.1]], "finite numbers, found"),
    ],
    ids=str,
)
def test_invalid_controls_are_refused(shared: tandem.SharedMemoryClient, wrong: Any, found: str) -> None:
    """The error has the expected and the found value."""
    with pytest.raises(tandem.InvalidArgument, match=found):
        shared.mujoco.send_control(wrong)


def test_control_can_wait_for_the_step_that_begins_with_it(shared: tandem.SharedMemoryClient) -> None:
    """The call returns after another thread's step has used the control."""
    before = shared.stats().exchanges
    stop = threading.Event()

    def step() -> None:
        while not stop.is_set():
            shared.step(shared.actions)

    stepping = threading.Thread(target=step)
    stepping.start()
    try:
        assert shared.mujoco.send_control({0: 0.0}, wait_for_next_step=True).actuators_written == 1
    finally:
        stop.set()
        stepping.join()
    assert shared.stats().exchanges > before


def test_joint_states_stream_while_steps_run(shared: tandem.SharedMemoryClient) -> None:
    """A stream sends one environment's states, or several environments' states of one moment."""
    twins = Twins(shared, steps=0)
    with shared.mujoco.stream_joint_state() as one, shared.mujoco.stream_joint_state([1, 0]) as both:
        assert one.number == 0
        for _ in range(3):
            twins.step(np.full((2, 8), 0.1, np.float32))
            expected = [env.data.qpos.astype(np.float32) for env in twins.envs]
            while not np.array_equal(next(one).positions, expected[0]):
                pass
            while not np.array_equal((states := next(both))[0].positions, expected[1]):
                pass
            assert [state.env_id for state in states] == [1, 0]
            np.testing.assert_array_equal(states[1].positions, expected[0])
        assert one.dropped == 0
        number = one.number
        assert number >= 3
        twins.step(np.full((2, 8), 0.1, np.float32))
        next(one)
        assert one.number == number + 1


def test_stream_without_steps_sends_no_items(shared: tandem.SharedMemoryClient) -> None:
    """`next` raises StepTimeout; the stream sends the next step's state."""
    with shared.mujoco.stream_joint_state(timeout=0.2) as stream:
        stream.next(60)  # the current state
        with pytest.raises(tandem.StepTimeout, match=r"StreamJointState sent no item within 0\.2 s"):
            next(stream)
        with pytest.raises(tandem.StepTimeout):
            stream.next(0)
        shared.step(shared.actions)
        assert stream.next(60).positions.shape == (15,)


def test_telemetry_equals_the_steps(twins: Twins) -> None:
    """A moment has a frame for each environment, with the exchange number."""
    client = twins.client
    schema = client.telemetry.schema()
    model = twins.envs[0].model
    assert (schema.nq, schema.nu) == (model.nq, model.nu)
    assert len(schema.observation_names) == model.nq
    with client.telemetry.stream([0, 1], fps=50) as stream:
        first = [next(stream), next(stream)]
        actions = np.array([[0.5] * 8, [-0.25] * 8], np.float32)
        twins.step(actions)
        frames = [next(stream), next(stream)]
    assert [frame.env_id for frame in frames] == [0, 1]
    assert [frame.frame_number for frame in first + frames] == [1, 1, 2, 2]
    assert frames[0].frame_seq == first[0].frame_seq + 1
    for frame, env, action in zip(frames, twins.envs, actions, strict=True):
        np.testing.assert_array_equal(frame.observation_qpos, env.data.qpos.astype(np.float32))
        np.testing.assert_array_equal(frame.action_ctrl, action)
        assert frame.timestamp_ms > 1_600_000_000_000


def test_entities_equal_the_models_objects(twins: Twins) -> None:
    """The list has each body, geom, camera and light; transforms are those of the environment."""
    client, model = twins.client, twins.envs[0].model
    info = client.scene.info()
    assert info.entity_count == model.nbody + model.ngeom + model.ncam + model.nlight
    assert info.scene_path.endswith("ant.xml")
    plain = client.scene.entities()
    assert len(plain) == info.entity_count
    assert all(each.transform is None and each.components == () for each in plain)
    for env_id, env in enumerate(twins.envs):
        mujoco.mj_forward(env.model, env.data)
        entities = client.scene.entities(env_id=env_id, transforms=True, components=True)
        bodies = [each for each in entities if "body" in each.components]
        assert [each.name for each in bodies] == [model.body(i).name for i in range(model.nbody)]
        assert len({each.id for each in entities}) == len(entities)
        assert bodies[0].transform is not None
        for entity in entities:
            assert entity.transform is not None and entity.transform.rotation is not None
            assert np.linalg.norm(entity.transform.rotation) == pytest.approx(1, abs=1e-5)


def test_entity_is_found_by_name_and_id(twins: Twins) -> None:
    """`set_transform` moves the entity, and the joint state shows its position."""
    client = twins.client
    torso = client.scene.entity("torso", env_id=1)
    assert torso.components[0] == "body"
    same = client.scene.entity(torso.id, env_id=1)
    assert (same.id, same.name) == (torso.id, "torso")
    turned = np.array([0, 0, np.sin(0.5), np.cos(0.5)], np.float32)
    client.scene.set_transform("torso", position=(1, 2, 3), rotation=turned, env_id=1)
    still, moved = client.mujoco.joint_state([0, 1])
    np.testing.assert_array_equal(moved.positions[:3], [1, 2, 3])
    np.testing.assert_allclose(moved.positions[3:7], turned[[3, 0, 1, 2]], atol=1e-6)
    np.testing.assert_array_equal(still.positions, twins.envs[0].data.qpos.astype(np.float32))
    found = client.scene.entity("torso", env_id=1).transform
    assert found is not None and found.position is not None and found.rotation is not None
    np.testing.assert_array_equal(found.position, [1, 2, 3])
    np.testing.assert_allclose(found.rotation, turned, atol=1e-6)
    client.scene.set_transform(torso, position=(4, 5, 6), env_id=1)
    np.testing.assert_array_equal(client.mujoco.joint_state([1])[0].positions[:3], [4, 5, 6])


@pytest.mark.parametrize("which", ["no such thing", 10**6, 0, "", -1, 1.5])
def test_unknown_entity_is_refused(shared: tandem.SharedMemoryClient, which: Any) -> None:
    """`entity` and `set_transform` refuse it."""
    for call in (shared.scene.entity, lambda which: shared.scene.set_transform(which, position=(0, 0, 1))):
        with pytest.raises(tandem.InvalidArgument):
            call(which)


@pytest.mark.parametrize(
    "wrong",
    [
        {"position": (1, 2)},
        {"position": (1, 2, np.nan)},
        {"position": "up"},
        {"rotation": (1, 0, 0)},
        {"rotation": [[1], [2, 3]]},
        {"scale": (1e39, 1, 1)},
    ],
    ids=str,
)
def test_invalid_position_is_refused(shared: tandem.SharedMemoryClient, wrong: dict[str, Any]) -> None:
    """The error begins with the argument's name."""
    with pytest.raises(tandem.InvalidArgument, match=f"^{next(iter(wrong))}: expected . finite numbers"):
        shared.scene.set_transform("torso", **wrong)


def test_pause_holds_steps_and_single_step_executes_one(twins: Twins) -> None:
    """A pending step is executed by `single_step`; further single steps run without a client's step."""
    scene = twins.client.scene
    scene.pause()
    assert scene.paused()
    actions = np.full((2, 8), 0.3, np.float32)
    twins.client.send(actions)
    assert scene.single_step() == 1
    twins.client.recv()
    for env, action in zip(twins.envs, actions, strict=True):
        env.step(action)
    twins.expect_equal_states()
    assert scene.single_step(3) == 3
    scene.resume()
    assert not scene.paused()


def test_modes_are_set_and_returned(shared: tandem.SharedMemoryClient) -> None:
    """The mode applies to all environments, and stays until it is set again."""
    first = shared.scene.simulation_mode()
    assert isinstance(first, tandem.services.SimulationMode)
    for mode in tandem.services.SimulationMode:
        assert shared.scene.set_simulation_mode(mode) is mode
        assert shared.scene.simulation_mode() is mode
    realtime = tandem.services.SimulationMode.REALTIME
    shared.scene.set_simulation_mode(realtime, realtime_factor=4.0)
    assert shared.scene.realtime_factor() == 4.0
    for bad in (0.0, 11.0, float("nan"), "2"):
        with pytest.raises(tandem.InvalidArgument, match="realtime_factor"):
            shared.scene.set_simulation_mode(realtime, realtime_factor=bad)  # type: ignore[arg-type]
    shared.scene.set_simulation_mode(first)
    assert shared.scene.realtime_factor() == 1.0
    for wrong in (7, "fast", None):
        with pytest.raises(tandem.InvalidArgument, match="mode"):
            shared.scene.set_simulation_mode(wrong)  # type: ignore[arg-type]
