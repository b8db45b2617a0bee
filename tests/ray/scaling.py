"""Measures `tandem.ray` on node processes of this machine, fits a model, and computes larger clusters.

Run by tools/scaling.
"""

import argparse
import contextlib
import heapq
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray  # has psutil, which is not installed everywhere

# isort: split
import psutil

from tandem.ray import Placement, RolloutWorkers, rollout_workers
from tandem.ray.weights import MOST_BYTES_OF_REQUEST
from tests.ray.actor_critic import ActorCritic, random_weights
from tests.ray.clusters import local_cluster, marked

_TASK, _OBS, _ACT, _ENVS = "HalfCheetah-v5", 17, 6, 16
_HORIZON = 256  # 4,096 steps a rollout
_NODES = (16, 256, 4096)


@dataclass(frozen=True)
class Model:
    """Costs of the caller's process and of a node.

    Attributes:
      node_steps: Steps a second of one node, by its bare loop.
      cores: Of a node.
      core_steps: Steps a second of one core: 1 / single-core step time.
      rollout_steps: Steps of a rollout.
      rollout_bytes: Bytes of its arrays.
      weights_bytes: Bytes of the weights of one version.
      call_secs: What a rollout costs the caller's process, whatever its size.
      byte_secs: What each of its bytes costs there.
      node_share: Share of a node's time that Ray takes.
      network_bytes: Bytes a second of the caller's network.
    """

    node_steps: float
    cores: int
    core_steps: float
    rollout_steps: int
    rollout_bytes: int
    weights_bytes: int
    call_secs: float
    byte_secs: float
    node_share: float
    network_bytes: float

    def limits(self, nodes: int) -> dict[str, float]:
        """Returns the steps a second that each part allows: the least is the cluster's."""
        bytes_of_step = self.rollout_bytes / self.rollout_steps
        if self.weights_bytes <= MOST_BYTES_OF_REQUEST:
            sent = bytes_of_step + self.weights_bytes / self.rollout_steps  # with the request
        else:
            # Ray's object managers copy an object from node to node: the caller sends it to few nodes, here to two.
            sent = bytes_of_step + 2 * self.weights_bytes / (nodes * self.rollout_steps)
        return {
            "nodes": nodes * self.node_steps * (1 - self.node_share),
            "caller": self.rollout_steps / (self.call_secs + self.rollout_bytes * self.byte_secs),
            "network": self.network_bytes / sent,
        }

    def efficiency(self, steps: float, nodes: int) -> float:
        """Returns steps/s divided by what the cores alone could do."""
        return steps / (nodes * self.cores * self.core_steps)

    def simulated(self, nodes: int, depth: int = 2, rounds: int = 40, spread: float = 0.1, seed: int = 0) -> float:
        """Simulates workers whose rollouts take random times, and one caller that takes one rollout after the other.

        Args:
          nodes: Their number.
          depth: Outstanding requests of each.
          rounds: Rollouts of each node, on average.
          spread: Standard deviation of a rollout's time, relative to its mean.
          seed: Of the times.

        Returns:
          Steps a second.
        """
        random = np.random.default_rng(seed)
        mean = self.rollout_steps / (self.node_steps * (1 - self.node_share))
        busy = max(
            self.call_secs + self.rollout_bytes * self.byte_secs,
            self.rollout_bytes / self.network_bytes,
        )

        def duration() -> float:
            return float(max(0.1 * mean, random.normal(mean, spread * mean)))

        # (time of its end, node): the rollouts that are being made.
        running = [(duration(), node) for node in range(nodes)]
        heapq.heapify(running)
        waiting = [depth - 1] * nodes  # requests in the node's queue
        idle: dict[int, float] = {}  # node -> since when
        free, taken = 0.0, 0
        while taken < rounds * nodes:
            end, node = heapq.heappop(running)
            if waiting[node]:
                waiting[node] -= 1
                heapq.heappush(running, (end + duration(), node))
            else:
                idle[node] = end
            free = max(free, end) + busy  # the caller takes it, and requests the next
            taken += 1
            if node in idle:
                del idle[node]
                heapq.heappush(running, (free + duration(), node))
            else:
                waiting[node] += 1
        return taken * self.rollout_steps / free


@contextlib.contextmanager
def _bare(processes: int, seconds: float, cores: list[int]) -> Iterator[list[Any]]:
    started = []
    with contextlib.ExitStack() as stack:
        for index in range(processes):
            asked = {
                "task": _TASK,
                "num_envs": _ENVS,
                "horizon": _HORIZON,
                "core": cores[index % len(cores)],
                "seconds": seconds,
            }
            command = [sys.executable, "-m", "tests.ray.actor_critic", json.dumps(asked)]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process: Any = stack.enter_context(subprocess.Popen(command, text=True, **pipes))
            stack.callback(process.stdin.close)
            started.append(process)
        for process in started:
            assert process.stdout.readline() == "ready\n"
        yield started


def _bare_steps(processes: list[Any]) -> float:
    """Returns the steps a second of the bare loops, together."""
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [json.loads(process.stdout.readline()) for process in processes]
    return float(sum(each["steps"] / each["seconds"] for each in found))


def _stop(processes: list[Any], stopped: bool) -> None:
    for process in processes:
        for each in (process, *process.children(recursive=True)):
            each.suspend() if stopped else each.resume()


def _ray_steps(
    workers: RolloutWorkers, seconds: float, weights: Any, others: list[psutil.Process]
) -> tuple[float, float]:
    """Returns steps a second, and how many cores the caller's process and other processes took."""
    count = workers.stats().workers
    workers.publish(weights)
    workers.collect(2 * count)  # those from before the measurement
    before = _cpu_secs(others)
    started, steps = time.monotonic(), 0
    while (took := time.monotonic() - started) < seconds:
        workers.publish(weights)
        steps += sum(rollout.steps for rollout in workers.collect(count))
    return steps / took, (_cpu_secs(others) - before) / took


def _cpu_secs(processes: list[psutil.Process]) -> float:
    """Returns the CPU seconds so far of this process and others, to a nanosecond."""
    total = time.process_time()
    for process in processes:
        for path in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                total += int(path.read_text("ascii").split()[0]) / 1e9
    return total


def _pin(workers: RolloutWorkers, cores: list[int]) -> list[psutil.Process]:
    """Pins each worker and its engine to one core; returns the workers' processes."""
    found = []
    for worker in workers._fleet.running:
        assert worker.started is not None
        for pid in (worker.started.pid, worker.started.engine_pid):
            for thread in psutil.Process(pid).threads():
                os.sched_setaffinity(thread.id, [cores[worker.index % len(cores)]])
        found.append(psutil.Process(worker.started.pid))
    return found


def overhead(processes: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Compares rollouts of so many node processes with bare loops in as many processes, in turn."""
    cores = sorted(os.sched_getaffinity(0))
    weights = random_weights(_OBS, _ACT)
    ratios, bare_rates, ray_rates, taken, idle = [], [], [], [], []
    options: dict[str, Any] = {"num_envs": _ENVS, "horizon": _HORIZON, "policy": ActorCritic, "seed": 0}
    with (
        local_cluster(processes),
        rollout_workers(_TASK, nodes=processes, **options, placement=Placement(resources={"CPU": 1})) as workers,
    ):
        actors = _pin(workers, cores)
        of_workers = {process.pid for actor in actors for process in (actor, *actor.children(recursive=True))}
        others = [process for process in marked() if process.pid not in of_workers]
        with _bare(processes, seconds, cores) as loops:
            for round_number in range(rounds):
                for kind in ("bare", "ray") if round_number % 2 else ("ray", "bare"):
                    _stop(actors, kind == "bare")
                    if kind == "bare":
                        started, before = time.monotonic(), _cpu_secs(others)
                        bare_rates.append(_bare_steps(loops))
                        idle.append((_cpu_secs(others) - before) / (time.monotonic() - started))
                    else:
                        rate, share = _ray_steps(workers, seconds, weights, others)
                        ray_rates.append(rate)
                        taken.append(share)
                ratios.append(ray_rates[-1] / bare_rates[-1])
            _stop(actors, False)
        rollout = workers.collect(1)[0]
    # Workers on all cores lose there what the others take beyond what they took during the bare loop, too.
    more = statistics.median(taken) - statistics.median(idle)
    left = 1 - more / len(cores) if processes >= len(cores) else 1.0
    return {
        "processes": processes,
        "bare": statistics.median(bare_rates),
        "ray": statistics.median(ray_rates),
        "ratio": statistics.median(ratios),
        "ratio_range": (min(ratios), max(ratios)),
        "taken_cores": statistics.median(taken),
        "idle_cores": statistics.median(idle),
        "ratio_of_left": statistics.median(ratios) / left,
        "rollout_bytes": rollout.nbytes,
    }


class _Still:
    """Does nothing: for the costs of the caller's process."""

    def __init__(self, obs_space: Any, act_space: Any) -> None:
        self._size = act_space.shape[0]

    def load(self, weights: Any) -> None:
        """Takes nothing."""

    def act(self, obs: Any, random: np.random.Generator) -> tuple[Any, dict[str, Any]]:
        """Returns zeros."""
        return np.zeros((len(obs), self._size), np.float32), {}


def caller_costs(seconds: float) -> tuple[float, float]:
    """Returns the seconds of the caller's CPU time for each rollout, and for each byte of one, by least squares."""
    rows, times = [], []
    with local_cluster(1):
        for num_envs, horizon in ((1, 1), (16, 16), (16, 256), (64, 256), (64, 1024)):
            options: dict[str, Any] = {"num_envs": num_envs, "horizon": horizon, "policy": _Still, "max_lag": 4}
            with rollout_workers("Pendulum-v1", nodes=1, **options) as workers:
                workers.collect(8)
                cpu, started, count = time.process_time(), time.monotonic(), 0
                while time.monotonic() - started < seconds:
                    rollouts = workers.collect(4)
                    count += len(rollouts)
                    # What a learner does at least: each byte is read once.
                    sum(float(rollout.rewards.sum()) + float(rollout.obs.sum()) for rollout in rollouts)
                rows.append((1.0, rollouts[0].nbytes))
                times.append((time.process_time() - cpu) / count)
    (call, byte), *_ = np.linalg.lstsq(np.asarray(rows), np.asarray(times), rcond=None)
    return float(call), max(float(byte), 0.0)


def rllib_steps(runners: int, seconds: float) -> float:
    """Returns the steps a second of RLlib's own EnvRunners on Gymnasium's environments, with equal networks."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    with local_cluster(runners + 1):
        config = (
            PPOConfig()
            .environment(_TASK)
            .env_runners(num_env_runners=runners, num_envs_per_env_runner=_ENVS, rollout_fragment_length=_HORIZON)
            .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh"))
            .training(train_batch_size_per_learner=_ENVS * _HORIZON * runners)
            .learners(num_learners=0)
        )
        algorithm = config.build_algo()
        group = algorithm.env_runner_group

        def sample() -> int:
            episodes = group.foreach_env_runner(lambda runner: runner.sample(), local_env_runner=False)
            return sum(len(episode) for of_runner in episodes for episode in of_runner)

        sample()
        started, steps = time.monotonic(), 0
        while time.monotonic() - started < seconds:
            steps += sample()
        took = time.monotonic() - started
        algorithm.stop()
        assert ray.is_initialized()
    return steps / took


def model_of(measured: dict[str, Any], cores: int, network_bytes: float) -> Model:
    """Returns the model of measurements, for nodes with so many cores."""
    one = measured["overhead"][0]
    weights = sum(layer.nbytes for layers in random_weights(_OBS, _ACT).values() for layer in layers)
    return Model(
        node_steps=one["bare"] * cores,
        cores=cores,
        core_steps=one["bare"],
        rollout_steps=_ENVS * _HORIZON,
        rollout_bytes=one["rollout_bytes"],
        weights_bytes=weights,
        call_secs=measured["call_secs"],
        byte_secs=measured["byte_secs"],
        node_share=max(0.0, 1 - one["ratio"]),
        network_bytes=network_bytes,
    )


def print_clusters(model: Model) -> None:
    """Prints what limits clusters of several sizes, and by what rollouts the limit moves."""
    print(f"\nmodel: {json.dumps(asdict(model))}")
    print(
        "| nodes | steps of a rollout | nodes allow | caller allows | network allows | limit | simulated | efficiency |"
    )
    print("|--:|--:|--:|--:|--:|---|--:|--:|")
    for nodes in _NODES:
        for longer in (1, 16):
            longest = Model(
                **{
                    **asdict(model),
                    "rollout_steps": model.rollout_steps * longer,
                    "rollout_bytes": model.rollout_bytes * longer,
                }
            )
            limits = longest.limits(nodes)
            simulated = longest.simulated(nodes, rounds=20)
            limit = min(limits, key=lambda name: limits[name])
            print(
                f"| {nodes:,} | {longest.rollout_steps:,} | {limits['nodes']:,.0f} | {limits['caller']:,.0f} | "
                f"{limits['network']:,.0f} | {limit} | {simulated:,.0f} | {longest.efficiency(simulated, nodes):.3f} |"
            )


def main() -> None:
    """Measures, or reads measurements, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measured", type=Path, help="JSON of an earlier run: only computes")
    parser.add_argument("--out", type=Path, help="writes the measurements to this file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--cores", type=int, default=16, help="of a node of the computed clusters")
    parser.add_argument("--network_gbit", type=float, default=25.0)
    parser.add_argument("--rllib", action="store_true", help="also measures RLlib's EnvRunners (needs torch)")
    asked = parser.parse_args()
    if asked.measured:
        measured = json.loads(asked.measured.read_text())
    else:
        measured = {"overhead": []}
        print(
            "| node processes | bare loop, steps/s | tandem.ray | ratio (least .. greatest) "
            "| cores of Ray and caller (meanwhile, during the bare loop) | ratio to what they left |"
        )
        print("|--:|--:|--:|--:|--:|--:|")
        for processes in asked.processes:
            row = overhead(processes, asked.rounds, asked.seconds)
            measured["overhead"].append(row)
            low, high = row["ratio_range"]
            print(
                f"| {processes} | {row['bare']:,.0f} | {row['ray']:,.0f} | {row['ratio']:.3f} "
                f"({low:.3f} .. {high:.3f}) | {row['taken_cores']:.3f}, {row['idle_cores']:.3f} | "
                f"{row['ratio_of_left']:.3f} |",
                flush=True,
            )
            if asked.rllib and processes <= 2:
                row["rllib"] = rllib_steps(processes, asked.rounds * asked.seconds)
                print(
                    f"RLlib's EnvRunners: {row['rllib']:,.0f}; tandem.ray is {row['ray'] / row['rllib']:.1f} times",
                    flush=True,
                )
        measured["call_secs"], measured["byte_secs"] = caller_costs(asked.seconds)
        print(f"caller: {measured['call_secs'] * 1e3:.3f} ms a rollout, {measured['byte_secs'] * 1e9:.3f} ns a byte")
    if asked.out:
        asked.out.write_text(json.dumps(measured, indent=1))
    print_clusters(model_of(measured, asked.cores, asked.network_gbit * 1e9 / 8))


if __name__ == "__main__":
    main()
