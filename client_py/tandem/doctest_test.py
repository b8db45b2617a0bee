"""Runs the examples in the package's docstrings, against the engine that ships."""

import doctest
import types

import pytest

from tandem import arguments, client, engine_process, environments, options, refusals, single, task_options, vector
from tandem.fastlane import tiling, worker_environment, writer
from tandem.services import contract
from tandem.telemetry import events, json_lines, record_episodes, trainer_client
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures
from tools.testing import pytest_main

_MODULES = [
    arguments,
    client,
    contract,
    engine_process,
    environments,
    events,
    json_lines,
    options,
    record_episodes,
    refusals,
    single,
    task_options,
    tiling,
    trainer_client,
    vector,
    worker_environment,
    writer,
]


@pytest.mark.parametrize("module", _MODULES)
def test_examples_work_as_shown(module: types.ModuleType) -> None:
    """And there are some."""
    results = doctest.testmod(module)
    assert results.failed == 0 and results.attempted > 0


if __name__ == "__main__":
    pytest_main.run(__file__)
