"""Commands an engine while a run goes on: watches it, randomises it, moves things, draws and takes pictures.

One thread steps half-cheetahs by a swinging gait, as a training would; the other commands. Neither waits for the other.
"""

import argparse
import sys
import threading
import time
from pathlib import Path

import numpy as np

import tandem

TASK = "HalfCheetah-v5"


def run(client: tandem.SharedMemoryClient, stop: threading.Event) -> None:
    """Steps until `stop` is set, as a training does."""
    phase = np.arange(client.num_envs)[:, None] + np.arange(client.act_size)[None, :]
    step = 0
    while not stop.is_set():
        np.sin(0.3 * step + phase, out=client.actions, casting="same_kind")
        client.step(client.actions)
        step += 1


def watch(client: tandem.SharedMemoryClient, seconds: float) -> int:
    """Prints telemetry of environment 0 for `seconds`; returns the number of frames."""
    until = time.monotonic() + seconds
    count = 0
    with client.telemetry.stream(fps=10) as frames:
        for frame in frames:
            count += 1
            print(f"  exchange {frame.frame_seq:8,d}: x = {frame.observation_qpos[0]:+.2f} m", flush=True)
            if time.monotonic() > until:
                break
        print(f"  {count} frames, {frames.dropped} dropped", flush=True)
    return count


def look(client: tandem.SharedMemoryClient) -> None:
    """Prints the schema, the services and the bodies of the scene."""
    schema = client.get_schema()
    print(
        f"{client.task}: {schema.observation_size} observations, actions {', '.join(schema.action_names) or 'unnamed'}"
    )
    for name, service in sorted(client.services().items()):
        print(f"  {name:9} {'on' if service.enabled else 'off':3} {', '.join(m.name for m in sorted(service.methods))}")
    bodies = [each.name for each in client.scene.entities(components=True) if "body" in each.components]
    print(f"{client.scene.info().entity_count} entities, among them the bodies {', '.join(bodies)}", flush=True)


def randomise(client: tandem.SharedMemoryClient) -> None:
    """Sets ranges of masses and frictions, which each environment draws from at its next reset; no step waits."""
    contract = tandem.services.SimulationContract(
        mass_scale_range=(0.7, 1.3), friction_range=(0.3, 0.6), joint_position_noise=0.1
    )
    unused = client.agent.set_contract(contract, seed=0)
    print(f"contract taken on; this task has no use for: {', '.join(unused) or 'nothing of it'}", flush=True)


def picture(client: tandem.SharedMemoryClient, path: Path) -> None:
    """Writes a picture of environment 0 with an arrow above the cheetah."""
    torso = client.scene.entity("torso").transform
    assert torso is not None and torso.position is not None
    try:
        client.debug.arrow(torso.position + [0, 0, 0.3], (1, 0, 0), color=(1, 0.2, 0))
        # A long timeout: the engine renders in the time that steps leave, and compiles shaders for the first image.
        image = client.viewport.frame(width=480, height=320, format="png", timeout=60)
        client.debug.clear()
    except tandem.Unsupported as error:
        print(f"no picture: {error}")
        return
    path.write_bytes(image.encoded)
    print(f"picture of exchange {image.frame_seq:,d}: {path}", flush=True)


def main() -> None:
    """Reads the command line, and runs the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num_envs", type=int, default=8, help="environments")
    parser.add_argument("--seconds", type=float, default=2, help="how long to watch")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for cheetah.png")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    with (
        tandem.launch_engine(TASK, num_envs=arguments.num_envs) as engine,
        tandem.SharedMemoryClient(engine.name) as client,
    ):
        client.reset(seed=0)
        stop = threading.Event()
        stepping = threading.Thread(target=run, args=(client, stop))
        stepping.start()
        try:
            look(client)
            randomise(client)
            watch(client, arguments.seconds)
            states = client.mujoco.joint_state(range(client.num_envs))
            best = max(states, key=lambda state: float(state.positions[0]))
            print(f"furthest: environment {best.env_id}, {best.positions[0]:+.2f} m", flush=True)
            picture(client, arguments.out / "cheetah.png")
        finally:
            stop.set()
            stepping.join()
        print(f"meanwhile: {client.stats().exchanges:,d} exchanges of {client.num_envs} environments")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted")
