"""The tasks in Gymnasium's registry: `gymnasium.make("tandem/Ant-v5")`, and `make_vec`, once tandem is imported."""

import gymnasium

# Name -> steps that truncate an episode. What `tandem-engine --list_tasks` prints.
TASKS = {
    "Ant-v5": 1000,
    "CartPole-v1": 500,
    "HalfCheetah-v5": 1000,
    "Hopper-v5": 1000,
    "Humanoid-v5": 1000,
    "HumanoidStandup-v5": 1000,
    "InvertedDoublePendulum-v5": 1000,
    "InvertedPendulum-v5": 1000,
    "Pendulum-v1": 200,
    "Pusher-v5": 100,
    "Reacher-v5": 50,
    "Swimmer-v5": 1000,
    "Walker2d-v5": 1000,
}

# Name -> (width, height) of Gymnasium's picture, where it is not 480 by 480.
PICTURES = {"CartPole-v1": (600, 400), "Pendulum-v1": (500, 500)}

# Frames a second of a video at the speed of simulated time, as Gymnasium's own environments have it.
RENDER_FPS = {
    "Ant-v5": 20,
    "CartPole-v1": 50,
    "HalfCheetah-v5": 20,
    "Hopper-v5": 125,
    "Humanoid-v5": 67,
    "HumanoidStandup-v5": 67,
    "InvertedDoublePendulum-v5": 20,
    "InvertedPendulum-v5": 25,
    "Pendulum-v1": 30,
    "Pusher-v5": 20,
    "Reacher-v5": 50,
    "Swimmer-v5": 25,
    "Walker2d-v5": 125,
}


def register_tasks() -> None:
    """Registers every task that is not registered yet."""
    for task, max_episode_steps in TASKS.items():
        if f"tandem/{task}" not in gymnasium.registry:
            gymnasium.register(
                f"tandem/{task}",
                entry_point="tandem.single:SharedMemoryEnv",
                vector_entry_point="tandem.environments:make_vec",
                max_episode_steps=max_episode_steps,
                kwargs={"task": task},
            )
