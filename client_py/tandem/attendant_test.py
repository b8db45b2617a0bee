"""`Attendant`: calls beside a client, and the ends of attendants, clients and engines."""

import os
import pickle
from collections.abc import Iterator

import pytest

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    in_forked_child,
    launch_trivial,
    nothing_left_behind,
    unique_name,
    watchdog,
)

# The fixtures `engine` and `client`.
pytest_plugins = ["tandem.testing.half_cheetah"]


@pytest.fixture
def panel(engine: tandem.EngineProcess) -> Iterator[tandem.Attendant]:
    """Attaches an attendant to the engine."""
    with tandem.Attendant(engine.name, label="panel", timeout=60) as attached:
        yield attached


def test_attendant_calls_every_service_without_a_client(panel: tandem.Attendant) -> None:
    """Also the two methods that are refused beside a client."""
    assert panel.num_envs == 4 and not panel.closed
    assert {"agent", "scene"} <= panel.services().keys()
    assert panel.get_schema([2])[0].agent_name == "agent_2"
    assert panel.mujoco.send_control([0.0] * 6).actuators_written == 6
    assert panel.agent.set_contract(tandem.services.SimulationContract()) == ()


def test_attendant_reads_beside_a_client(client: tandem.SharedMemoryClient, panel: tandem.Attendant) -> None:
    """What would change the training is refused; the text has the client's pid."""
    for _ in range(20):
        client.step(client.actions)
        assert panel.mujoco.joint_state().positions.shape == (9,)
    with panel.telemetry.stream() as stream:
        client.step(client.actions)
        while stream.next(60).frame_seq < 21:
            pass
    for call in (
        lambda: panel.mujoco.send_control([0.0] * 6),
        lambda: panel.agent.set_contract(tandem.services.SimulationContract()),
    ):
        with pytest.raises(tandem.AlreadyAttached, match=str(os.getpid())):
            call()


def test_services_are_switched(client: tandem.SharedMemoryClient, panel: tandem.Attendant) -> None:
    """For all callers: calls raise Unsupported, and open streams end with it."""
    with client.telemetry.stream(timeout=60) as stream:
        panel.set_service("telemetry", False)
        assert not client.services()["telemetry"].enabled
        with pytest.raises(tandem.Unsupported, match="telemetry"):
            panel.telemetry.schema()
        with pytest.raises(tandem.Unsupported, match="telemetry"):
            while True:
                stream.next()
    client.set_service("telemetry", True)
    assert panel.telemetry.schema()
    with pytest.raises(tandem.InvalidArgument, match="'telemetri'"):
        panel.set_service("telemetri", True)


def test_closed_attendant_refuses_calls(panel: tandem.Attendant) -> None:
    """A second close has no effect; an open stream ends."""
    stream = panel.telemetry.stream(timeout=60)
    panel.close()
    panel.close()
    assert panel.closed
    for call in (panel.services, stream.next, panel.telemetry.stream):
        with pytest.raises(tandem.ClientClosed):
            call()


def test_forked_child_is_refused(panel: tandem.Attendant) -> None:
    """Its calls raise ForkedChild; its close leaves the parent's slot alone."""
    assert "ForkedChild" in in_forked_child(lambda: str(panel.services()))

    def closed() -> str:
        panel.close()
        return "closed"

    assert in_forked_child(closed) == "closed"
    assert panel.services()


def test_attendant_is_not_picklable(panel: tandem.Attendant) -> None:
    """The text says how to make one in the other process."""
    with pytest.raises(TypeError, match=rf"Attendant\('{panel.name}'\)"):
        pickle.dumps(panel)


def test_attach_refusals() -> None:
    """A name without an engine, an engine without RPCs, a long label."""
    with pytest.raises(tandem.NotReady):
        tandem.Attendant(unique_name(), attach_timeout=0.05)
    with launch_trivial() as engine, pytest.raises(tandem.Unsupported, match=engine.name):
        tandem.Attendant(engine.name)
    with pytest.raises(tandem.InvalidArgument, match="label: expected at most 55 bytes, found 60"):
        tandem.Attendant(unique_name(), label="ä" * 30)
