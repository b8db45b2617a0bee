"""The tasks in C++. The import registers them: `gymnasium.make("tandem/Ant-v5")` then makes one environment."""

from typing import NamedTuple

# Not the package: its import may be in progress, of a plug-in that imports this one.
from gymnasium.envs.registration import register, registry


class TaskFacts(NamedTuple):
    """Facts of a task that Gymnasium has and the engine does not.

    The steps that truncate an episode, the frames a second of a video at the speed of simulated time, and (width,
    height) in pixels of the images of `render`.
    """

    max_episode_steps: int
    render_fps: int
    render_size: tuple[int, int] = (480, 480)


# The names are those of `tandem-engine --list_tasks`.
TASKS = {
    "Ant-v5": TaskFacts(1000, 20),
    "CartPole-v1": TaskFacts(500, 50, (600, 400)),
    "HalfCheetah-v5": TaskFacts(1000, 20),
    "Hopper-v5": TaskFacts(1000, 125),
    "Humanoid-v5": TaskFacts(1000, 67),
    "HumanoidStandup-v5": TaskFacts(1000, 67),
    "InvertedDoublePendulum-v5": TaskFacts(1000, 20),
    "InvertedPendulum-v5": TaskFacts(1000, 25),
    "Pendulum-v1": TaskFacts(200, 30, (500, 500)),
    "Pusher-v5": TaskFacts(100, 20),
    "Reacher-v5": TaskFacts(50, 50),
    "Swimmer-v5": TaskFacts(1000, 25),
    "Walker2d-v5": TaskFacts(1000, 125),
}

# For a model or an engine of the user's own: episodes without a limit.
OTHER_TASK = TaskFacts(0, 30)

for _task, _facts in TASKS.items():
    if f"tandem/{_task}" not in registry:
        register(
            f"tandem/{_task}",
            entry_point="tandem.environments.single:SharedMemoryEnv",
            vector_entry_point="tandem.environments.make_vec:make_registered",
            max_episode_steps=_facts.max_episode_steps,
            kwargs={"task": _task},
        )
