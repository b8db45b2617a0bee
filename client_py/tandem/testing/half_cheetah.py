"""Fixtures: an engine of four HalfCheetah environments, and its client."""

from collections.abc import Iterator

import pytest

from tandem.client import SharedMemoryClient
from tandem.engine.process import EngineProcess, launch_engine
from tandem.testing.engines import unique_name


@pytest.fixture
def engine() -> Iterator[EngineProcess]:
    """Launches an engine of four HalfCheetah environments."""
    with launch_engine("HalfCheetah-v5", num_envs=4, name=unique_name()) as launched:
        yield launched


@pytest.fixture
def client(engine: EngineProcess) -> Iterator[SharedMemoryClient]:
    """Attaches a client to the engine."""
    with SharedMemoryClient(engine.name, timeout=60) as attached:
        yield attached
