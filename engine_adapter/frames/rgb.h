// How all pictures of colours lie in memory here: red, green and blue, a byte
// each, rows from the top.

#ifndef TANDEM_ENGINE_ADAPTER_FRAMES_RGB_H_
#define TANDEM_ENGINE_ADAPTER_FRAMES_RGB_H_

#include <cstdint>

namespace tandem {

inline constexpr uint32_t kRgbBytes = 3;  // of a pixel

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_FRAMES_RGB_H_
