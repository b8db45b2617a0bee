"""RPCs and attendants of environments in Python: the supervisor answers them beside the workers."""

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import tandem
from tandem._native import MethodId
from tandem.testing.engines import watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import ScriptedEnv

_NUM_ENVS = 4


@pytest.fixture
def envs() -> Iterator[Any]:
    """Starts environments in two workers, and resets them."""
    with closing(tandem.make_vec(ScriptedEnv, _NUM_ENVS, num_workers=2)) as made:
        made.reset(seed=0)
        yield made


@pytest.fixture
def panel(envs: Any) -> Iterator[tandem.Attendant]:
    """Attaches an attendant."""
    with tandem.Attendant(envs.client.name, label="panel", timeout=60) as attached:
        yield attached


def test_the_services_are_those_that_need_no_engine(envs: Any, panel: tandem.Attendant) -> None:
    """The client and an attendant see the same: the schema, and the pause."""
    for caller in (envs.client, panel):
        enabled = {name: info.methods for name, info in caller.services().items() if info.enabled}
        assert set(enabled) == {"agent", "scene"}
        assert {MethodId.SetPaused, MethodId.GetSimulationMode} <= enabled["scene"]
        assert caller.get_schema().observation_size == 2
        assert not caller.scene.paused()


def test_attendants_end_with_the_environments(envs: Any, panel: tandem.Attendant) -> None:
    """Their engine is the supervisor's process. Their next call gets PeerGone."""
    assert panel.engine_pid == envs.client.engine_pid != os.getpid()
    envs.close()
    with pytest.raises(tandem.PeerGone):
        panel.scene.paused()
