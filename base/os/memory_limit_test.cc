#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/os/available_memory.h"
#include "nlohmann/json.hpp"

namespace tandem {
namespace {

void Write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// client_py/tandem/doctor/doctor_test.py reads the same trees.
TEST(MemoryLimit, ReadsEachTreeOfTheTable) {
  std::ifstream file("base/os/testdata/memory_limits.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 10u);
  int number = 0;
  for (const nlohmann::json& tree : cases) {
    SCOPED_TRACE(tree.at("name").get<std::string>());
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) /
        ("memory_limit_" + std::to_string(++number));
    std::filesystem::remove_all(folder);
    const ControlGroupPaths paths = {.process = folder / "process",
                                     .mount = folder / "mount"};
    if (!tree.at("process").is_null()) {
      Write(paths.process, tree.at("process").get<std::string>());
    }
    for (const auto& [name, text] : tree.at("files").items()) {
      Write(folder / "mount" / name, text.get<std::string>());
    }
    const std::optional<MemoryLimit> found = TightestMemoryLimit(paths);
    ASSERT_EQ(found.has_value(), !tree.at("limit").is_null());
    if (!found) continue;
    const auto limit = tree.at("limit").get<uint64_t>();
    const auto used = tree.at("used").get<uint64_t>();
    const auto reclaimable = tree.at("reclaimable").get<uint64_t>();
    EXPECT_EQ(found->limit_bytes, limit);
    EXPECT_EQ(found->used_bytes, used);
    EXPECT_EQ(found->reclaimable_bytes, reclaimable);
    EXPECT_EQ(found->file,
              paths.mount + "/" + tree.at("file").get<std::string>());
    EXPECT_EQ(found->available_bytes(),
              limit + reclaimable < used ? 0 : limit + reclaimable - used);
  }
}

TEST(MemoryLimit, ReadsTheGroupsOfThisProcess) {
  // The machine determines whether a limit exists.
  const std::optional<MemoryLimit> found = TightestMemoryLimit();
  if (!found) return;
  EXPECT_TRUE(std::filesystem::exists(found->file)) << found->file;
}

}  // namespace
}  // namespace tandem
