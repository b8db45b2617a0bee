// An engine's arrays on a GPU in words: the path to them, and their device.
//
// Data flow: a region's header, or a driver's UUID -> a text for a person.
//
//   GpuPathText(header);                   // "CUDA IPC"
//   GpuUuidText(header.gpu_device_uuid);   // "GPU-41424344-4546-..."

#ifndef TANDEM_TRANSPORT_MEMORY_GPU_TEXT_H_
#define TANDEM_TRANSPORT_MEMORY_GPU_TEXT_H_

#include <cstdint>
#include <span>
#include <string>

#include "schema/layout/lrbc.h"

namespace tandem {

// "CUDA IPC", "Vulkan", or "mode 7" for another mode; "": the engine has no
// arrays on a GPU.
std::string GpuPathText(const LrbcHeader& header);

// As nvidia-smi prints it.
std::string GpuUuidText(std::span<const uint8_t, 16> uuid);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MEMORY_GPU_TEXT_H_
