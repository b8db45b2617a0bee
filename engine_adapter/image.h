// Image: one image for the caller of an RPC, in the requested format.
//
// Data flow: rendered rows -> EncodeImage (image_encoder.h) -> Image ->
// rpc::ImageFrameT.
//
//   Image image = {.data = rows, .width = 320, .height = 240};

#ifndef TANDEM_ENGINE_ADAPTER_IMAGE_H_
#define TANDEM_ENGINE_ADAPTER_IMAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace tandem {

enum class ImageFormat : uint8_t {
  kRaw,     // colour: uint8[height, width, 3], the top row first
  kPng,     // colour
  kJpeg,    // colour
  kGray16,  // depth: uint16[height, width], little-endian
};

struct Image {
  std::vector<uint8_t> data;
  uint32_t width = 0;
  uint32_t height = 0;
  uint32_t channels = 3;
  ImageFormat format = ImageFormat::kRaw;
  float depth_scale = 0;  // kGray16: metres per unit; otherwise 0
  // The engine counts the image as unanswered while this exists.
  std::shared_ptr<const void> held = {};
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_IMAGE_H_
