"""Measures how observations reach a GPU, and prints a table. tools/gpu_pack packs this program and describes it.

Each row is the median of many steps, in microseconds. Rows whose parts are missing say so.
"""

import functools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("TANDEM_CUDA_LIBRARY", "libcuda.so.1")

import tandem
from tandem._native import cuda_driver
from tandem.testing import cuda_engine, cuda_steps
from tandem.testing.standin import StandIn

try:
    import torch
except ImportError:
    torch = None

_ENVS = int(os.environ.get("TANDEM_GPU_ENVS", "4096"))
_STEPS = int(os.environ.get("TANDEM_GPU_STEPS", "2000"))
_TASK = "HalfCheetah-v5"


def _row(name: str, value: str) -> None:
    print(f"{name:<58} {value:>18}", flush=True)


def _p50(step: Callable[[], object], steps: int = _STEPS) -> float:
    for _ in range(20):
        step()
    times = []
    for _ in range(steps):
        start = time.perf_counter_ns()
        step()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(times)


@contextmanager
def _gpu_engine() -> Iterator[tandem.SharedMemoryClient]:
    with (
        tandem.launch_engine(num_envs=_ENVS, server=cuda_engine.__file__, timeout=120) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        yield client


@contextmanager
def _cpu_engine() -> Iterator[tandem.SharedMemoryClient]:
    with (
        tandem.launch_engine(_TASK, num_envs=min(_ENVS, 256), timeout=120) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        yield client


def _measure_opening() -> None:
    times = []
    with tandem.launch_engine(num_envs=_ENVS, server=cuda_engine.__file__, timeout=120) as engine:
        for _ in range(20):
            with tandem.SharedMemoryClient(engine.name, timeout=60) as client:
                start = time.perf_counter_ns()
                client.obs_cuda.__dlpack__()
                times.append((time.perf_counter_ns() - start) / 1e3)
    _row("CUDA IPC: opening an engine's arrays, p50", f"{statistics.median(times):,.0f} us")


def _measure_engine_on_gpu() -> None:
    with _gpu_engine() as client:
        client.reset(seed=0)
        alone = _p50(lambda: client.step(client.actions))
        _row(f"engine on the GPU, {_ENVS} envs: a step", f"{alone:,.1f} us")
        if torch is None:
            _row("  the same to a torch tensor", "no torch")
            return

        def step() -> None:
            client.step(client.actions)
            torch.from_dlpack(client.obs_cuda)
            torch.cuda.synchronize()

        _row("  the same to a torch tensor, without a copy", f"{_p50(step):,.1f} us")


def _step_and_wait(steps: Any, actions: Any) -> None:
    steps.step(actions)
    torch.cuda.synchronize()


def _measure_copies() -> None:
    if torch is None:
        _row("engine on the CPU: step to a torch tensor", "no torch")
        return
    import tandem.torch

    with _cpu_engine() as client:
        client.reset(seed=0)
        actions = torch.zeros((client.num_envs, client.act_size), device="cuda")
        host = client.actions

        def step_with_actions_of_the_gpu() -> None:
            host[:] = actions.cpu().numpy()
            client.step(host)

        def pageable() -> None:
            step_with_actions_of_the_gpu()
            torch.from_numpy(client.obs).to("cuda")
            torch.cuda.synchronize()

        pinned_obs = torch.empty(client.obs.shape, dtype=torch.float32, pin_memory=True)

        def pinned() -> None:
            step_with_actions_of_the_gpu()
            pinned_obs.numpy()[:] = client.obs
            pinned_obs.to("cuda", non_blocking=True)
            torch.cuda.synchronize()

        _row(f"engine on the CPU, {client.num_envs} envs: a step", f"{_p50(lambda: client.step(host)):,.1f} us")
        _row('  actions of the GPU, torch.from_numpy(obs).to("cuda")', f"{_p50(pageable):,.1f} us")
        _row("  actions of the GPU, torch's pinned copy", f"{_p50(pinned):,.1f} us")
        for overlap in (False, True):
            steps = tandem.torch.step_to(client, "cuda", overlap=overlap)
            steps.reset(seed=0)
            ours = functools.partial(_step_and_wait, steps, actions)
            name = "  actions of the GPU, tandem.torch.step_to" + (", overlap" if overlap else "")
            _row(name, f"{_p50(ours):,.1f} us")


def _measure_overlap() -> None:
    """Compares an engine and a device that work one after the other with both at once."""
    if torch is None:
        _row("overlap of a copy and the next step", "no torch")
        return
    big = 64 << 20
    with _cpu_engine() as client:
        client.reset(seed=0)
        source = torch.empty(big, dtype=torch.uint8, pin_memory=True)
        target = torch.empty(big, dtype=torch.uint8, device="cuda")

        def copy() -> None:
            target.copy_(source, non_blocking=True)

        def copy_alone() -> None:
            copy()
            torch.cuda.synchronize()

        def both() -> None:
            client.send(client.actions)
            copy()
            client.recv()
            torch.cuda.synchronize()

        step_us, copy_us = _p50(lambda: client.step(client.actions), 200), _p50(copy_alone, 200)
        _row("overlap: a step; a copy of 64 MiB", f"{step_us:,.0f}; {copy_us:,.0f} us")
        _row("  both at once", f"{_p50(both, 200):,.0f} us")


def _measure_warp() -> None:
    try:
        import mujoco_warp  # noqa: F401
    except ImportError:
        _row("MuJoCo Warp, steps a second", "no mujoco-warp")
        return
    server = Path(__file__).with_name("warp_engine.py")
    if not server.exists():
        server = Path(__file__).parents[1] / "client_py" / "examples" / "warp_engine.py"
    with (
        tandem.launch_engine(num_envs=_ENVS, server=server, timeout=600) as engine,
        tandem.SharedMemoryClient(engine.name, timeout=60) as client,
    ):
        client.reset(seed=0)
        micros = _p50(lambda: client.step(client.actions), 200)
        _row(f"MuJoCo Warp, {_ENVS} envs ({client.gpu_path or 'CPU'}): steps a second", f"{_ENVS / micros * 1e6:,.0f}")


def _check_values() -> None:
    rate = cuda_steps.run(_STEPS)
    _row(f"{_STEPS:,} steps, each observation equal: steps a second", f"{rate:,.0f}")


_MEASURES = (_check_values, _measure_opening, _measure_engine_on_gpu, _measure_copies, _measure_overlap, _measure_warp)


def main() -> int:
    """Prints the table; returns 0, or 1 without a driver."""
    try:
        driver = cuda_driver()
    except tandem.TandemError as error:
        print(f"no GPU: {type(error).__name__}: {error}")
        return 1
    names = ", ".join(name for _, name, _ in driver["devices"])
    versions = f"Python {sys.version.split()[0]}, torch {getattr(torch, '__version__', 'none')}"
    print(f"CUDA driver {driver['version']}: {names}; {versions}")
    StandIn()  # keeps the device's context for all measurements
    failed = 0
    for measure in _MEASURES:
        try:
            measure()
        except Exception as error:  # the other rows follow
            failed += 1
            _row(measure.__name__.removeprefix("_"), "FAILED")
            print(f"  {type(error).__name__}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
