// FitImage: draws an image into a smaller or larger one.
//
// Data flow: what an environment's `render` returned -> a tile of a frame.
// Ownership: none; the caller holds the GIL.

#pragma once

#include <pybind11/numpy.h>

#include <cstdint>

namespace tandem {

// Draws `image`, uint8[rows, columns, 3 or 4], in the middle of `target`,
// uint8[height, width, 3]: as large as fits, with its proportions, on black. A
// pixel of a smaller image is the mean of those that it stands for. Of four
// channels the last is ignored. Raises InvalidArgument: other arrays, or an
// empty one.
void FitImage(
    pybind11::array_t<uint8_t, pybind11::array::c_style>& target,
    const pybind11::array_t<uint8_t, pybind11::array::c_style>& image);

}  // namespace tandem
