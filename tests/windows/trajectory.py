"""Writes 200 steps of 16 HalfCheetahs, to compare systems with each other: python trajectory.py FILE.npy."""

import sys

import numpy as np
from numpy.typing import NDArray

import tandem

ENVS, STEPS = 16, 200


def actions() -> NDArray[np.float32]:
    """Returns float32[STEPS, ENVS, 6]."""
    return np.random.default_rng(0).uniform(-1, 1, (STEPS, ENVS, 6)).astype(np.float32)


def main() -> None:
    """Steps from seed 3; the file has float64[STEPS, ENVS, 17]."""
    envs = tandem.make_vec("HalfCheetah-v5", ENVS)
    envs.reset(seed=3)
    np.save(sys.argv[1], np.stack([np.asarray(envs.step(each)[0], np.float64) for each in actions()]))
    envs.close()


if __name__ == "__main__":
    main()
