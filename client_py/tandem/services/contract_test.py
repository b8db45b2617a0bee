"""Simulation contracts, set through the client and through its Gymnasium environments."""

import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem.testing.commanded_cart import arguments, commanding, commands_of
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures

_NOISY = tandem.services.SimulationContract(joint_position_noise=0.3)
_HEAVY = tandem.services.SimulationContract(mass_scale_range=(3, 3))
_UNUSED = tandem.services.SimulationContract(vel_command_x_range=(0, 1), joint_position_noise=0.1)


@pytest.fixture(scope="module")
def shared() -> Iterator[tandem.SharedMemoryClient]:
    """A client of three HalfCheetah environments; each test leaves them without a contract."""
    with (
        tandem.launch_engine("HalfCheetah-v5", num_envs=3) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        yield client


@pytest.fixture
def client(shared: tandem.SharedMemoryClient) -> Iterator[tandem.SharedMemoryClient]:
    """The shared client; removes the contract after the test."""
    yield shared
    shared.reset(contract=tandem.services.SimulationContract())


def test_contract_comes_before_the_reset(client: tandem.SharedMemoryClient) -> None:
    """This reset draws from the contract; equal seeds give equal draws; an empty contract restores the task's."""
    own = client.reset(seed=7).copy()
    noisy = client.reset(seed=7, contract=_NOISY).copy()
    assert (np.abs(noisy - own).max(axis=1) > 0.01).all()
    assert len({row.tobytes() for row in noisy}) == 3
    np.testing.assert_array_equal(client.reset(seed=7, contract=_NOISY), noisy)
    np.testing.assert_array_equal(client.reset(seed=[7, 8, 9], contract=_NOISY), noisy)
    assert not np.array_equal(client.reset(seed=7), noisy)  # a new draw
    np.testing.assert_array_equal(client.reset(seed=7, contract=tandem.services.SimulationContract()), own)


def test_contract_of_some_environments_leaves_the_others_alone(client: tandem.SharedMemoryClient) -> None:
    """An environment's draw depends on its own seed, not on the other environments of the reset."""
    own = client.reset(seed=7).copy()
    all_noisy = client.reset(seed=7, contract=_NOISY).copy()
    client.reset(seed=7, contract=tandem.services.SimulationContract())
    some = client.reset([2, 0], seed=[9, 7], contract=_NOISY)
    np.testing.assert_array_equal(some[[0, 2]], all_noisy[[0, 2]])
    np.testing.assert_array_equal(some[1], own[1])


def test_contract_that_is_set_holds_from_the_next_reset_on(client: tandem.SharedMemoryClient) -> None:
    """`set_contract` itself resets no environment."""
    noisy = client.reset(seed=7, contract=_NOISY).copy()
    client.reset(seed=7, contract=tandem.services.SimulationContract())
    before = client.obs.copy()
    assert client.agent.set_contract(_NOISY, seed=7) == ()
    np.testing.assert_array_equal(client.obs, before)
    np.testing.assert_array_equal(client.reset(seed=7), noisy)


def test_field_without_use_is_reported(client: tandem.SharedMemoryClient) -> None:
    """A warning at the caller's line, or the result of `set_contract`, names the field."""
    with pytest.warns(tandem.services.UnusedContractFields, match="vel_command_x_range") as caught:
        client.reset(contract=_UNUSED)
    assert caught[0].filename == __file__
    assert isinstance(caught[0].message, tandem.services.UnusedContractFields)
    assert caught[0].message.fields == ("vel_command_x_range",)
    assert client.agent.set_contract(_UNUSED) == ("vel_command_x_range",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = client.obs.copy()
        with pytest.raises(tandem.services.UnusedContractFields):
            client.reset(contract=_UNUSED)
        np.testing.assert_array_equal(client.obs, before)  # no environment was reset


def test_field_without_use_is_reported_by_a_vector_environments_reset() -> None:
    """The warning has the caller's line, also through a wrapper of Gymnasium."""
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=2)
    try:
        for each in (envs, gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)):
            with pytest.warns(tandem.services.UnusedContractFields) as caught:
                each.reset(options={"contract": _UNUSED})
            assert [warning.filename for warning in caught] == [__file__]
    finally:
        envs.close()


@pytest.mark.parametrize(
    ("contract", "field"),
    [
        (tandem.services.SimulationContract(mass_scale_range=(0, 1)), "mass_scale_range"),
        (tandem.services.SimulationContract(restitution_range=(0, 2)), "restitution_range"),
        (tandem.services.SimulationContract(terrain_type="no such terrain"), "terrain_type"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_contract_that_the_engine_refuses_resets_no_environment(
    client: tandem.SharedMemoryClient, contract: tandem.services.SimulationContract, field: str
) -> None:
    """The error names the field."""
    client.step(np.full((3, 6), 0.5, np.float32))
    before = client.obs.copy()
    with pytest.raises(tandem.InvalidArgument, match=field):
        client.reset(contract=contract)
    np.testing.assert_array_equal(client.obs, before)


def _after_a_step(envs: tandem.SharedMemoryVectorEnv, options: dict[str, Any] | None = None) -> NDArray[Any]:
    envs.reset(seed=5, options=options)
    obs: NDArray[Any] = envs.step(np.ones(envs.action_space.shape or ()))[0]
    return obs


def test_vector_environment_accepts_contracts() -> None:
    """With a mask, only the environments that are reset get the contract."""
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=2)
    own = _after_a_step(envs)
    heavy = _after_a_step(envs, {"contract": _HEAVY})
    assert (np.abs(heavy - own).max(axis=1) > 1e-3).all()
    np.testing.assert_array_equal(_after_a_step(envs), heavy)  # the contract stays in effect
    envs.reset(options={"contract": tandem.services.SimulationContract(), "reset_mask": np.array([True, False])})
    mixed = _after_a_step(envs)
    np.testing.assert_array_equal(mixed, [own[0], heavy[1]])
    envs.close()


@pytest.mark.parametrize("found_by", ["step", "reset"])
def test_restarted_engine_gets_the_contracts(found_by: str) -> None:
    """After the restart each environment has its own contract."""
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=2, engine=tandem.EngineOptions(restart=True))
    only_first = {"contract": _HEAVY, "reset_mask": np.array([True, False])}
    envs.reset()
    envs.reset(options=only_first.copy())
    expected = _after_a_step(envs)
    if found_by == "reset":
        envs.reset(options={"contract": tandem.services.SimulationContract()})
    os.kill(envs.client.engine_pid, signal.SIGKILL)
    if found_by == "step":
        assert envs.step(np.zeros((2, 6)))[4]["engine_restarted"].all()
    else:
        envs.reset(options=only_first.copy())
    np.testing.assert_array_equal(_after_a_step(envs), expected)
    envs.close()


def test_restarted_engine_draws_by_the_contracts_seeds() -> None:
    """After each restart, an environment's draw is that of the seed given with its contract."""
    light = tandem.services.SimulationContract(mass_scale_range=(0.5, 1.5))

    def after_death(*seeds: int) -> NDArray[Any]:
        envs = tandem.make_vec("HalfCheetah-v5", num_envs=3, engine=tandem.EngineOptions(restart=True))
        envs.reset(seed=[*seeds, 0], options={"contract": light, "reset_mask": np.array([True, True, False])})
        os.kill(envs.client.engine_pid, signal.SIGKILL)
        assert envs.step(np.zeros((3, 6)))[4]["engine_restarted"].all()
        obs = _after_a_step(envs)  # new seeds: only the contract's draws can differ
        envs.close()
        return obs

    first, other = after_death(5, 9), after_death(5, 10)
    np.testing.assert_array_equal(after_death(5, 9), first)
    np.testing.assert_array_equal((first != other).any(axis=1), [False, True, False])


def test_each_environment_has_a_contract_of_its_own(tmp_path: Path) -> None:
    """By place in a sequence; None leaves the contract of an environment; autoreset keeps all of them."""
    limit = tandem.TaskOptions(max_episode_steps=2)
    envs = tandem.make_vec(num_envs=3, autoreset_mode="SameStep", options=limit, **arguments(tmp_path))
    obs, _ = envs.reset(options={"contract": [commanding(1), commanding(2), commanding(3)]})
    assert commands_of(obs).tolist() == [1, 2, 3]
    obs, _ = envs.reset(options={"contract": [None, commanding(4), None]})
    assert commands_of(obs).tolist() == [1, 4, 3]
    mask = np.array([True, True, False])
    obs, _ = envs.reset(options={"contract": [commanding(5)] * 3, "reset_mask": mask})
    assert commands_of(obs).tolist() == [5, 5, 3]
    obs, _ = envs.reset(options={"contract": [commanding(6), commanding(7), commanding(8)]}, env_ids=[2, 0])
    assert commands_of(obs).tolist() == [8, 6]
    for _ in range(5):  # two ends of episodes
        obs = envs.step(np.zeros((3, 1)))[0]
    assert commands_of(obs).tolist() == [6, 5, 8]
    obs, parts = envs.reset_each([{"contract": commanding(9)}, None, {}])
    assert commands_of(obs).tolist() == [9, 5, 8]
    assert [list(ids) for ids, _ in parts] == [[0, 1, 2]]
    envs.close()


def test_sequences_of_contracts_draw_as_single_contracts(tmp_path: Path) -> None:
    """The draws of a seed are those of `SharedMemoryClient.reset`, however the contract is given."""
    envs = tandem.make_vec(num_envs=3, **arguments(tmp_path))
    contract = commanding(-5, 5)
    drawn = commands_of(envs.client.reset(seed=7, contract=contract)).tolist()
    assert len(set(drawn)) == 3 and all(-5 <= each <= 5 for each in drawn)
    for given in (contract, [contract] * 3, [tandem.services.SimulationContract(**contract.given()), *[contract] * 2]):
        obs, _ = envs.reset(seed=7, options={"contract": given})
        assert commands_of(obs).tolist() == drawn
    assert commands_of(envs.client.reset([2, 0], [9, 7], contract=[contract, None])).tolist()[2] == drawn[2]
    envs.close()


def test_invalid_sequences_of_contracts_reset_no_environment(client: tandem.SharedMemoryClient) -> None:
    """The error has the place of the contract, or both numbers."""
    client.step(np.full((3, 6), 0.5, np.float32))
    before = client.obs.copy()
    for contract, text in (
        ([_HEAVY, 3, None], r"contract\[1\]: expected a tandem.services.SimulationContract, found 3"),
        ([_HEAVY] * 2, "contract: expected .*, or 3 of them or None, .* found 2"),
        ([None, tandem.services.SimulationContract(mass_scale_range=(0, 1)), None], "mass_scale_range"),
    ):
        with pytest.raises(tandem.InvalidArgument, match=text):
            client.reset(contract=contract)  # type: ignore[arg-type]
    np.testing.assert_array_equal(client.obs, before)


def test_options_of_each_environment_are_checked(tmp_path: Path) -> None:
    """Only contracts, and one mapping or None for each environment."""
    envs = tandem.make_vec(num_envs=2, **arguments(tmp_path))
    options: Any
    for options, text in (
        ([None], "options: expected 2, one for each environment, found 1"),
        ([None, {"low": 1}], r"options\[1\]: expected None or a dict with 'contract' alone, found {'low': 1}"),
        ([3, None], r"options\[0\]: expected None or a dict with 'contract' alone, found 3"),
        ([None, {"contract": 3}], r"contract\[1\]: expected a tandem.services.SimulationContract, found 3"),
    ):
        with pytest.raises(tandem.InvalidArgument, match=text):
            envs.reset_each(options)
    envs.close()


def test_restarted_engine_gets_a_contract_for_each(tmp_path: Path) -> None:
    """The contracts of a sequence are sent to the new engine; a new client begins without contracts."""
    its: dict[str, Any] = {**arguments(tmp_path), "engine": tandem.EngineOptions(restart=True)}
    envs = tandem.make_vec(num_envs=3, autoreset_mode="SameStep", **its)
    envs.reset(options={"contract": [commanding(1), None, commanding(3)]})
    os.kill(envs.client.engine_pid, signal.SIGKILL)
    obs, *_, infos = envs.step(np.zeros((3, 1)))
    assert infos["engine_restarted"].all()
    assert commands_of(obs).tolist() == [1, 0, 3]
    envs._change_autoreset(tandem.AutoresetMode.NEXT_STEP)
    assert commands_of(envs.reset()[0]).tolist() == [0, 0, 0]
    os.kill(envs.client.engine_pid, signal.SIGKILL)
    envs.step(np.zeros((3, 1)))
    assert commands_of(envs.step(np.zeros((3, 1)))[0]).tolist() == [0, 0, 0]
    envs.close()
