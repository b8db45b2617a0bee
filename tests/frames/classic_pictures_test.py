"""Images of CartPole-v1 and Pendulum-v1, compared with Gymnasium's own images."""

import os

os.environ["SDL_VIDEODRIVER"] = "dummy"  # for pygame

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import tandem

# Gymnasium rounds corners down to whole pixels, and antialiases only some edges.
_NEAR = 2  # pixels
_TOLERANCE = 2  # of 255
_FEW = 30  # pixels of a small arrow that Gymnasium blurs


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_images_equal_gymnasiums_except_at_edges(task: str, seed: int) -> None:
    """Nearly each pixel has a colour that the other image has nearby, and few pixels differ."""
    theirs = gymnasium.make(task, render_mode="rgb_array").unwrapped
    ours = gymnasium.make(f"tandem/{task}", render_mode="rgb_array").unwrapped
    theirs.reset(seed=seed)
    ours.reset(seed=seed)
    theirs.action_space.seed(seed)
    for step in range(15):
        found, expected = _picture(ours), _picture(theirs)
        assert found.shape == expected.shape
        for one, other in ((found, expected), (expected, found)):
            darkest, brightest = _nearby(other)
            beyond = ((one < darkest - _TOLERANCE) | (one > brightest + _TOLERANCE)).any(axis=-1)
            assert beyond.sum() <= _FEW, f"step {step}: {np.argwhere(beyond)[:5].tolist()}"
        differing = (np.abs(found - expected) > _TOLERANCE).any(axis=-1)
        assert differing.mean() < 0.01, f"step {step}"
        action = theirs.action_space.sample()
        theirs.step(action)
        if ours.step(action)[2]:
            break
    assert step > 5
    theirs.close()
    ours.close()


def _picture(env: gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]) -> NDArray[np.int16]:
    return np.asarray(env.render(), dtype=np.int16)


def _nearby(picture: NDArray[np.int16]) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Returns the smallest and the largest value of each colour near each pixel."""
    darkest, brightest = picture, picture
    for axis in (0, 1):
        darkest = np.min([np.roll(darkest, by, axis) for by in range(-_NEAR, _NEAR + 1)], axis=0)
        brightest = np.max([np.roll(brightest, by, axis) for by in range(-_NEAR, _NEAR + 1)], axis=0)
    return darkest, brightest


@pytest.mark.parametrize("task", ["CartPole-v1", "Pendulum-v1"])
def test_images_of_each_step_equal_rendered_images(task: str) -> None:
    """Holds for another size and aspect ratio: the scene is centred, with white on both sides."""
    envs = tandem.make_vec(task, 2, images=(90, 50))
    drawn = tandem.make_vec(task, 2, render_mode="rgb_array", width=90, height=50)
    for each in (envs, drawn):
        each.reset(seed=0)
        each.step(np.ones(each.action_space.shape, each.action_space.dtype))
    pictures, images = drawn.render(), envs.client.images
    assert pictures is not None and images is not None
    np.testing.assert_array_equal(images, np.stack(pictures))
    assert (images[:, :, :5] == 255).all() and (images < 100).any()
    envs.close()
    drawn.close()


def test_a_camera_is_refused() -> None:
    """These tasks have no cameras."""
    with pytest.raises(tandem.InvalidArgument, match="no cameras"):
        tandem.launch_engine("CartPole-v1", images=tandem.ImageOptions((8, 8), camera="track"))
