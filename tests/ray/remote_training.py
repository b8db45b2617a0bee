"""A training of `hosts_test`: prints what happens, as JSON lines, until its standard input ends.

The arguments are Ray's address, the number of workers and the steps of a rollout.
"""

import json
import sys
import threading
import time
from typing import Any

import ray

import tandem
from tandem.ray import Placement, rollout_workers
from tests.ray.policies import Linear, Reinforce


def main() -> None:
    """Trains."""
    address, nodes, horizon = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ray.init(address=address, log_to_driver=False)
    stop = threading.Event()

    def await_end() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=await_end, daemon=True).start()
    options: dict[str, Any] = {"num_envs": 16, "horizon": horizon, "policy": Linear, "seed": 0}
    with rollout_workers("CartPole-v1", nodes=nodes, **options, placement=Placement(resources={"CPU": 1})) as workers:
        trainer, losses, count = Reinforce(), 0, nodes
        hosts = {worker.index: worker.node.host for worker in workers._pool.running if worker.node is not None}
        sent = dict.fromkeys(hosts.values(), 0)  # host -> bytes of its rollouts
        _say("started")
        while not stop.is_set():
            workers.publish(trainer.weights)
            try:
                rollouts = workers.collect(timeout=60)
            except tandem.StepTimeout as error:
                _say("timeout", text=str(error))
                continue
            for rollout in rollouts:
                sent[hosts[rollout.worker]] += rollout.nbytes
            trainer.learn(rollouts)
            for loss in workers.losses[losses:]:
                _say("loss", kind=type(loss.error).__name__, rollouts=loss.rollouts)
            losses = len(workers.losses)
            if (now := workers.stats().workers) != count:
                count = now
                _say("workers", count=count)
        _say("ended", sent=sent, returns=trainer.returns[-20:], **workers.stats()._asdict())
    ray.shutdown()


def _say(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, "time": time.time(), **facts}), flush=True)


if __name__ == "__main__":
    main()
