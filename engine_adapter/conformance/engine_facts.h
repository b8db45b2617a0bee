// EngineFacts: what the engine under test can do. Groups of rules that need
// something else are skipped.
//
// Data flow: a few starts of the program -> its regions, its GetServices ->
// EngineFacts -> the report, and every rule.
// Ownership: main probes once, before any rule runs.
//
//   const absl::Status status = EngineFacts::Probe();
//   std::cout << EngineFacts::Get().Text();
//   if (!EngineFacts::Get().Has(Capability::kFrames)) return;

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

enum class Capability : uint8_t {
  kHostObservations,
  kLimit,
  kFields,
  kFrames,
  kImages,
  kCamera,
  kContracts,
  kScene,
  kStreams,
  kOwnMethods,
  kStates,
  kGpu,
};

// The names for users, as in "engine without frames".
inline constexpr std::array kCapabilityNames = {
    "observations in the region",
    "a flag that limits episodes (--limit_flag)",
    "fields",
    "frames (--frames)",
    "images beside its observations",
    "a camera (GetCameraFrame)",
    "contracts (ResetAgent)",
    "a live scene (WatchScene)",
    "streams of numbers",
    "methods of its own",
    "states (SaveStates)",
    "arrays on a GPU"};
inline constexpr size_t kCapabilities = kCapabilityNames.size();

// The flags with which an engine draws.
inline constexpr uint32_t kFrameWidth = 64;  // of one environment
inline constexpr uint32_t kFrameHeight = 48;
inline constexpr uint32_t kImageWidth = 32;
inline constexpr uint32_t kImageHeight = 24;
inline constexpr char kFramesFlag[] = "--frames=64x48";
inline constexpr char kImagesFlag[] = "--images=32x24";

struct EngineFacts {
  std::string about;                   // task and arrays, a line
  std::vector<std::string> services;   // enabled ones
  std::vector<rpc::MethodId> methods;  // of these
  // For each capability: nullopt if the engine has it, else the reason, which
  // may be empty.
  std::array<std::optional<std::string>, kCapabilities> lacks;

  bool own_images = false;  // in each observation, without --images

  bool Has(Capability capability) const {
    return !lacks[static_cast<size_t>(capability)];
  }
  bool Serves(rpc::MethodId method) const;
  // Those of `methods` that are streams of numbers, not of images.
  std::vector<rpc::MethodId> NumberStreams() const;
  // Some lines for the report.
  std::string Text() const;

  // kInvalidArgument: the engine refuses its flags, or --limit_flag. Other
  // errors: the engine does not serve.
  static absl::Status Probe();
  static const EngineFacts& Get();
};

}  // namespace tandem
