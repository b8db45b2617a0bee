"""Compares one task of Tandem with Gymnasium's SyncVectorEnv, with equal seeds, actions and resets."""

import platform
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

# The tolerance for norms, sines and powers, for which NumPy has other instructions; other numbers are equal.
_RTOL = 1e-15
# NumPy's own sums round differently on other processors: Humanoid's velocities are differences of such sums.
_ATOL = 0 if platform.machine() == "x86_64" else 1e-12


def compare(
    task: str,
    mode: AutoresetMode,
    seed: int,
    *,
    steps: int = 1010,
    num_envs: int = 3,
    max_episode_steps: int | None = None,
    **options: Any,
) -> dict[str, int]:
    """Steps both with random actions and compares all their results.

    Resets come from a seed, from the autoreset mode (with DISABLED, by mask), once for all environments, and sometimes
    by a mask with and without seeds. These masks exclude environment 0, so that it reaches its time limit.

    Args:
      task: The task's name, such as "Ant-v5".
      mode: The autoreset mode of both.
      seed: The seed of the environments, the actions and the choice of resets.
      steps: The number of steps.
      num_envs: The number of environments.
      max_episode_steps: The time limit; None: the task's own.
      options: Keyword options of the task.

    Returns:
      The counts of "terminated", "truncated" and "masked".

    Raises:
      AssertionError: The results differ; the message has the place.
    """
    # Otherwise MuJoCo would print its warnings, and write them to MUJOCO_LOG.TXT in the current folder.
    mujoco.set_mju_user_warning(lambda message: None)
    rng = np.random.default_rng(seed)
    counts = {"terminated": 0, "truncated": 0, "masked": 0}
    options["max_episode_steps"] = max_episode_steps
    theirs = gymnasium.make_vec(
        task, num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **options
    )
    ours = gymnasium.make_vec(f"tandem/{task}", num_envs, autoreset_mode=mode, **options)
    try:
        for space in ("observation_space", "action_space", "single_observation_space", "single_action_space"):
            assert getattr(ours, space) == getattr(theirs, space), space
        _equal(ours.reset(seed=seed), theirs.reset(seed=seed), f"reset(seed={seed})")
        for step in range(steps):
            if step == 3:
                _equal(ours.reset(), theirs.reset(), f"step {step}: reset()")
            if step % 97 == 96:
                mask = rng.random(num_envs) < 0.5
                mask[0] = False
                mask[rng.integers(1, num_envs)] = True
                seeds = None if rng.random() < 0.5 else [int(each) for each in rng.integers(0, 2**40, num_envs)]
                _equal(_masked(ours, mask, seeds), _masked(theirs, mask, seeds), f"step {step}: reset(mask={mask})")
                counts["masked"] += 1
            actions = _random_actions(rng, theirs.single_action_space, num_envs)
            found, expected = ours.step(actions), theirs.step(actions)
            _equal(found, expected, f"step {step}")
            counts["terminated"] += int(expected[2].sum())
            counts["truncated"] += int(expected[3].sum())
            ended = expected[2] | expected[3]
            if mode is AutoresetMode.DISABLED and ended.any():
                _equal(_masked(ours, ended, None), _masked(theirs, ended, None), f"after step {step}: reset({ended})")
    except AssertionError as error:
        raise AssertionError(f"{task}, {mode.name}, seed {seed}, {options}: {error}") from error
    finally:
        ours.close()
        theirs.close()
    return counts


def _masked(envs: Any, mask: NDArray[np.bool_], seeds: list[int] | None) -> tuple[Any, ...]:
    result: tuple[Any, ...] = envs.reset(seed=seeds, options={"reset_mask": mask})
    return result


def _random_actions(rng: np.random.Generator, space: Any, num_envs: int) -> NDArray[Any]:
    if isinstance(space, gymnasium.spaces.Discrete):
        return rng.integers(0, space.n, num_envs)
    return rng.uniform(space.low, space.high, (num_envs, *space.shape)).astype(np.float32)


def _equal(found: Any, expected: Any, where: str, rounded: bool = False) -> None:
    """Compares results of Gymnasium: tuples, infos in dictionaries, and arrays, also of objects.

    Args:
      found: Tandem's result.
      expected: Gymnasium's result.
      where: The place, for the message.
      rounded: Whether the region has rounded the numbers to float32.
    """
    if isinstance(expected, tuple):
        assert len(found) == len(expected), where
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            _equal(one, other, f"{where}[{index}]", rounded=True)
    elif isinstance(expected, dict):
        assert sorted(found) == sorted(expected), f"{where}: infos {sorted(found)}, expected {sorted(expected)}"
        for key in expected:
            _equal(found[key], expected[key], f"{where}[{key!r}]", rounded=key == "final_obs")
    elif expected is None:
        assert found is None, where
    else:
        assert found.dtype == expected.dtype, f"{where}: {found.dtype}, expected {expected.dtype}"
        assert found.shape == expected.shape, f"{where}: {found.shape}, expected {expected.shape}"
        if expected.dtype == object:
            for index, (one, other) in enumerate(zip(found, expected, strict=True)):
                _equal(one, other, f"{where}[{index}]", rounded=rounded)
        else:
            expected = expected.astype(np.float32) if rounded else expected
            if not np.array_equal(found, expected):  # which takes a tenth of the time of the next line
                np.testing.assert_allclose(
                    found, expected, rtol=0 if rounded else _RTOL, atol=0 if rounded else _ATOL, err_msg=where
                )
