// Steps a PairEngine (sdk/testing/pair_engine.h) by tandem.hpp, and prints what
// it has read. Argument: the region's name.
#include <cstdint>
#include <cstdio>
#include <tandem.hpp>

namespace {

// Prints the code with which an array of elements T is refused.
template <typename T>
void PrintRefusal(const tandem::Client& client, const char* name) {
  try {
    client.Array<T>(name);
  } catch (const tandem::Error& error) {
    std::printf("%s: %s\n", name, tandem_code_name(error.code()));
  }
}

}  // namespace

int main(int, char** argv) {
  tandem::Client client(argv[1], 60);
  int16_t next = -7;
  for (int16_t& action : client.Array<int16_t>("action/")) action = next++;
  client.Step(60);
  const tandem_array pair = client.Describe("obs/pair");
  std::printf("%d x %d:", static_cast<int>(pair.shape[0]),
              static_cast<int>(pair.shape[1]));
  for (const int16_t value : client.Array<int16_t>("obs/pair")) {
    std::printf(" %d", value);
  }
  std::printf("\n");
  for (const double reward : client.Array<double>("reward64")) {
    std::printf("reward %g\n", reward);
  }
  PrintRefusal<uint16_t>(client, "obs/pair");
  PrintRefusal<uint16_t>(client, "obs/deep");
  return 0;
}
