// Frames as a Matroska stream (RFC 9559): raw pixels, each frame with its time.
//
// Data flow: Mp4Recorder -> StreamHead, then FrameHead and pixels for each
// frame -> ffmpeg's standard input. Of ffmpeg's formats for a pipe it is the
// simplest in which a frame has a time: the reader's speed changes nothing.
// Ownership: pure functions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem::matroska_stream {

// Returns the stream's beginning. `channels`: 3, RGB; 4, RGBA.
std::string StreamHead(uint32_t width, uint32_t height, uint32_t channels);

// Returns what precedes a frame's pixels. `time_ms`: since the first frame; the
// caller passes growing times.
std::string FrameHead(uint64_t time_ms, size_t pixel_bytes);

}  // namespace tandem::matroska_stream
