#include "transport/scene_reader.h"

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "transport/frames/racy_copy.h"
#include "transport/scene_geometry.h"

namespace tandem {

absl::StatusOr<SceneReader> SceneReader::Attach(
    std::span<const std::byte> segment) {
  SceneHeader header;
  if (segment.size() < sizeof(header)) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("scene: expected at least ", sizeof(header),
                                  " bytes, found ", segment.size()));
  }
  RacyCopy(std::as_writable_bytes(std::span(&header, 1)),
           segment.first(sizeof(header)), Cache::kInto);
  TANDEM_RETURN_IF_ERROR(CheckScene(header, segment.size()));
  TANDEM_ASSIGN_OR_RETURN(
      auto frames, FrameReader::Attach(
                       segment.subspan(header.flan_offset, header.flan_bytes),
                       kFrameGraceNs, FrameKind::kBytes));
  if (frames.geometry().FrameBytes() != SnapshotBytes(header)) {
    return MakeError(ErrorCode::kLayoutMismatch,
                     absl::StrCat("scene: expected room for snapshots of ",
                                  SnapshotBytes(header), " bytes, found ",
                                  frames.geometry().FrameBytes()));
  }
  return SceneReader(header,
                     segment.subspan(header.glb_offset, header.glb_bytes),
                     std::move(frames));
}

FrameReader::Found SceneReader::Next(PoseSnapshot* into) {
  into->Resize(header_.nodes, header_.max_rows);
  const FrameReader::Found found = frames_.NextTo(into->bytes(), &frame_);
  if (found != FrameReader::Found::kFrame) return found;
  if (!Accepts(*into, frame_.frame_len)) return FrameReader::Found::kBroken;
  into->Resize(header_.nodes, into->rows());
  return found;
}

bool SceneReader::Accepts(const PoseSnapshot& snapshot, uint64_t bytes) const {
  if (snapshot.rows() > header_.max_rows ||
      bytes != sizeof(SnapshotHead) +
                   uint64_t{snapshot.rows()} * header_.row_bytes) {
    return false;
  }
  for (uint32_t i = 0; i < snapshot.rows(); ++i) {
    if (snapshot.row(i).env >= header_.num_envs) return false;
  }
  return true;
}

}  // namespace tandem
