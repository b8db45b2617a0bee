#include "transport/owned_scene_segment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/lrbc.h"
#include "transport/memory/dead_region.h"
#include "transport/memory/named_file.h"
#include "transport/region.h"

namespace tandem {

// A segment's writer and an engine use the same lock byte.
static_assert(kSceneWriterLockByte == kEngineLockByte);

absl::StatusOr<OwnedSceneSegment> OwnedSceneSegment::Create(
    absl::string_view name, const SceneSpec& spec, absl::string_view glb) {
  TANDEM_ASSIGN_OR_RETURN(const std::string segment, SceneSegmentName(name));
  TANDEM_ASSIGN_OR_RETURN(const SceneHeader header,
                          PlanScene(spec, glb.size()));
  const uint64_t bytes = SceneBytes(header);
  TANDEM_ASSIGN_OR_RETURN(
      auto file,
      NamedFile::Reserve(segment, bytes, /*group_access=*/false,
                         {"the scene", "use a model with smaller meshes"}));
  FrameWriter writer = WriteScene(header, glb, {file.mapping()->base(), bytes});
  TANDEM_ASSIGN_OR_RETURN(const bool linked, file.LinkOver([&] {
    return RemoveUnlessLocked(segment);
  }));
  if (linked) {
    return OwnedSceneSegment(std::move(file), header, std::move(writer));
  }
  return MakeError(ErrorCode::kAlreadyAttached,
                   absl::StrCat("'", Printable(segment),
                                "': other writers kept taking the name; "
                                "choose another name for the engine"));
}

OwnedSceneSegment::OwnedSceneSegment(NamedFile file, const SceneHeader& header,
                                     FrameWriter writer)
    : file_(std::make_unique<NamedFile>(std::move(file))),
      header_(header),
      writer_(std::move(writer)) {}

OwnedSceneSegment::OwnedSceneSegment(OwnedSceneSegment&&) noexcept = default;

OwnedSceneSegment::~OwnedSceneSegment() {
  if (file_ != nullptr && file_->IsOurs()) writer_.Invalidate();
}

uint64_t OwnedSceneSegment::Publish(const PoseSnapshot& snapshot) {
  if (snapshot.nodes() != header_.nodes || snapshot.rows() > header_.max_rows) {
    return 0;
  }
  return writer_.Publish(snapshot.bytes(), {}, "");
}

const std::string& OwnedSceneSegment::name() const { return file_->name(); }

}  // namespace tandem
