#include "viz/web/scene_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <tiny_gltf.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::string GlbOf(const std::string& json, const std::string& binary = "") {
  std::string glb("glTF\2\0\0\0", 8);
  const auto word = [&glb](uint32_t value) {
    glb.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const std::string text = json + std::string(-json.size() % 4, ' ');
  word(static_cast<uint32_t>(20 + text.size() +
                             (binary.empty() ? 0 : 8 + binary.size())));
  word(static_cast<uint32_t>(text.size()));
  word(0x4e4f534a);
  glb += text;
  if (!binary.empty()) {
    word(static_cast<uint32_t>(binary.size()));
    word(0x004e4942);
    glb += binary;
  }
  return glb;
}

Json JsonOf(const std::string& glb) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, glb.data() + 12, sizeof(bytes));
  return Json::parse(glb.substr(20, bytes));
}

// Two moving nodes, 2 and 0 in this order; `x` of the first at each time.
SceneRecording RecordingOf(const std::vector<float>& xs,
                           const std::string& name = "demo") {
  SceneRecording recording = {
      .name = name,
      .nodes = 2,
      .glb = std::make_shared<const std::string>(
          GlbOf(R"({"asset":{"version":"2.0"},"buffers":[{"byteLength":3}],)"
                R"("nodes":[{"name":"a"},{},{"name":"b","matrix":[1]}],)"
                R"("scenes":[{"extras":{"tandem":{"moving":[2,0]}}}]})",
                std::string("abc\0", 4))),
      .poses = {}};
  for (size_t i = 0; i < xs.size(); ++i) {
    auto kept = std::make_shared<KeptPoses>();
    kept->number = i + 1;
    kept->snapshot.Resize(2, 2);
    kept->snapshot.head().monotonic_ns = 5'000'000'000 + i * 500'000'000;
    for (const uint32_t row : {0, 1}) {
      kept->snapshot.row(row).env = 3 + row;
      const float pose[] = {xs[i], 2, 3, 0, 0, 0, 2};
      std::memcpy(kept->snapshot.poses(row).data(), pose, sizeof(pose));
    }
    recording.poses.push_back(kept);
  }
  return recording;
}

// The numbers of an accessor.
std::vector<float> Numbers(const std::string& glb, size_t accessor) {
  const Json json = JsonOf(glb);
  const Json& view =
      json["bufferViews"]
          [static_cast<size_t>(json["accessors"][accessor]["bufferView"])];
  uint32_t text = 0;
  std::memcpy(&text, glb.data() + 12, sizeof(text));
  std::vector<float> numbers(static_cast<size_t>(view["byteLength"]) / 4);
  std::memcpy(numbers.data(),
              glb.data() + 28 + text + static_cast<size_t>(view["byteOffset"]),
              numbers.size() * 4);
  return numbers;
}

TEST(AnimatedGlb, HasATrackOfPositionsAndOneOfRotationsForEachNode) {
  const absl::StatusOr<std::string> glb = AnimatedGlb(RecordingOf({7, 8}), 4);
  ASSERT_TRUE(glb.ok()) << glb.status();
  uint32_t bytes = 0;
  std::memcpy(&bytes, glb->data() + 8, sizeof(bytes));
  EXPECT_EQ(bytes, glb->size());
  const Json json = JsonOf(*glb);
  const Json& animation = json["animations"][0];
  EXPECT_EQ(animation["name"], "demo");
  ASSERT_EQ(animation["channels"].size(), 4U);
  EXPECT_EQ(animation["channels"][0]["target"],
            (Json{{"node", 2}, {"path", "translation"}}));
  EXPECT_EQ(animation["channels"][3]["target"],
            (Json{{"node", 0}, {"path", "rotation"}}));
  EXPECT_FALSE(json["nodes"][2].contains("matrix"));
  EXPECT_THAT(Numbers(*glb, 0), ElementsAre(0, 0.5));
  EXPECT_EQ(json["accessors"][0]["max"], Json({0.5}));
  EXPECT_THAT(Numbers(*glb, 1), ElementsAre(7, 2, 3, 8, 2, 3));
  EXPECT_THAT(Numbers(*glb, 2), ElementsAre(0, 0, 0, 1, 0, 0, 0, 1))
      << "of length 1";
}

TEST(AnimatedGlb, AnotherLibraryReadsTheRecordedPosesAtTenTimes) {
  const absl::StatusOr<std::string> glb =
      AnimatedGlb(RecordingOf({9, 8, 7, 6, 5, 4, 3, 2, 1, 0}), 3);
  ASSERT_TRUE(glb.ok()) << glb.status();
  tinygltf::Model model;
  std::string error;
  std::string warning;
  ASSERT_TRUE(tinygltf::TinyGLTF().LoadBinaryFromMemory(
      &model, &error, &warning,
      reinterpret_cast<const unsigned char*>(glb->data()),
      static_cast<unsigned>(glb->size())))
      << error;
  EXPECT_EQ(error + warning, "");
  const auto number = [&model](int accessor, size_t index) {
    const auto& found = model.accessors[static_cast<size_t>(accessor)];
    const auto& view = model.bufferViews[static_cast<size_t>(found.bufferView)];
    float value = 0;
    std::memcpy(
        &value,
        &model.buffers[0]
             .data[view.byteOffset + found.byteOffset + index * sizeof(float)],
        sizeof(value));
    return value;
  };
  ASSERT_EQ(model.animations.size(), 1U);
  const tinygltf::Animation& animation = model.animations[0];
  EXPECT_EQ(animation.channels[0].target_node, 2);
  EXPECT_EQ(animation.channels[0].target_path, "translation");
  const tinygltf::AnimationSampler& moves = animation.samplers[0];
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(number(moves.input, i), 0.5F * static_cast<float>(i));
    EXPECT_EQ(number(moves.output, 3 * i), 9 - static_cast<float>(i));
    EXPECT_EQ(number(animation.samplers[1].output, 4 * i + 3), 1);
  }
}

TEST(AnimatedGlb, APoseThatIsNotFiniteIsTheOneBefore) {
  const float bad = std::numeric_limits<float>::quiet_NaN();
  const absl::StatusOr<std::string> glb =
      AnimatedGlb(RecordingOf({bad, 7, bad, 8}), 3);
  ASSERT_TRUE(glb.ok()) << glb.status();
  EXPECT_THAT(Numbers(*glb, 1),
              ElementsAre(0, 0, 0, 7, 2, 3, 7, 2, 3, 8, 2, 3));
}

TEST(AnimatedGlb, RefusesWhatIsNotAGlbWithTheseNodes) {
  const auto refuses = [](const std::string& glb) {
    SceneRecording recording = RecordingOf({1});
    recording.glb = std::make_shared<const std::string>(glb);
    return CodeOf(AnimatedGlb(recording, 3).status()) ==
           ErrorCode::kInvalidArgument;
  };
  const std::string good = *RecordingOf({1}).glb;
  EXPECT_FALSE(refuses(good));
  for (size_t bytes = 0; bytes + 4 < good.size(); ++bytes) {
    const std::string cut = good.substr(0, bytes);
    // Without its binary part it is still a GLB.
    EXPECT_EQ(refuses(cut), bytes + 12 < good.size()) << bytes;
  }
  for (
      const char* const json :
      {"", "{}", "[]", "7", R"({"nodes":7})", R"({"nodes":[7]})",
       R"({"nodes":[{},{},{}],"buffers":{}})",
       R"({"nodes":[{},{}],"scenes":[{"extras":{"tandem":{"moving":[0,2]}}}]})",
       R"({"nodes":[{}],"scenes":[{"extras":{"tandem":{"moving":[-1,0]}}}]})"}) {
    EXPECT_TRUE(refuses(GlbOf(json))) << json;
  }
  for (const size_t deep : {50, 100, 1'000'000}) {
    EXPECT_EQ(
        refuses(GlbOf(absl::StrCat(
            R"({"nodes":[{"name":"a","mesh":0},{"name":"b","mesh":0}],"x":)",
            std::string(deep, '['), std::string(deep, ']'), "}"))),
        deep > 50)
        << deep;
  }
  EXPECT_FALSE(refuses(GlbOf(
      R"({"nodes":[{"name":"a","mesh":0},{"mesh":0},{"name":"b","mesh":0}]})")))
      << "named meshes, of a GLB that lists none";
  EXPECT_EQ(CodeOf(AnimatedGlb(RecordingOf({1}), 5).status()),
            ErrorCode::kInvalidArgument)
      << "another environment";
}

TEST(ReplayPage, HasEverythingInItAndNamesAsText) {
  const std::string page =
      ReplayPage(RecordingOf({1}, "</script><b>\u202ename"));
  EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>"));
  EXPECT_THAT(page, Not(HasSubstr("src=\"")));
  EXPECT_THAT(page, Not(HasSubstr("href=\"")));
  EXPECT_THAT(page, Not(HasSubstr("@GLB@")));
  EXPECT_THAT(page, HasSubstr(R"("first_env":3)"));
  EXPECT_THAT(page, HasSubstr(R"("num_envs":5)"));
}

TEST(CheckScenePath, AcceptsAnotherEndingOrFolderNot) {
  const std::string folder = testing::TempDir();
  EXPECT_TRUE(CheckScenePath(folder + "/new.html").ok());
  EXPECT_FALSE(std::filesystem::exists(folder + "/new.html"));
  EXPECT_EQ(CodeOf(CheckScenePath(folder + "/new.mp4")),
            ErrorCode::kInvalidArgument);
  EXPECT_FALSE(CheckScenePath(folder + "/none/new.glb").ok());
}

TEST(SaveScene, AnOlderFileRemainsAfterAnError) {
  const std::string path = testing::TempDir() + "/older.html";
  ASSERT_TRUE(SaveScene(RecordingOf({1}), path).ok());
  const uintmax_t bytes = std::filesystem::file_size(path);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN);  // writes then fail
  const rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status saved = SaveScene(RecordingOf({1, 2, 3}), path);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(saved.ok());
  EXPECT_EQ(std::filesystem::file_size(path), bytes);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(SaveScene, WritesByTheEndingAndLeavesNothingAfterAnError) {
  const std::string folder = testing::TempDir();
  for (const char* const ending : {".html", ".glb"}) {
    const std::string path = absl::StrCat(folder, "/scene", ending);
    EXPECT_TRUE(SaveScene(RecordingOf({1}), path).ok());
    EXPECT_GT(std::filesystem::file_size(path), 500U);
  }
  for (const char* const name : {"/scene.mp4", "/none/scene.glb"}) {
    EXPECT_FALSE(SaveScene(RecordingOf({1}), absl::StrCat(folder, name)).ok());
  }
  EXPECT_FALSE(SaveScene(RecordingOf({}), folder + "/empty.html").ok());
  EXPECT_FALSE(std::filesystem::exists(folder + "/empty.html"));
}

}  // namespace
}  // namespace tandem
