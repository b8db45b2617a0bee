"""The client against a trivial engine with known results: arrays, actions, resets and misuse."""

import copy
import gc
import itertools
import math
import os
import pickle
import re
import resource
import struct
import threading
import time
import tracemalloc
import unittest.mock
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import tandem
from tandem import _native
from tandem.testing.engines import (  # noqa: F401, the fixtures
    FAIL,
    HANG,
    launch_trivial,
    nothing_left_behind,
    unique_name,
    watchdog,
)

_ARRAYS = {
    "obs": ((2, 17), np.float32),
    "actions": ((2, 6), np.float32),
    "rewards": ((2,), np.float32),
    "dones": ((2,), np.uint8),
    "truncateds": ((2,), np.uint8),
    "terminateds": ((2,), np.uint8),
    "resets": ((2,), np.uint8),
    "final_obs": ((2, 17), np.float32),
}


@pytest.fixture
def client() -> Iterator[tandem.SharedMemoryClient]:
    """Attaches a client to a trivial engine with 2 environments, 17 observations and 6 actions."""
    with launch_trivial() as engine, tandem.SharedMemoryClient(engine.name) as attached:
        yield attached


def _zeros(client: tandem.SharedMemoryClient, first: float = 0) -> NDArray[np.float32]:
    actions = np.zeros((client.num_envs, client.act_size), dtype=np.float32)
    actions[0, 0] = first
    return actions


@pytest.mark.parametrize("name", _ARRAYS)
def test_array_is_the_shared_memory_itself(client: tandem.SharedMemoryClient, name: str) -> None:
    """The array's address is the region's address plus the offset; each access returns the same object."""
    array = getattr(client, name)
    assert array.ctypes.data == client.region_address + client.offsets[name]
    assert (array.shape, array.dtype) == _ARRAYS[name]
    assert array.flags.writeable and array.flags.c_contiguous and not array.flags.owndata
    assert getattr(client, name) is array
    with pytest.raises(AttributeError):
        setattr(client, name, array)


# The header's fields that hold the arrays' offsets, by their own offsets in the region.
_OFFSET_FIELDS = {
    "obs": 384,
    "actions": 392,
    "rewards": 400,
    "dones": 408,
    "resets": 416,
    "truncateds": 672,
    "terminateds": 680,
    "final_obs": 688,
}


@pytest.mark.parametrize("name", _ARRAYS)
def test_array_lies_where_the_kernel_and_the_header_say(client: tandem.SharedMemoryClient, name: str) -> None:
    """The expected address is from /proc/self/maps and the header's bytes, not from the binding."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    (start,) = {int(line.split("-")[0], 16) for line in maps if line.endswith(f"/{client.name}")}
    header = Path(f"/dev/shm/{client.name}").read_bytes()
    (offset,) = struct.unpack_from("<Q", header, _OFFSET_FIELDS[name])
    assert getattr(client, name).ctypes.data == start + offset


def test_step_returns_the_same_views_every_time(client: tandem.SharedMemoryClient) -> None:
    """A step creates no array and no tuple."""
    first = client.step(_zeros(client))
    second = client.step(_zeros(client))
    assert first is second
    assert first[0] is client.obs and first[1] is client.rewards and first[2] is client.dones


def test_step_sends_actions_and_returns_results(client: tandem.SharedMemoryClient) -> None:
    """The engine receives each environment's actions once and in order."""
    actions = np.arange(12, dtype=np.float32).reshape(2, 6)
    obs, rewards, dones = client.step(actions)
    np.testing.assert_array_equal(rewards, actions.sum(axis=1))
    np.testing.assert_array_equal(obs[:, 2], actions[:, 0])
    np.testing.assert_array_equal(obs[:, 0], [1, 1])
    np.testing.assert_array_equal(dones, [0, 0])
    client.actions[:] = 2
    _, rewards, _ = client.step(client.actions)
    np.testing.assert_array_equal(rewards, [12, 12])


def test_step_takes_one_argument_by_place_or_by_name(client: tandem.SharedMemoryClient) -> None:
    """Any other argument list is a TypeError, and the client sends nothing."""
    assert client.step(actions=_zeros(client)) is client.step(_zeros(client))
    for arguments, named in (((), {}), ((_zeros(client), 1), {}), ((), {"action": _zeros(client)})):
        with pytest.raises(TypeError, match="step: expected one argument, actions"):
            client.step(*arguments, **named)
    assert not client.pending
    assert "float32[num_envs, act_size]" in (tandem.SharedMemoryClient.step.__doc__ or "")


def test_step_of_a_client_that_was_never_made_is_refused() -> None:
    """`__init__` was not called, as in a subclass that does not call it."""
    with pytest.raises(TypeError, match="__init__ was not called"):
        tandem.SharedMemoryClient.__new__(tandem.SharedMemoryClient).step(np.zeros((1, 1), np.float32))


def test_a_second_init_is_refused(client: tandem.SharedMemoryClient) -> None:
    """A second `__init__` would replace the session during a step."""
    with pytest.raises(TypeError, match="expected one call, found a second"):
        _native.StepMethod.__init__(client, client._native)
    with pytest.raises(TypeError, match="expected a NativeClient, found None"):
        _native.StepMethod(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a NativeClient, found <Mock"):
        _native.StepMethod(unittest.mock.Mock(spec=_native.NativeClient))
    client.step(_zeros(client))


def test_step_has_the_same_text_in_editors_and_help() -> None:
    """The text of `step` in the stub equals that in the C type."""
    stub = Path(_native.__file__).with_name("_native.pyi")
    if not stub.exists():
        stub = Path("client_py/tandem/_native.pyi")
    (text,) = re.findall(r'NDArray\[np.uint8\]\]:\n        """(.*?)"""', stub.read_text("utf-8"), re.DOTALL)
    assert text.split() == (tandem.SharedMemoryClient.step.__doc__ or "").split()


def test_send_and_recv_are_the_halves_of_step(client: tandem.SharedMemoryClient) -> None:
    """The client is pending between `send` and `recv`; calls out of this order are refused."""
    with pytest.raises(tandem.NoStepPending):
        client.recv()
    client.send(_zeros(client, 3))
    assert client.pending
    for call in (lambda: client.send(_zeros(client)), lambda: client.step(_zeros(client)), client.reset):
        with pytest.raises(tandem.StepPending):
            call()
    obs, _, _ = client.recv(timeout=math.inf)
    assert obs[0, 2] == 3 and not client.pending


@pytest.mark.parametrize(
    ("actions", "found"),
    [
        (np.zeros((2, 6)), "float64[2, 6]"),
        (np.zeros((2, 6), dtype=np.int32), "int32[2, 6]"),
        (np.zeros((2, 6), dtype=">f4"), ">f4[2, 6]"),
        (np.zeros((3, 6), dtype=np.float32), "float32[3, 6]"),
        (np.zeros((2, 5), dtype=np.float32), "float32[2, 5]"),
        (np.zeros(12, dtype=np.float32), "float32[12]"),
        (np.zeros((), dtype=np.float32), "float32[]"),
        (np.zeros((2, 6, 1), dtype=np.float32), "float32[2, 6, 1]"),
        (np.zeros((6, 2), dtype=np.float32).T, "not C-contiguous"),
        (np.zeros((2, 12), dtype=np.float32)[:, ::2], "not C-contiguous"),
        (np.zeros(49, dtype=np.uint8)[1:].view(np.float32).reshape(2, 6), "not aligned"),
        ([[0.0] * 6] * 2, "list"),
        (None, "NoneType"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_actions_of_another_kind_are_refused(client: tandem.SharedMemoryClient, actions: object, found: str) -> None:
    """The message has the expected and the found shape and the next action; the client sends nothing."""
    for call in (client.step, client.send):
        with pytest.raises(tandem.InvalidAction) as caught:
            call(actions)  # type: ignore[arg-type]
        text = str(caught.value)
        assert "expected float32[2, 6]" in text and found in text and "nothing was sent" in text
        assert isinstance(caught.value, ValueError)
    assert not client.pending
    np.testing.assert_array_equal(client.step(_zeros(client))[0][:, 0], [1, 1])


def test_reset_resets_chosen_environments_and_steps_none(client: tandem.SharedMemoryClient) -> None:
    """Accepts indices or a mask; environment i gets seed + i; the other environments keep their state."""
    client.step(_zeros(client))
    obs = client.reset([1], seed=40)
    assert obs is client.obs
    np.testing.assert_array_equal(obs[:, 0], [1, 0])
    assert obs[1, 1] == 41
    client.step(_zeros(client))
    np.testing.assert_array_equal(client.reset(np.array([True, False]), seed=7)[:, 0], [0, 1])
    assert client.obs[0, 1] == 7
    np.testing.assert_array_equal(client.reset(seed=100)[:, 1], [100, 101])
    np.testing.assert_array_equal(client.reset(seed=np.array(200))[:, 1], [200, 201])
    np.testing.assert_array_equal(client.reset()[:, 1], [-1, -1])
    client.step(_zeros(client))
    np.testing.assert_array_equal(client.reset([])[:, 0], [1, 1])


@pytest.mark.parametrize(
    ("env_ids", "seed"),
    [
        ([2], None),
        ([-1], None),
        (np.array([True]), None),
        (np.array([0.5]), None),
        (np.array([[0]]), None),
        (["a"], None),
        (None, -1),
        (None, 2**64),
    ],
)
def test_reset_refuses_invalid_arguments(client: tandem.SharedMemoryClient, env_ids: object, seed: int | None) -> None:
    """The client sends nothing, and no environment is reset."""
    client.step(_zeros(client))
    with pytest.raises(tandem.InvalidArgument):
        client.reset(env_ids, seed=seed)  # type: ignore[arg-type]
    np.testing.assert_array_equal(client.step(_zeros(client))[0][:, 0], [2, 2])


@pytest.mark.parametrize("modes", [tandem.AutoresetMode, gymnasium.vector.AutoresetMode])
def test_autoreset_mode_decides_when_the_next_episode_starts(modes: type) -> None:
    """Tandem's enum and Gymnasium's both work; an episode of the engine lasts 3 steps."""
    expected = {"SAME_STEP": [1, 2, 0, 1, 2], "NEXT_STEP": [1, 2, 3, 0, 1], "DISABLED": [1, 2, 3, 4, 5]}
    for mode, counts in expected.items():
        with (
            launch_trivial(episode_steps=3) as engine,
            tandem.SharedMemoryClient(engine.name, autoreset_mode=modes[mode]) as client,  # type: ignore[index]
        ):
            assert [int(client.step(_zeros(client))[0][0, 0]) for _ in counts] == counts
            if mode == "SAME_STEP":
                assert client.final_obs[0, 0] == 3


def test_autoreset_modes_are_named_as_gymnasium_names_them() -> None:
    """The enum's names and values equal Gymnasium's."""
    ours = {mode.name: mode.value for mode in tandem.AutoresetMode}
    assert ours == {mode.name: mode.value for mode in gymnasium.vector.AutoresetMode}
    assert set(ours) == set(tandem._native.AUTORESET_MODES)


def test_terminated_and_truncated_differ(client: tandem.SharedMemoryClient) -> None:
    """`dones` is 1 for a terminated environment whose truncated flag is 0."""
    _, _, dones = client.step(_zeros(client, 100))
    np.testing.assert_array_equal(dones, [1, 0])
    np.testing.assert_array_equal(client.terminateds, [1, 0])
    np.testing.assert_array_equal(client.truncateds, [0, 0])


def test_engine_failure_is_raised_and_the_engine_goes_on(client: tandem.SharedMemoryClient) -> None:
    """The failed exchange is over; the next step works."""
    with pytest.raises(tandem.EngineFailed, match="told to fail"):
        client.step(_zeros(client, FAIL))
    client.step(_zeros(client))


@pytest.mark.parametrize(
    "options", [{"wait": "eagerly"}, {"autoreset_mode": "SAME_STEP"}, {"timeout": -1}, {"timeout": math.nan}]
)
def test_invalid_options_are_refused(options: dict[str, object]) -> None:
    """The error is InvalidArgument, with no wait for an engine."""
    with pytest.raises(tandem.InvalidArgument):
        tandem.SharedMemoryClient(unique_name(), **options)  # type: ignore[arg-type]


def test_close_is_safe_twice_and_views_outlive_it() -> None:
    """Arrays stay readable and writable after `close`, the engine's exit and the client's collection."""
    with launch_trivial() as engine:
        client = tandem.SharedMemoryClient(engine.name)
        obs = client.step(_zeros(client, 5))[0]
        actions = client.actions
        client.close()
        client.close()
        assert client.closed and "closed" in repr(client)
        for call in (partial(client.step, actions), client.recv, client.reset, client.reconnect):
            with pytest.raises(tandem.ClientClosed):
                call()
        with tandem.SharedMemoryClient(engine.name):
            pass  # the client slot is free
    del client, call
    gc.collect()
    assert obs.shape == (2, 17) and actions[0, 0] == 5
    obs[:] = 1


def test_collected_client_releases_its_lock() -> None:
    """An array that is still referenced does not keep the client lock."""
    with launch_trivial() as engine:
        client = tandem.SharedMemoryClient(engine.name)
        obs, gone = client.obs, weakref.ref(client)
        del client
        gc.collect()
        assert gone() is None
        with tandem.SharedMemoryClient(engine.name):
            assert obs.shape == (2, 17)


def test_mapping_ends_with_the_last_view() -> None:
    """The region stays mapped while a view exists, and is unmapped with the last one."""

    def mapped(inode: str) -> bool:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return any(line.split()[4] == inode for line in maps)

    with launch_trivial() as engine:
        client = tandem.SharedMemoryClient(engine.name)
        row = client.obs[0, :2]
        client.close()
        del client
        gc.collect()
        # The region's file was made without a name, so it is found by its inode.
        inode = str(Path("/dev/shm", engine.name).stat().st_ino)
        assert mapped(inode)
        del row
        gc.collect()
        assert not mapped(inode)


def _as_vector(client: tandem.SharedMemoryClient) -> tandem.SharedMemoryVectorEnv:
    return tandem.SharedMemoryVectorEnv(client)


def _in_workers(client: tandem.SharedMemoryClient) -> tandem.vector.WorkerVectorEnv:
    return tandem.make_vec("CartPole-v1", 1, backend="python")


@pytest.mark.parametrize("make", [lambda client: client, _as_vector, _in_workers], ids=["client", "vector", "workers"])
@pytest.mark.parametrize(
    "action", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle.dumps", "copy.copy", "copy.deepcopy"]
)
def test_client_can_be_neither_pickled_nor_copied(
    client: tandem.SharedMemoryClient, make: Callable[[Any], Any], action: Callable[[Any], Any]
) -> None:
    """The TypeError advises creating the client in the process that uses it."""
    advice = "neither pickled nor copied: its .*(make one where it is used|in the other process)"
    with closing(make(client)) as made, pytest.raises(TypeError, match=advice):
        action(made)


def test_second_thread_is_refused() -> None:
    """While one thread waits, another thread's calls raise ConcurrentUse; `stats` works, and the wait continues."""
    with launch_trivial() as engine, tandem.SharedMemoryClient(engine.name, timeout=math.inf) as client:
        raised: list[BaseException] = []

        def step() -> None:
            try:
                client.step(_zeros(client, HANG))
            except tandem.TandemError as error:
                raised.append(error)

        thread = threading.Thread(target=step)
        thread.start()
        while not client.pending:  # then the thread waits without the GIL
            time.sleep(0.001)
        for call in (lambda: client.step(_zeros(client)), client.reset, client.reconnect, client.close):
            with pytest.raises(tandem.ConcurrentUse):
                call()
        client.stats()
        assert client.pending
        engine.close()
        thread.join()
        assert isinstance(raised[0], tandem.PeerGone)


def test_other_threads_run_while_one_waits() -> None:
    """`recv` releases the GIL while it waits."""
    with launch_trivial() as engine, tandem.SharedMemoryClient(engine.name, timeout=math.inf) as client:
        client.send(_zeros(client, HANG))
        thread = threading.Thread(target=lambda: pytest.raises(tandem.PeerGone, client.recv))
        thread.start()
        engine.close()  # hangs if the waiting thread keeps the GIL
        thread.join()


@pytest.mark.parametrize("share_core", [True, False])
def test_an_engine_shares_the_core_of_a_client_that_computes(share_core: bool) -> None:
    """Some steps after a millisecond begin on the client's core; none if the client keeps it."""
    cores = os.sched_getaffinity(0)
    with (
        launch_trivial() as engine,
        tandem.SharedMemoryClient(engine.name, wait="block", share_core=share_core) as client,
    ):
        try:
            os.sched_setaffinity(0, {min(cores)})
            deadline = time.monotonic() + 60
            for steps in itertools.count():
                client.step(_zeros(client))
                shared = client.stats().shared_core_exchanges
                if shared > 0 or (steps == 50 and not share_core):
                    break
                assert time.monotonic() < deadline
                time.sleep(1e-3)
        finally:
            os.sched_setaffinity(0, cores)
        assert (shared > 0) == share_core


def test_share_core_is_a_flag() -> None:
    """Another type is refused."""
    with pytest.raises(tandem.InvalidArgument, match="share_core: expected a bool, found 2"):
        tandem.SharedMemoryClient("none", share_core=2)  # type: ignore[arg-type]


def test_stats_split_time_into_policy_transport_and_physics(client: tandem.SharedMemoryClient) -> None:
    """The exchange count is exact; the step rate agrees with the three times."""
    assert client.stats().exchanges == 0
    client.reset()
    for _ in range(99):
        client.step(_zeros(client))
    stats = client.stats()
    assert stats.exchanges == 100
    assert stats.shared_core_exchanges <= 100 and stats.early_hits <= stats.early_wakes
    assert 0 < stats.step_p50_us <= stats.step_p99_us
    assert stats.policy_secs > 0 and stats.transport_secs >= 0 and stats.physics_secs > 0
    assert stats.steps_per_second == pytest.approx(
        100 * 2 / (stats.policy_secs + stats.transport_secs + stats.physics_secs)
    )
    with pytest.raises(AttributeError):
        stats.exchanges = 0  # type: ignore[misc]


def test_properties_describe_the_region(client: tandem.SharedMemoryClient) -> None:
    """The properties equal the launch options, and `repr` contains them."""
    assert (client.num_envs, client.obs_size, client.act_size, client.task) == (2, 17, 6, "Trivial-v0")
    for word in (client.name, "Trivial-v0", "num_envs=2", str(client.engine_pid), "open"):
        assert word in repr(client)


def test_ten_thousand_steps_allocate_nothing_that_stays(client: tandem.SharedMemoryClient) -> None:
    """Traced memory grows by less than 1 KiB, the peak resident memory by less than 1 MiB."""
    actions = _zeros(client)
    for _ in range(1000):
        client.step(actions)
    tracemalloc.start()
    before, peak_kib = tracemalloc.get_traced_memory()[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10_000):
        client.step(actions)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kib < 1024
