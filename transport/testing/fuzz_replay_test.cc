// Runs a fuzz target over its corpus and over random scripts. The environment
// sets FUZZ_CORPUS, a folder, and FUZZ_SCRIPTS, the number of scripts.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::string Variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TEST(FuzzReplay, ReplaysTheCorpus) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(Variable("FUZZ_CORPUS"))) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> script(std::istreambuf_iterator<char>(file), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(script.data()),
                           script.size());
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(FuzzReplay, HoldsOverRandomScripts) {
  const int scripts = std::stoi(Variable("FUZZ_SCRIPTS"));
  ASSERT_GT(scripts, 0);
  for (int seed = 0; seed < scripts; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::vector<uint8_t> script(random() % 512);
    for (uint8_t& byte : script) byte = static_cast<uint8_t>(random());
    LLVMFuzzerTestOneInput(script.data(), script.size());
  }
}

}  // namespace
