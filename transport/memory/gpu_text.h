// The device of an engine's arrays on a GPU in words.
//
// Data flow: a region's header, or a driver's UUID -> a text for a person.
//
//   GpuUuidText(header.gpu_device_uuid);   // "GPU-41424344-4546-..."

#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tandem {

// As nvidia-smi prints it.
std::string GpuUuidText(std::span<const uint8_t, 16> uuid);

}  // namespace tandem
