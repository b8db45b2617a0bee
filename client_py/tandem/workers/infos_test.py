"""Infos through info areas, compared with those of Gymnasium's SyncVectorEnv."""

import enum
import functools
from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

import tandem
from tandem import _native
from tandem.spaces.fields import FIELD_DTYPES
from tandem.testing.row_workers import RESET, RESET_ONLY, STEP, RowWorkers
from tandem.testing.sample_envs import Results, ScriptedEnv
from tandem.testing.sample_spaces import assert_same
from tandem.workers.infos import InfoArea, VectorInfos

Script = Callable[[int, int], Any]  # (environment, step) -> info


class _Color(enum.IntEnum):
    RED = 1


class _Object:
    """Equal to each other one; the pickle has its module's name."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Object)

    __hash__ = object.__hash__


def _in_turn(*infos: Any) -> Script:
    return lambda index, step: infos[(7 * index + 3 * step) % len(infos)]


def _deep(index: int, step: int) -> Any:
    info: dict[str, Any] = {"value": step}
    for _ in range(30):
        info = {"x": info}
    return info


# The native reader merges these.
USUAL: dict[str, Script] = {
    "none": lambda index, step: {},
    "numbers": lambda index, step: {"a": index, "b": step * 0.5, "c": step % 2 == 0, "nan": float("nan"), "zero": -0.0},
    "limits of int64": lambda index, step: {"x": 2**63 - 1, "y": -(2**63)},
    "numbers of NumPy": lambda index, step: {name: dtype.type(step % 2) for name, dtype in FIELD_DTYPES.items()},
    "arrays": lambda index, step: {name: np.full((2, 3), step % 2, dtype) for name, dtype in FIELD_DTYPES.items()},
    "shapes of arrays": lambda index, step: {
        "scalar": np.array(step),
        "empty": np.zeros((2, 0)),
        "transposed": np.arange(12.0).reshape(3, 4).T,
        "strided": np.arange(10)[::2] + step,
        "8 dimensions": np.zeros((1,) * 8),
    },
    "objects": lambda index, step: {
        "none": None,
        "text": f"text {step}",
        "list": [1, step],
        "tuple": (step,),
        "enum": _Color.RED,
        "object": _Object(),
        "bytes": b"x",
        "class": OrderedDict,
        "str of NumPy": np.str_("abc"),
        "bool of NumPy": np.bool_(step % 2),
        "mapping": UserDict(x=step),
        "date": np.datetime64("2020-01-01"),
    },
    "dicts": lambda index, step: {"a": {"b": {"c": step, "d": {}}, "e": 1.0}, "f": {}, "g": {"h": None, "i": "x"}},
    "order of keys": lambda index, step: dict(
        sorted({"a": 1, "b": 2.0, "c": {"x": 1, "y": 2}}.items(), key=lambda item: hash((ord(item[0]), index, step)))
    ),
    "some environments": lambda index, step: {} if (index + step) % 3 else {"x": step},
    "other keys in each environment": lambda index, step: {f"key {(index + step) % 4}": step},
    "int of two types": _in_turn({"x": 1}, {"x": np.int64(3)}, {"x": np.array(4)}),
    "odd keys": lambda index, step: {
        **{key: step for key in ("a/b", "~", "", "~1", "0", "größe", "😀", "a\0b", "_private", "final")},
        "/": {"/": 1, "~0": 2},
    },
    "300 keys": lambda index, step: {f"key {key}": key + step for key in range(300)},
    "image": lambda index, step: {"image": np.full((30, 30, 3), step, np.uint8)},
    "long text": lambda index, step: {"x": "x" * 5000},
    "episode statistics": lambda index, step: {"episode": {"r": np.float64(step), "l": step}} if step % 3 == 0 else {},
    "dict without items() of a dict": lambda index, step: OrderedDict(x=1, y=step),
    "mapping": lambda index, step: UserDict(x=1, y=step),
}

# Gymnasium's code merges these.
UNUSUAL: dict[str, Script] = {
    "other types of NumPy": lambda index, step: {
        "long double": np.longdouble(step),
        "complex": np.complex64(step),
        "time": np.timedelta64(step, "s"),
        "long long": np.longlong(step),
    },
    "other arrays": lambda index, step: {
        "byte order": np.arange(3, dtype=">i4") + step,
        "objects": np.array([None, step, "x"], object),
        "texts": np.array(["ab", "c"]),
        "structs": np.zeros(2, "i4,f8"),
        "masked": np.ma.masked_array([1, step], [True, False]),
        "dates": np.array(["2020-01-01"], "M8[D]"),
    },
    "other dicts": lambda index, step: {"a": OrderedDict(x=1, y=step), "b": defaultdict(int, z=step)},
    "deep dicts": _deep,
    "int, float": _in_turn({"x": 1}, {"x": 1.5}),
    "bool, int": _in_turn({"x": True}, {"x": 3}),
    "float, None": _in_turn({"x": 1.5}, {"x": None}),
    "None, float": _in_turn({"x": None}, {"x": 1.5}, {"x": np.float32(2)}, {"x": "text"}),
    "uint8, int": _in_turn({"x": np.uint8(1)}, {"x": 3}),
    "uint8, larger int": _in_turn({"x": np.uint8(1)}, {"x": 300}),
    "uint8, larger int64": _in_turn({"x": np.uint8(1)}, {"x": np.int64(300)}),
    "int, text": _in_turn({"x": 1}, {"x": "text"}),
    "int, dict": _in_turn({"x": 1}, {"x": {"y": 1}}),
    "dict, int": _in_turn({"x": {"y": 1}}, {"x": 1}),
    "list, int": _in_turn({"x": [1]}, {"x": 1}),
    "bool of NumPy, bool": _in_turn({"x": np.True_}, {"x": True}),
    "two shapes": _in_turn({"x": np.zeros(2)}, {"x": np.ones(3)}),
    "a shape that NumPy broadcasts": _in_turn({"x": np.zeros(2)}, {"x": np.ones(1)}),
    "array, int": _in_turn({"x": np.zeros(2)}, {"x": 3}),
    "two dtypes": _in_turn({"x": np.zeros(2, np.float32)}, {"x": np.full(2, 1.1)}),
    "array, None": _in_turn({"x": np.zeros(2)}, {"x": None}),
    "another shape in each step": lambda index, step: {"x": np.ones(step)},
    "name of a mask": lambda index, step: {"x": 1, "_x": 5},
    "name of a mask, first": lambda index, step: {"_x": 5, "x": 1},
    "name of a mask's mask": lambda index, step: {"_x": 5, "__x": 2.0},
    "name of a mask in a dict": lambda index, step: {"a": {"_x": 5, "x": 1}},
    "final_obs": lambda index, step: {"final_obs": step},
    "final_obs in a dict": lambda index, step: {"a": {"final_obs": np.zeros(2)}},
    "final_info": lambda index, step: {"final_info": {"x": step}, "y": 1},
    "final_info that is no dict": lambda index, step: {"final_info": 3},
    "_final_obs": lambda index, step: {"_final_obs": 3},
    "_final_info": lambda index, step: {"_final_info": 3},
    "keys that are no texts": lambda index, step: {1: step, "a": 2, (1, 2): 3},
    "keys that are no texts in a dict": lambda index, step: {"a": {1: step}},
    "str of NumPy as key": lambda index, step: {np.str_("abc"): 1},
    "lone surrogate": lambda index, step: {"\ud800": step},
    "long key": lambda index, step: {"x" * 2000: step},
    "large int": lambda index, step: {"x": 2**70},
    "large int later": _in_turn({"x": 1}, {"x": 2**70}),
    "new keys in each step": lambda index, step: {f"key {step} {key}": np.ones(50) for key in range(8)},
}


class _Env(ScriptedEnv):
    """Returns copies of its observations, since SyncVectorEnv does not copy them before a reset."""

    def __init__(self, script: Script, index: int) -> None:
        super().__init__(
            functools.partial(script, index),
            on_step=lambda env, results: (env.obs.copy(), *results[1:]),
            length=3 + index % 3,
        )


def _both(
    script: Script, mode: AutoresetMode, num_envs: int, num_workers: int
) -> tuple[SyncVectorEnv[Any, Any], RowWorkers]:
    env_fns = [functools.partial(_Env, script, index) for index in range(num_envs)]
    envs = [env_fn() for env_fn in env_fns]
    return SyncVectorEnv(env_fns, autoreset_mode=mode), RowWorkers(envs, mode, num_workers, info_bytes=2**18)


def _result(call: Callable[..., Any], **keywords: Any) -> Any:
    """Returns the results of a call, or its exception."""
    try:
        return call(**keywords)
    except Exception as error:
        return error


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("name", USUAL | UNUSUAL)
def test_infos_equal_sync_vector_envs(name: str, mode: AutoresetMode) -> None:
    """Also exceptions, after which SyncVectorEnv is not usable."""
    for num_envs, num_workers in ((1, 1), (5, 2), (6, 3)):
        sync, ours = _both((USUAL | UNUSUAL)[name], mode, num_envs, num_workers)
        mask = np.zeros(num_envs, bool)
        for step in range(30):
            if step == 0 or mask.any():
                # Two dicts: reset takes the mask out.
                results = [
                    _result(envs.reset, seed=1, options=None if step == 0 else {"reset_mask": mask.copy()})
                    for envs in (sync, ours)
                ]
                mask = np.zeros(num_envs, bool)
            else:
                results = [_result(envs.step, actions=np.zeros(num_envs, int)) for envs in (sync, ours)]
                if mode == AutoresetMode.DISABLED and not isinstance(results[0], Exception):
                    mask = results[0][2] | results[0][3]
            if isinstance(results[0], Exception):
                assert type(results[1]) is type(results[0]) and str(results[1]) == str(results[0])
                assert "in the info of environment" in results[1].__notes__[0]
                break
            assert_same(results[1], results[0])


@pytest.mark.parametrize("name", USUAL)
def test_native_reader_merges_usual_infos(name: str) -> None:
    """The others take as long as SyncVectorEnv's."""
    _, workers = _both(USUAL[name], AutoresetMode.SAME_STEP, 4, 2)
    reader = _native.InfoReader(4, workers.areas, workers.final_observations.row)
    workers.arrays.resets[:] = RESET
    workers.run(RESET_ONLY)
    for _ in range(10):
        workers.run(STEP)
        if name == "mapping" and workers.arrays.dones.any():  # Gymnasium has an object array of final infos
            continue
        assert reader.merged() is not None


def test_values_are_those_of_the_call() -> None:
    """The environment changes and returns the same objects later, such as in the reset after an episode's end."""
    array, items = np.zeros(2), [0]

    def infos(step: int) -> Any:
        array[0] = items[0] = step
        return {"array": array, "list": items}

    workers = RowWorkers([ScriptedEnv(infos, length=1) for _ in range(2)], AutoresetMode.SAME_STEP, num_workers=1)
    workers.reset()
    read = workers.step([0, 0])[4]
    assert [each[0] for each in read["final_info"]["array"]] == [2, 2]
    assert [each[0] for each in read["array"]] == [3, 3]
    assert list(read["final_info"]["list"]) == [[2], [2]] and list(read["list"]) == [[3], [3]]


def test_chosen_workers() -> None:
    """A worker that took no part in the exchange still has its earlier infos."""
    workers = RowWorkers([ScriptedEnv(lambda step: {"step": step}) for _ in range(3)], num_workers=3)
    workers.reset()
    workers.workers[1].run(STEP, 1)
    assert_same(workers.infos.read([1]), {"step": np.array([0, 2, 0]), "_step": np.array([False, True, False])})
    assert list(workers.infos.read([0, 1])["step"]) == [1, 2, 0]
    assert workers.infos.read([]) == {}
    with pytest.raises(IndexError):
        workers.infos.read([3])


def _with_info(info: Any) -> ScriptedEnv:
    return ScriptedEnv(lambda step: info)


def test_new_writer_of_an_area() -> None:
    """Such as of a worker process that was started again: its columns have other places."""
    area = np.zeros(2**14, np.uint8)
    infos = VectorInfos(2, [InfoArea(0, 2, area)], lambda env_id: None)
    for info in ({"a": 1, "b": 2.0}, {"b": np.ones(3)}, {"b": "text", "a": 3}):
        workers = RowWorkers([_with_info(info), _with_info(info)], num_workers=1, info_areas=[area])
        workers.reset()
        assert_same(infos.read(), workers.infos.read())
        assert list(infos.read()) == [key for name in info for key in (name, f"_{name}")]


def test_infos_outlive_their_writer() -> None:
    """A worker process dies after an exchange, and its replacement starts while the trainer reads."""
    workers = RowWorkers([_with_info({"a": 1})], num_workers=1)
    workers.reset()
    expected = workers.infos.read()
    assert list(expected) == ["a", "_a"]
    RowWorkers([_with_info({"b": 2})], num_workers=1, info_areas=[workers.areas[0].area])
    assert_same(workers.infos.read(), expected)


def test_failed_environment_has_no_infos() -> None:
    """Its pickled final info is taken back."""

    def on_reset(env: ScriptedEnv, results: tuple[Any, Any]) -> Any:
        return results if len(env.calls) == 1 else None

    failing = ScriptedEnv(lambda step: {"x": "text"}, length=1, on_reset=on_reset)
    workers = RowWorkers([failing, _with_info({"x": "text"})], AutoresetMode.SAME_STEP, num_workers=1)
    workers.reset()
    assert len(workers.run(STEP)) == 1
    assert_same(workers.infos.read(), {"x": np.array([None, "text"], object), "_x": np.array([False, True])})


def test_text_of_a_full_area() -> None:
    """The message has the bytes, and the option."""

    def on_step(env: ScriptedEnv, results: Results) -> Any:
        return (*results[:4], {"x": "x" * 10_000})

    workers = RowWorkers([ScriptedEnv(on_step=on_step) for _ in range(3)], num_workers=1, info_bytes=2**15)
    workers.reset()
    ((env_id, error, _), (_, other, _)) = workers.run(STEP)
    assert env_id == 1 and isinstance(error, tandem.InvalidArgument)
    assert str(error) == (
        "info of environment 1: expected at most 6288 bytes of pickled values, found 10048; pass a larger info_bytes: "
        "half of it is for pickled values, and the worker's area has 32768"
    )
    assert "environment 2" in str(other)
    assert [each and len(each) for each in workers.infos.read()["x"]] == [10_000, None, None]


def test_log_that_is_full() -> None:
    """New keys are pickled then; known ones keep their columns."""

    def infos(step: int) -> Any:
        return {"x": step} if step % 2 else {f"key {step}": np.ones(20)}

    workers = RowWorkers([ScriptedEnv(infos)], num_workers=1, info_bytes=2**12)
    workers.reset()
    reader = _native.InfoReader(1, workers.areas, workers.final_observations.row)
    natively = [reader.merged() is not None for _ in range(60) if workers.run(STEP) == []]
    assert natively[:4] == [True] * 4 and natively[-4:] == [False, True, False, True]


# Offsets in InfoAreaHeader.
_MAGIC, _VERSION, _HEADER_BYTES, _ROWS, _ROWS_WITH_INFOS, _LOG_BYTES, _BLOB_BYTES, _WORDS = 0, 8, 12, 24, 28, 32, 40, 64


def _area(*infos: Any) -> NDArray[np.uint8]:
    workers = RowWorkers([_with_info(info) for info in infos], num_workers=1)
    workers.reset()
    return workers.areas[0].area


@pytest.mark.parametrize(
    ("offset", "value", "text"),
    [
        (_MAGIC, 1, "magic"),
        (_VERSION, 2, "version: expected 1, found 2"),
        (_HEADER_BYTES, 32, "header_bytes: expected 64, found 32"),
        (_ROWS, 3, "rows: expected 2, found 3"),
        (_LOG_BYTES, 2**31, "log: expected at most"),
        (_LOG_BYTES, 8, "record: expected at least 16, found 8"),
        (_BLOB_BYTES, 2**31, "blob: expected at most"),
        (_BLOB_BYTES, 0, "blob: expected a pickle for each row that needs one, found none for row 0"),
        (_WORDS, 7, "word: expected one of 2 patterns, found 7"),
        (_WORDS + 8, 1, "word: expected one of 2 patterns, found 1"),
        (80, 0, "record: expected 16 .. "),
        (80, 24, "record: expected 16 .. "),
        (84, 9, "record: expected a column or pattern, found 9"),
        (85, 2, "column: expected a known part, value, type and dims, found 2, "),
        (86, 99, "column: expected a known part, value, type and dims, found 0, 99, "),
        (87, 99, "column: expected a known part, value, type and dims, found 0, 2, 99, "),
        (88, 3, "column: expected a known part, value, type and dims, found 0, 2, 12, 3"),
        (92, 2**31, "path: expected at most"),
        (128, 0x78787878, "path: expected a JSON pointer, found xxxx"),
    ],
)
def test_invalid_bytes(offset: int, value: int, text: str) -> None:
    """Another program may write to the region. Each number is checked; the message says which one."""
    area = _area({"number": 1.5, "text": "x"}, {"text": "x"})
    width = 1 if 84 <= offset < 92 else 4
    area[offset : offset + width] = list(value.to_bytes(width, "little"))
    with pytest.raises(tandem.BrokenPeer, match="infos of environments from 0: info area: " + text):
        VectorInfos(2, [InfoArea(0, 2, area)], lambda env_id: None).read()


def test_random_bytes() -> None:
    """A read ends with infos or BrokenPeer."""
    rng = np.random.default_rng(0)
    whole = _area({"a": {"b": 1.5, "c": np.ones((2, 3)), "d": {}}, "e": None, "f": np.True_}, {"a": {"c": 3}}, {})
    broken = 0
    used = _WORDS + 24 + int(whole[_LOG_BYTES : _LOG_BYTES + 4].view(np.uint32)[0])
    for _ in range(3000):
        area = whole.copy()
        for place in rng.integers(_ROWS_WITH_INFOS, used, rng.integers(1, 4)):
            area[place] = rng.choice(np.array([0, 1, 2, 3, 4, 7, 16, 48, 127, 128, 255], np.uint8))
        try:
            VectorInfos(3, [InfoArea(0, 3, area)], lambda env_id: None).read()
        except tandem.BrokenPeer:
            broken += 1
    assert 500 < broken < 2900


@pytest.mark.parametrize(
    "area",
    [
        InfoArea(0, 4, np.zeros(2**12, np.uint8)),
        InfoArea(2, 2, np.zeros(2**12, np.uint8)),
        InfoArea(2**32 - 1, 2, np.zeros(2**12, np.uint8)),
        InfoArea(0, 2, np.zeros(64, np.uint8)),
        InfoArea(0, 2, np.zeros(2**12, np.int8)),
        InfoArea(0, 2, np.zeros(2**12, np.uint8)[::2]),
    ],
)
def test_areas_that_do_not_fit(area: InfoArea) -> None:
    """The reader's environments are 0 to 2."""
    with pytest.raises(tandem.InvalidArgument, match="areas: expected uint8 arrays for rows of 3 environments"):
        VectorInfos(3, [area], lambda env_id: None)
