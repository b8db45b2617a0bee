"""Programs that use Session, by the package luckyrobots 0.1.84, train on an engine of Tandem."""

import pytest
from luckyrobots import Session

from tandem.engine.process import launch_engine
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.gateways import Gateway


def test_a_session_connects_resets_and_steps() -> None:
    """A thousand steps, the length of the task's episodes."""
    name = unique_name()
    with launch_engine("HalfCheetah-v5", name=name, server="engine_adapter/server/server"), Gateway(name) as gateway:
        session = Session(host=gateway.host, port=gateway.port)
        session.connect(timeout_s=10, robot="unitreego2")
        assert len(session.get_joint_state().state.positions) == 9
        session.reset()
        answer = None
        for _ in range(1000):
            answer = session.step([0.1] * 6)
        assert answer is not None and len(answer.observation) == 17
        with pytest.raises(Exception, match="expected 6 numbers"):
            session.step([0.0] * 12)
        session.close(stop_engine=False)
