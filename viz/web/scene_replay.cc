#include "viz/web/scene_replay.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "base/printable.h"
#include "schema/layout/scene.h"
#include "viz/web/json_text.h"
#include "viz/web/page_files.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little);

template <typename T>
void AppendBytes(std::string* to, std::span<const T> values) {
  to->append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}
template <typename T>
void AppendBytes(std::string* to, const T& value) {
  AppendBytes(to, std::span(&value, 1));
}

// The parts of a GLB.
struct GlbParts {
  Json json;
  std::string binary;
};

constexpr uint32_t kJsonChunk = 0x4e4f534a;
constexpr uint32_t kBinaryChunk = 0x004e4942;
constexpr int kDeepest = 64;  // of objects and arrays in the JSON

absl::Status NotAGlb(absl::string_view found) {
  return MakeError(
      ErrorCode::kInvalidArgument,
      absl::StrCat("scene: expected a GLB of glTF 2.0, found ", found));
}

// Takes a chunk of the given type from the front; nullopt: there is none.
std::optional<absl::string_view> TakeChunk(absl::string_view* glb,
                                           uint32_t type) {
  std::array<uint32_t, 2> head = {};
  if (glb->size() < sizeof(head)) return std::nullopt;
  std::memcpy(head.data(), glb->data(), sizeof(head));
  if (head[1] != type || head[0] > glb->size() - sizeof(head)) {
    return std::nullopt;
  }
  const absl::string_view content = glb->substr(sizeof(head), head[0]);
  glb->remove_prefix(sizeof(head) + head[0]);
  return content;
}

absl::StatusOr<GlbParts> ReadGlb(absl::string_view glb) {
  constexpr size_t kHeadBytes = 12;
  constexpr absl::string_view kMagic("glTF\2\0\0\0", 8);
  if (!absl::StartsWith(glb, kMagic) || glb.size() < kHeadBytes) {
    return NotAGlb("other bytes");
  }
  glb.remove_prefix(kHeadBytes);
  const std::optional<absl::string_view> text = TakeChunk(&glb, kJsonChunk);
  if (!text.has_value()) return NotAGlb("none of its JSON");
  GlbParts parts;
  // The writer is recursive.
  bool is_too_deep = false;
  const auto go_on = [&](int depth, Json::parse_event_t, const Json&) {
    is_too_deep = is_too_deep || depth > kDeepest;
    return !is_too_deep;
  };
  parts.json =
      Json::parse(text->begin(), text->end(), go_on, /*exceptions=*/false);
  if (is_too_deep) return NotAGlb("JSON that is nested deeper");
  parts.binary = std::string(TakeChunk(&glb, kBinaryChunk).value_or(""));
  if (!parts.json.is_object()) return NotAGlb("JSON of another form");
  for (const char* const list :
       {"nodes", "accessors", "bufferViews", "buffers"}) {
    Json& there = parts.json[list];
    if (there.is_null()) there = Json::array();
    if (!there.is_array() || !absl::c_all_of(there, [](const Json& item) {
          return item.is_object();
        })) {
      return NotAGlb(absl::StrCat("no list of ", list));
    }
  }
  return parts;
}

// The moving nodes, as viz/web/page/scene.js finds them.
std::vector<uint64_t> MovingNodes(const Json& json) {
  std::vector<uint64_t> moving;
  static const Json kNone;
  const Json::json_pointer listed("/scenes/0/extras/tandem/moving");
  const Json& list = json.contains(listed) ? json.at(listed) : kNone;
  const Json& nodes = json.at("nodes");
  if (list.is_array()) {
    for (const Json& node : list) {
      if (!node.is_number_unsigned() || node.get<uint64_t>() >= nodes.size()) {
        return {};
      }
      moving.push_back(node.get<uint64_t>());
    }
    return moving;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].contains("name") && nodes[i].contains("mesh")) {
      moving.push_back(i);
    }
  }
  return moving;
}

// The poses of an environment, without gaps.
struct Track {
  std::vector<float> times;  // seconds from the first
  std::vector<std::span<const float>> poses;
};

Track TrackOf(const SceneRecording& recording, uint32_t env) {
  Track track;
  uint64_t first_ns = 0;
  for (const auto& kept : recording.poses) {
    const PoseSnapshot& snapshot = kept->snapshot;
    for (uint32_t i = 0; i < snapshot.rows(); ++i) {
      if (snapshot.row(i).env != env) continue;
      const uint64_t at_ns = snapshot.head().monotonic_ns;
      if (track.times.empty()) first_ns = at_ns;
      const auto secs =
          static_cast<float>(static_cast<double>(at_ns - first_ns) * 1e-9);
      // glTF's times grow.
      if (!track.times.empty() && secs <= track.times.back()) continue;
      track.times.push_back(secs);
      track.poses.push_back(snapshot.poses(i));
    }
  }
  return track;
}

// Appends an accessor of these values; returns its index.
size_t AddAccessor(GlbParts* parts, const char* type,
                   const std::vector<float>& values, size_t width) {
  Json accessor = {{"bufferView", parts->json["bufferViews"].size()},
                   {"componentType", 5126},  // float
                   {"count", values.size() / width},
                   {"type", type}};
  if (width == 1) {
    accessor["min"] = {values.front()};
    accessor["max"] = {values.back()};
  }
  parts->binary.resize((parts->binary.size() + 3) / 4 * 4);
  parts->json["bufferViews"].push_back({{"buffer", 0},
                                        {"byteOffset", parts->binary.size()},
                                        {"byteLength", values.size() * 4}});
  AppendBytes(&parts->binary, std::span(values));
  parts->json["accessors"].push_back(std::move(accessor));
  return parts->json["accessors"].size() - 1;
}

std::string WriteGlb(GlbParts parts) {
  parts.binary.resize((parts.binary.size() + 3) / 4 * 4);
  parts.json["buffers"][0]["byteLength"] = parts.binary.size();
  std::string text = TextOfJson(parts.json);
  text.resize((text.size() + 3) / 4 * 4, ' ');
  std::string glb("glTF\2\0\0\0", 8);
  const auto word = [&glb](size_t value) {
    AppendBytes(&glb, static_cast<uint32_t>(value));
  };
  word(12 + 8 + text.size() + 8 + parts.binary.size());
  word(text.size());
  word(kJsonChunk);
  glb += text;
  word(parts.binary.size());
  word(kBinaryChunk);
  return glb + parts.binary;
}

}  // namespace

SceneRecording SceneRecording::Of(const SceneWatch& watch,
                                  const std::string& name, int64_t since_ns) {
  SceneRecording recording = {.name = name,
                              .nodes = watch.header().nodes,
                              .glb = watch.glb(),
                              .poses = {}};
  for (const auto& poses : watch.tape().entries()) {
    if (poses->at_ns >= since_ns) recording.poses.push_back(poses);
  }
  return recording;
}

uint32_t SceneRecording::FirstEnv() const {
  return poses.empty() || poses[0]->snapshot.rows() == 0
             ? 0
             : poses[0]->snapshot.row(0).env;
}

std::string ReplayPage(const SceneRecording& recording) {
  std::string poses;
  uint32_t envs = 1;
  for (const auto& kept : recording.poses) {
    const PoseSnapshot& snapshot = kept->snapshot;
    const auto rows = snapshot.bytes().subspan(sizeof(SnapshotHead));
    AppendBytes(&poses,
                static_cast<double>(snapshot.head().monotonic_ns) * 1e-6);
    AppendBytes(&poses, static_cast<uint32_t>(kept->number));
    AppendBytes(&poses, static_cast<uint32_t>(rows.size()));
    AppendBytes(&poses, rows);
    for (uint32_t i = 0; i < snapshot.rows(); ++i) {
      envs = std::max(envs, snapshot.row(i).env + 1);
    }
  }
  std::string modules;
  for (const char* const name : {"three.js", "dom.js", "glb.js", "poses.js",
                                 "scene.js", "scene_panel.js", "replay.js"}) {
    const absl::string_view content =
        FindPageFile(absl::StrCat("/", name))->content;
    // An address made by the page has no folder, so names are bare.
    absl::StrAppend(&modules, "<script type=\"text/plain\" data-module=\"",
                    name, "\">",
                    absl::Base64Escape(absl::StrReplaceAll(
                        content, {{"from \"./", "from \""}})),
                    "</script>\n");
  }
  const std::string facts =
      absl::StrReplaceAll(TextOfJson({{"name", Printable(recording.name)},
                                      {"nodes", recording.nodes},
                                      {"num_envs", envs},
                                      {"first_env", recording.FirstEnv()}}),
                          {{"<", "\\u003c"}});
  return absl::StrReplaceAll(FindPageFile("/replay.html")->content,
                             {{"@STYLE@", FindPageFile("/style.css")->content},
                              {"@FACTS@", facts},
                              {"@GLB@", absl::Base64Escape(*recording.glb)},
                              {"@POSES@", absl::Base64Escape(poses)},
                              {"@MODULES@", modules}});
}

absl::StatusOr<std::string> AnimatedGlb(const SceneRecording& recording,
                                        uint32_t env) {
  TANDEM_ASSIGN_OR_RETURN(GlbParts parts, ReadGlb(*recording.glb));
  const std::vector<uint64_t> moving = MovingNodes(parts.json);
  const Track track = TrackOf(recording, env);
  if (moving.size() != recording.nodes || track.times.empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("scene: expected poses of ", moving.size(),
                     " nodes of environment ", env, ", found ",
                     track.times.size(), " of ", recording.nodes, " nodes"));
  }
  const size_t times = AddAccessor(&parts, "SCALAR", track.times, 1);
  Json animation = {{"name", Printable(recording.name)}};
  const auto add = [&](size_t node, const char* path, const char* type,
                       const std::vector<float>& values, size_t width) {
    animation["channels"].push_back(
        {{"sampler", animation["samplers"].size()},
         {"target", {{"node", moving[node]}, {"path", path}}}});
    animation["samplers"].push_back(
        {{"input", times},
         {"output", AddAccessor(&parts, type, values, width)}});
  };
  for (size_t node = 0; node < moving.size(); ++node) {
    std::array<float, kPoseFloats> pose = {0, 0, 0, 0, 0, 0, 1};
    std::vector<float> positions;
    std::vector<float> rotations;
    for (const std::span<const float> poses : track.poses) {
      const auto found = poses.subspan(node * kPoseFloats, kPoseFloats);
      // std::hypot of float needs glibc 2.35.
      const auto turn = found.subspan(3);
      const float norm = std::sqrt(
          std::inner_product(turn.begin(), turn.end(), turn.begin(), 0.0F));
      if (norm > 0 &&
          absl::c_all_of(found, [](float x) { return std::isfinite(x); })) {
        absl::c_copy(found, pose.begin());
        for (size_t i = 3; i < kPoseFloats; ++i) pose[i] /= norm;
      }
      positions.insert(positions.end(), pose.begin(), pose.begin() + 3);
      rotations.insert(rotations.end(), pose.begin() + 3, pose.end());
    }
    // An animated node has no matrix.
    parts.json["nodes"][moving[node]].erase("matrix");
    add(node, "translation", "VEC3", positions, 3);
    add(node, "rotation", "VEC4", rotations, 4);
  }
  parts.json["animations"] = Json::array({std::move(animation)});
  return WriteGlb(std::move(parts));
}

namespace {

// An older file stays until the new one is complete.
absl::Status WriteFile(const std::string& path, const std::string& content) {
  const std::string part = absl::StrCat(path, ".part");
  std::FILE* const file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return MakeSystemError("open", path, errno);
  const bool is_written =
      std::fwrite(content.data(), 1, content.size(), file) == content.size();
  int error = errno;
  if (std::fclose(file) != 0 && is_written) {
    error = errno;
  } else if (is_written) {
    if (std::rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
    error = errno;
  }
  std::remove(part.c_str());
  return MakeSystemError("write", path, error);
}

bool IsPage(const std::string& path) { return absl::EndsWith(path, ".html"); }

}  // namespace

absl::Status CheckScenePath(const std::string& path) {
  if (!IsPage(path) && !absl::EndsWith(path, ".glb")) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("scene: expected a file *.html or *.glb, found ", path));
  }
  const std::string part = absl::StrCat(path, ".part");
  std::FILE* const file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return MakeSystemError("open", path, errno);
  (void)std::fclose(file);  // is empty
  std::remove(part.c_str());
  return absl::OkStatus();
}

absl::Status SaveScene(const SceneRecording& recording,
                       const std::string& path) {
  TANDEM_RETURN_IF_ERROR(CheckScenePath(path));
  if (recording.poses.empty()) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        absl::StrCat("scene: expected at least one snapshot, found none: ",
                     path));
  }
  std::string content;
  if (IsPage(path)) {
    content = ReplayPage(recording);
  } else {
    TANDEM_ASSIGN_OR_RETURN(content,
                            AnimatedGlb(recording, recording.FirstEnv()));
  }
  return WriteFile(path, content);
}

}  // namespace tandem
