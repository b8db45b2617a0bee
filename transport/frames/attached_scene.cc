#include "transport/attached_scene.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/os/side_locks.h"
#include "base/printable.h"
#include "schema/layout/scene.h"

namespace tandem {

AttachedScene::AttachedScene(std::string name, const SharedRegion::Id& id,
                             SideLocks lock,
                             std::shared_ptr<const RegionMapping> mapping,
                             SceneReader reader)
    : name_(std::move(name)),
      id_(id),
      lock_(std::make_unique<SideLocks>(std::move(lock))),
      mapping_(std::move(mapping)),
      reader_(std::move(reader)) {}

AttachedScene::AttachedScene(AttachedScene&&) noexcept = default;
AttachedScene& AttachedScene::operator=(AttachedScene&&) noexcept = default;
AttachedScene::~AttachedScene() = default;

absl::StatusOr<AttachedScene> AttachedScene::Open(absl::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(std::string segment, SceneSegmentName(name));
  const absl::StatusOr<SharedRegion> memory =
      SharedRegion::Open(segment, SharedRegion::Access::kRead);
  if (CodeOf(memory.status()) == ErrorCode::kNotReady) {
    return MakeError(ErrorCode::kNotReady,
                     absl::StrCat("'", Printable(segment),
                                  "': expected an engine's scene, found no ",
                                  Printable(RegionPath(segment)),
                                  "; open its stream WatchScene first"));
  }
  if (!memory.ok()) return memory.status();
  TANDEM_RETURN_IF_ERROR(memory->CheckTrust(segment));
  TANDEM_ASSIGN_OR_RETURN(auto lock, SideLocks::On(*memory));
  const uint64_t bytes = memory->bytes();
  if (bytes < sizeof(SceneHeader)) {
    return MakeError(
        ErrorCode::kLayoutMismatch,
        absl::StrCat("'", Printable(segment), "': expected a scene, found ",
                     bytes, " bytes"));
  }
  TANDEM_ASSIGN_OR_RETURN(auto mapping,
                          RegionMapping::MapReadOnly(*memory, bytes));
  absl::StatusOr<SceneReader> reader =
      SceneReader::Attach({mapping->At<std::byte>(0), bytes});
  if (!reader.ok()) {
    return MakeError(CodeOf(reader.status()),
                     absl::StrCat("'", Printable(segment),
                                  "': ", reader.status().message()));
  }
  return AttachedScene(std::move(segment), memory->id(), std::move(lock),
                       std::move(mapping), *std::move(reader));
}

AttachedScene::Writer AttachedScene::writer() const {
  if (!lock_->IsOurs()) return Writer::kUnknown;
  return lock_->HeldByOther(kSceneWriterLockByte) ? Writer::kAlive
                                                  : Writer::kGone;
}

bool AttachedScene::Replaced() const {
  const auto now = SharedRegion::At(name_);
  return now.has_value() && *now != id_;
}

}  // namespace tandem
