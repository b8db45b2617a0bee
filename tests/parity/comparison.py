"""One task of Tandem's beside Gymnasium's own SyncVectorEnv: the same seeds, actions and resets."""

from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import tandem

# Norms, sines and powers, which NumPy computes by instructions of its own; all other numbers are equal to the last bit.
_RTOL = 1e-15


def compare(
    task: str, mode: AutoresetMode, seed: int, *, steps: int = 1010, num_envs: int = 3, **options: Any
) -> dict[str, int]:
    """Steps both by random actions and compares all that they return.

    Resets come from a seed, from the autoreset mode (with DISABLED, by mask), once for all, and now and then by a mask
    with and without seeds. Environment 0 is left alone by the latter, so that it comes to its time limit.

    Args:
      task: Such as "Ant-v5".
      mode: Of both.
      seed: Of the environments, the actions and the choice of resets.
      steps: Number of them.
      num_envs: Number of environments.
      options: Keyword options of the task.

    Returns:
      How often what happened: "terminated", "truncated", "masked".

    Raises:
      AssertionError: They differ; the message says where.
    """
    # Gymnasium's MuJoCo would print its warnings, and write them to a MUJOCO_LOG.TXT in the current folder.
    mujoco.set_mju_user_warning(lambda message: None)
    rng = np.random.default_rng(seed)
    counts = {"terminated": 0, "truncated": 0, "masked": 0}
    theirs = gymnasium.make_vec(
        task, num_envs, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **options
    )
    ours = tandem.make_vec(task, num_envs, autoreset_mode=mode, **options)
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
    """Compares what Gymnasium returns: tuples, infos in dictionaries, arrays, also of objects.

    Args:
      found: Ours.
      expected: Gymnasium's.
      where: For the message.
      rounded: Whether the numbers have passed the region as float32.
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
        elif rounded:
            np.testing.assert_array_equal(found, expected.astype(np.float32), err_msg=where)
        else:
            np.testing.assert_allclose(found, expected, rtol=_RTOL, atol=0, err_msg=where)
