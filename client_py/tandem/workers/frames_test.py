"""How images are fitted into frames, and which episodes the rolling return is of."""

from typing import Any

import numpy as np
import pytest

import tandem
from tandem._native import fit_image
from tandem.fastlane.tiling import tile_frames
from tandem.workers.frames import FrameBuffer, FramePlan, rolling_mean


def _fitted(image: Any, height: int, width: int) -> Any:
    target = np.full((height, width, 3), 9, np.uint8)
    fit_image(target, image)
    return target


def test_an_image_of_the_size_is_copied() -> None:
    """Without a fourth channel."""
    image = np.arange(4 * 5 * 4, dtype=np.uint8).reshape(4, 5, 4)
    np.testing.assert_array_equal(_fitted(image, 4, 5), image[:, :, :3])


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 5), (4, 1)])
def test_pixels_of_a_smaller_image_are_means(rows: int, columns: int) -> None:
    """Of equal blocks."""
    image = np.random.default_rng(1).integers(0, 256, (3 * rows, 3 * columns, 3), np.uint8)
    means = image.reshape(rows, 3, columns, 3, 3).mean(axis=(1, 3))
    assert np.abs(_fitted(image, rows, columns) - means).max() <= 0.5


def test_pixels_of_a_larger_image_are_repeated() -> None:
    """Whole multiples."""
    image = np.random.default_rng(2).integers(0, 256, (2, 3, 3), np.uint8)
    np.testing.assert_array_equal(_fitted(image, 8, 12), image.repeat(4, 0).repeat(4, 1))


def test_an_image_of_other_proportions_is_in_the_middle_of_black() -> None:
    """In both directions."""
    for shape in ((2, 4), (4, 2)):
        fitted = _fitted(np.full((*shape, 3), 200, np.uint8), 8, 8)
        inside = fitted[2:6] if shape == (2, 4) else fitted[:, 2:6]
        assert (inside == 200).all() and fitted.astype(int).sum() == 200 * 32 * 3


def test_the_mean_of_one_color_is_this_color() -> None:
    """For any sizes."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        rows, columns, height, width = rng.integers(1, 60, 4)
        fitted = _fitted(np.full((rows, columns, 3), 255, np.uint8), height, width)
        assert set(np.unique(fitted)) <= {0, 255} and 255 in fitted
        assert (fitted == 255).all(axis=(1, 2)).any() or (fitted == 255).all(axis=(0, 2)).any()


def test_images_of_any_strides_are_fitted() -> None:
    """Such as one that is upside down."""
    image = np.random.default_rng(4).integers(0, 256, (6, 8, 3), np.uint8)
    np.testing.assert_array_equal(_fitted(image[::-1], 3, 4), _fitted(image[::-1].copy(), 3, 4))


def test_other_arrays_are_refused() -> None:
    """Nothing is drawn."""
    target = np.zeros((2, 2, 3), np.uint8)
    for shape in ((2, 2), (2, 2, 2), (0, 2, 3)):
        with pytest.raises(tandem.InvalidArgument, match="fit_image"):
            fit_image(target, np.ones(shape, np.uint8))
    assert not target.any()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 16, 17])
def test_the_grid_is_that_of_tiled_frames(count: int) -> None:
    """So the region's frame has the size of what is published."""
    plan = FramePlan(5, 4, tuple(range(count)), 60.0, False, 8, 1)
    tiled = tile_frames([np.zeros((4, 5, 3), np.uint8)] * count)
    options = plan.region_options()
    assert tiled.shape == (options["frame_height"], options["frame_width"], 3)
    assert plan.grid == (tiled.shape[0] // 4, tiled.shape[1] // 5)


def test_rolling_means_are_of_the_last_hundred_episodes_of_all_workers(tmp_path: Any) -> None:
    """By the time at which they ended; before the first, there is none."""
    plan = FramePlan(1, 1, (0,), 60.0, False, 8, 3)
    path = tmp_path / "buffer"
    path.write_bytes(bytes(FrameBuffer.bytes_of(plan)))
    with path.open("r+b") as file:
        workers = FrameBuffer(file.fileno(), plan).workers
    assert rolling_mean(workers, "returns") is None
    for worker, count in ((0, 80), (2, 50)):  # they ended in turn: 0, 2, 0, 2, ...; then only worker 0's
        workers[worker]["kept"] = count
        workers[worker]["ended_ns"][:count] = 10 * np.arange(count) + worker
        workers[worker]["returns"][:count] = np.arange(count) * (1 + worker)
        workers[worker]["lengths"][:count] = 3 + worker
    ended = sorted(
        (int(each["ended_ns"][i]), float(each["returns"][i])) for each in workers for i in range(int(each["kept"]))
    )
    assert rolling_mean(workers, "returns") == pytest.approx(np.mean([value for _, value in ended[-100:]]))
    # Without the first thirty: 65 of worker 0, 35 of worker 2.
    assert rolling_mean(workers, "lengths") == pytest.approx((65 * 3 + 35 * 5) / 100)
