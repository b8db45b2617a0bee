// Runs the fuzz target over its corpus and over random scripts.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

TEST(RingFuzz, ReplaysTheCorpus) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("transport/ring/corpus")) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> script(std::istreambuf_iterator<char>(file), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(script.data()),
                           script.size());
    ++count;
  }
  EXPECT_GT(count, 0);
}

TEST(RingFuzz, HoldsOverRandomScripts) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> script(random() % 512);
    for (uint8_t& byte : script) byte = static_cast<uint8_t>(random());
    LLVMFuzzerTestOneInput(script.data(), script.size());
  }
}

}  // namespace
