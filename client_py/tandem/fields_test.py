"""The client of an engine whose observations and actions are fields, not float32 rows."""

from collections.abc import Iterator

import numpy as np
import pytest

import tandem
from tandem.testing.engines import (  # noqa: F401, the fixtures
    launch_trivial,
    nothing_left_behind,
    watchdog,
)

_FIELDS = {
    ("obs", "/image"): ((2, 2, 3), "uint8"),
    ("final_obs", "/image"): ((2, 2, 3), "uint8"),
    ("obs", "/seed"): ((2,), "int64"),
    ("final_obs", "/seed"): ((2,), "int64"),
    ("action", ""): ((2,), "int64"),
    ("reward", ""): ((2,), "float64"),
}


@pytest.fixture
def client() -> Iterator[tandem.SharedMemoryClient]:
    """Attaches a client to a trivial engine with 2 environments and fields."""
    with launch_trivial(fields=1) as engine, tandem.SharedMemoryClient(engine.name) as attached:
        yield attached


def test_fields_have_the_types_and_shapes_of_the_table(client: tandem.SharedMemoryClient) -> None:
    """Each field is a view; the float32 rows have no columns."""
    assert {key: (field.shape, field.dtype.name) for key, field in client.fields.items()} == _FIELDS
    assert client.obs.shape == client.final_obs.shape == client.actions.shape == (2, 0)
    assert (client.obs_size, client.act_size) == (0, 0)
    for field in client.fields.values():
        assert field.flags.c_contiguous and not field.flags.owndata
        assert 0 < field.ctypes.data - client.region_address


def test_a_step_moves_fields(client: tandem.SharedMemoryClient) -> None:
    """The engine reads actions in place, and the client reads results in place."""
    fields = client.fields
    client.reset(seed=7)
    np.testing.assert_array_equal(fields["obs", "/seed"], [7, 8])
    fields["action", ""][:] = [3, 100]
    _, rewards, dones = client.step(client.actions)
    np.testing.assert_array_equal(rewards, np.float32(0.1) * np.array([3, 100], np.float32))
    np.testing.assert_array_equal(fields["reward", ""], 0.1 * np.array([3.0, 100.0]))
    np.testing.assert_array_equal(dones, [0, 1])
    np.testing.assert_array_equal(fields["obs", "/image"], np.reshape([[1] * 6, [0] * 6], (2, 2, 3)))
    np.testing.assert_array_equal(fields["final_obs", "/image"][1], np.full((2, 3), 1))
    np.testing.assert_array_equal(fields["final_obs", "/seed"][1], 8)


def test_float32_actions_are_refused(client: tandem.SharedMemoryClient) -> None:
    """The region has no rows for them."""
    with pytest.raises(tandem.InvalidAction):
        client.step(np.zeros((2, 1), np.float32))


def test_fields_outlive_the_client() -> None:
    """A view keeps the memory mapped."""
    with launch_trivial(fields=1) as engine:
        client = tandem.SharedMemoryClient(engine.name)
        image = client.fields["obs", "/image"]
        client.close()
        del client
        assert int(image.sum()) == 0


def test_environments_refuse_fields_by_name(client: tandem.SharedMemoryClient) -> None:
    """A vector environment has no spaces for them yet."""
    with pytest.raises(tandem.Unsupported, match="fields"):
        tandem.SharedMemoryVectorEnv(client)


def test_a_region_of_float32_rows_has_no_fields() -> None:
    """The table exists only for engines with fields."""
    with launch_trivial() as engine, tandem.SharedMemoryClient(engine.name) as client:
        assert client.fields == {}
