"""Each service of a MuJoCo engine, called from Python: results and refusals."""

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.testing.engines import launch_trivial, nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures


@pytest.fixture(scope="module")
def shared() -> Iterator[tandem.SharedMemoryClient]:
    """A client of three HalfCheetah environments; each test leaves them unchanged."""
    with (
        tandem.launch_engine("HalfCheetah-v5", num_envs=3) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        client.reset(seed=0)
        yield client


def test_services_are_named_with_their_methods(shared: tandem.SharedMemoryClient) -> None:
    """All services are listed."""
    services = shared.services()
    assert {"agent", "mujoco", "telemetry", "scene", "camera", "viewport", "debug", "own"} <= services.keys()
    agent = services["agent"]
    assert agent.enabled and agent.methods == {
        tandem.services.MethodId.GetAgentSchema,
        tandem.services.MethodId.ResetAgent,
        tandem.services.MethodId.SaveStates,
        tandem.services.MethodId.LoadStates,
    }


def test_schema_fits_the_arrays(shared: tandem.SharedMemoryClient) -> None:
    """The result is environment 0's schema, or one schema for each given environment."""
    schema = shared.get_schema()
    assert (schema.agent_name, schema.observation_size, schema.action_size) == ("agent_0", 17, 6)
    assert len(set(schema.observation_names)) == 17 and schema.observation_names[8] == "qvel/rootx"
    assert schema.action_names == shared.mujoco.info().actuator_names
    assert [each.agent_name for each in shared.get_schema([2, 0])] == ["agent_2", "agent_0"]
    mask = np.array([False, True, True])
    assert [each.agent_name for each in shared.agent.schema(mask)] == ["agent_1", "agent_2"]


@pytest.mark.parametrize(
    "env_ids", [[3], [-1], [], [False, False, False], [0.5], "01"], ids=["3", "-1", "none", "mask", "half", "text"]
)
def test_unknown_environments_are_refused(shared: tandem.SharedMemoryClient, env_ids: Any) -> None:
    """An empty selection is refused as well: for the engine it would mean environment 0."""
    for call in (shared.get_schema, shared.mujoco.joint_state, shared.telemetry.stream):
        with pytest.raises(tandem.InvalidArgument, match="env_ids"):
            call(env_ids)


def test_engines_refusal_is_invalid_argument(shared: tandem.SharedMemoryClient) -> None:
    """The engine refuses an environment that is given twice."""
    with pytest.raises(tandem.InvalidArgument, match="twice"):
        shared.get_schema([1, 1])


_HUGE = 10**5000  # of more digits than Python prints


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda client: client.scene.set_simulation_mode(np.zeros(3)),
            r"mode: .*tandem\.services\.SimulationMode\.REALTIME",
        ),
        (lambda client: client.scene.set_simulation_mode(3), "mode"),
        (lambda client: client.scene.paused(timeout=10**400), "timeout"),
        (lambda client: client.scene.paused(timeout=np.ones(3)), "timeout"),
        (lambda client: client.scene.single_step(_HUGE), "steps"),
        (lambda client: client.scene.entity("knee" * 10**6), "which"),
        (lambda client: client.scene.entity(_HUGE), "which"),
        (lambda client: client.scene.entities(transforms=1), "transforms: expected a bool"),
        (lambda client: client.scene.entities(components=1), "components: expected a bool"),
        (lambda client: client.scene.set_transform(1, position=[_HUGE, 0.5, 0]), "position"),
        (lambda client: client.mujoco.send_control([1.0], clamp=np.ones(3)), "clamp: expected a bool"),
        (lambda client: client.mujoco.send_control([1.0], clamp=None), "clamp: expected a bool"),
        (lambda client: client.mujoco.send_control([_HUGE, 0.5]), "controls"),
        (lambda client: client.mujoco.send_control({"knee" * 10**6: None}), "controls"),
        (lambda client: client.mujoco.send_control({0: [1, [2]]}), "controls"),
        (lambda client: client.mujoco.send_control({"knee" * 10**6: 0}), "actuator_name"),
        (lambda client: client.mujoco.send_control({"\ud800": 0}), "controls: an actuator's name: expected a str"),
        (lambda client: client.viewport.frame(0), "which: expected a str"),
        (lambda client: client.viewport.stream(0), "which: expected a str"),
        (lambda client: client.mujoco.joint_state([0, [1]]), "env_ids"),
        (lambda client: client.get_schema("0" * 10**6), "env_ids"),
    ],
)
def test_invalid_argument_is_refused_with_a_short_text(shared: tandem.SharedMemoryClient, call: Any, said: str) -> None:
    """The error begins with the argument's name and has fewer than 400 characters, also for a huge argument."""
    with pytest.raises(tandem.InvalidArgument, match=f"^{said}") as refusal:
        call(shared)
    assert len(str(refusal.value)) < 400


def test_engine_without_rpcs_does_not_answer() -> None:
    """The call is a time-out; the client still steps."""
    with launch_trivial() as engine, tandem.SharedMemoryClient(engine.name, timeout=60) as client:
        with pytest.raises(tandem.StepTimeout):
            client.services(timeout=0.05)
        client.step(client.actions)


def test_disabled_service_is_refused() -> None:
    """The list of services shows it as disabled, and its methods raise Unsupported."""
    flags = ("--services=agent,telemetry", "--stream_hz=telemetry=0.5")
    with (
        tandem.launch_engine("HalfCheetah-v5", name=unique_name(), flags=flags) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        services = client.services()
        assert {name for name, service in services.items() if service.enabled} == {"agent", "telemetry"}
        assert (services["agent"].max_fps, services["telemetry"].max_fps) == (0, 0.5)
        assert services["scene"].methods == frozenset()
        for call in (client.scene.info, client.mujoco.info, client.camera.list):
            with pytest.raises(tandem.Unsupported):
                call()


def test_streams_can_be_neither_pickled_nor_copied(shared: tandem.SharedMemoryClient) -> None:
    """A stream belongs to its client's process."""
    stream = shared.telemetry.stream()
    for action in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="belongs to this process"):
            action(stream)


@pytest.mark.parametrize(
    "given",
    [
        {"friction_range": (1.0, 0.5)},
        {"friction_range": (0.5,)},
        {"friction_range": 0.5},
        {"friction_range": "12"},
        {"friction_range": (0, float("nan"))},
        {"pose_position_noise": (0.1, 0.1)},
        {"pose_position_noise": (0.1, -0.1, 0.1)},
        {"joint_position_noise": -1},
        {"joint_position_noise": float("inf")},
        {"joint_position_noise": 10**400},
        {"joint_velocity_noise": "much"},
        {"terrain_type": 3},
        {"terrain_difficulty": 1.5},
        {"vel_command_standing_probability": -0.1},
    ],
    ids=lambda given: next(iter(given)),
)
def test_invalid_contract_is_refused_at_construction(given: dict[str, object]) -> None:
    """The error begins with the field's name."""
    with pytest.raises(tandem.InvalidArgument, match=f"^{next(iter(given))}: expected"):
        tandem.services.SimulationContract(**given)  # type: ignore[arg-type]


def test_contract_keeps_given_values() -> None:
    """Values are kept as Python numbers, also those of arrays."""
    contract = tandem.services.SimulationContract(
        pose_position_noise=np.array([0, 0.5, 1]),  # type: ignore[arg-type]
        mass_scale_range=[1, 2],  # type: ignore[arg-type]
        joint_velocity_noise=1,
        terrain_type="stairs",
        friction_range=(0, 0),
    )
    assert contract.given() == {
        "pose_position_noise": (0.0, 0.5, 1.0),
        "joint_velocity_noise": 1.0,
        "friction_range": (0.0, 0.0),
        "mass_scale_range": (1.0, 2.0),
        "terrain_type": "stairs",
    }
    assert tandem.services.SimulationContract().given() == {}


def test_reset_without_contract_and_with_an_empty_one_are_the_tasks_own(shared: tandem.SharedMemoryClient) -> None:
    """There is no warning, and the observations are those of the seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = shared.reset(seed=5).copy()
        again = shared.reset(seed=5, contract=tandem.services.SimulationContract())
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(
            first, shared.reset(seed=[5, 6, 7], contract=tandem.services.SimulationContract())
        )


def test_engine_that_does_not_randomise_takes_an_empty_contract_with_a_seed() -> None:
    """The reset uses the seed, and the engine refuses a contract with a field."""
    with (
        tandem.launch_engine("CartPole-v1", name=unique_name()) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        first = client.reset(seed=5).copy()
        np.testing.assert_array_equal(first, client.reset(seed=5, contract=tandem.services.SimulationContract()))
        with pytest.raises(tandem.Unsupported):
            client.reset(seed=5, contract=tandem.services.SimulationContract(mass_scale_range=(1, 2)))


@pytest.mark.parametrize("contract", [{}, (0, 1), "strict"])
def test_contract_of_another_type_is_refused(shared: tandem.SharedMemoryClient, contract: object) -> None:
    """The error is InvalidArgument."""
    with pytest.raises(tandem.InvalidArgument, match="SimulationContract"):
        shared.reset(contract=contract)  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", ["1", -1, float("nan"), [1]], ids=str)
def test_invalid_timeout_is_refused(shared: tandem.SharedMemoryClient, timeout: Any) -> None:
    """Each method with a time-out refuses it."""
    for call in (shared.get_schema, shared.telemetry.stream, shared.recv, shared.drawn_frame, shared.reconnect):
        with pytest.raises(tandem.InvalidArgument, match="^timeout: expected seconds"):
            call(timeout=timeout)


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({"lines": [1]}, "lines: expected a list of tandem.services.DebugLine, found"),
        ({"lines": 1}, "lines: expected a list"),
        (
            {"lines": [tandem.services.DebugArrow((0, 0, 0), (1, 0, 0))]},
            "lines: expected a list of tandem.services.DebugLine",
        ),
        ({"arrows": ["up"]}, "arrows: expected a list of tandem.services.DebugArrow"),
        (
            {"arrows": [tandem.services.DebugArrow((0, 0, 0), (1, 0, 0), scale="big")]},  # type: ignore[arg-type]
            "scale: expected a finite number",
        ),
        ({"lines": [tandem.services.DebugLine((0, 0, 0), (1, 0, 0), color=3)]}, "color: expected 3 or 4 numbers"),  # type: ignore[arg-type]
        ({"velocity_command": (1, 0, 0)}, "velocity_command: expected a tandem.services.DebugVelocityCommand"),
    ],
    ids=str,
)
def test_invalid_marks_are_refused(shared: tandem.SharedMemoryClient, marks: dict[str, Any], expected: str) -> None:
    """The error has the expected type."""
    with pytest.raises(tandem.InvalidArgument, match=expected):
        shared.debug.draw(**marks)


def test_viewport_without_a_stream_has_no_current(shared: tandem.SharedMemoryClient) -> None:
    """No test of this module opens a viewport stream."""
    assert shared.viewport.info().current is None


def test_contract_with_a_pending_step_is_refused(shared: tandem.SharedMemoryClient) -> None:
    """The call raises StepPending, as every reset does then."""
    shared.send(shared.actions)
    with pytest.raises(tandem.StepPending):
        shared.reset(contract=tandem.services.SimulationContract(mass_scale_range=(1, 2)))
    shared.recv()
