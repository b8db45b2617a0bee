// Writes the goldens and their listing into the working tree.
//
//   bazel run //schema/goldens:generate
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "schema/goldens/testing/listing.h"
#include "schema/goldens/testing/rpc_listing.h"
#include "schema/goldens/testing/rpc_samples.h"
#include "schema/goldens/testing/samples.h"

namespace {

bool Write(const std::string& path, const void* bytes, size_t size) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(static_cast<const char*>(bytes),
             static_cast<std::streamsize>(size));
  file.close();
  std::fprintf(stderr, "%s: %s, %zu bytes\n", path.c_str(),
               file ? "written" : "could not be written", size);
  return !file.fail();
}

// Writes the messages of version 1, and their listing.
bool WriteMessages(const std::string& root, const std::string& folder) {
  std::ifstream schema(root + "/schema/messages/hazel_rpc.fbs");
  const absl::StatusOr<std::string> listing = tandem::RpcListing(
      std::string(std::istreambuf_iterator<char>(schema), {}));
  if (!listing.ok()) {
    std::fprintf(stderr, "%s\n", listing.status().ToString().c_str());
    return false;
  }
  bool written =
      Write(folder + "listing.json", listing->data(), listing->size());
  for (const tandem::RpcSample& sample : tandem::RpcSamples()) {
    const std::string bytes = tandem::RpcBytes(sample.envelope);
    written = written &&
              Write(folder + sample.name + ".bin", bytes.data(), bytes.size());
  }
  return written;
}

}  // namespace

int main() {
  const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (root == nullptr) {
    std::fprintf(stderr, "Next: bazel run //schema/goldens:generate\n");
    return 1;
  }
  const std::string folder = std::string(root) + "/schema/goldens/";
  const std::string listing = tandem::Listing();
  const std::string flan_listing = tandem::FlanListing();
  const std::string scenes = tandem::SceneListing();
  bool written =
      Write(folder + "lrbc_v1.txt", listing.data(), listing.size()) &&
      Write(folder + "flan_v1.txt", flan_listing.data(), flan_listing.size()) &&
      Write(folder + "scene_v1.txt", scenes.data(), scenes.size()) &&
      WriteMessages(root, folder + "rpc_v1/");
  for (const auto& [name, bytes] : tandem::SampleFiles()) {
    written = written && Write(folder + name, bytes.data(), bytes.size());
  }
  return written ? 0 : 1;
}
