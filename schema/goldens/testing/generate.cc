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
#include "schema/layout/lrbc.h"

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
  const tandem::LrbcHeader header = tandem::SampleHeader();
  const tandem::LrbcHeader images = tandem::SampleImagesHeader();
  const tandem::LrbcHeader commands = tandem::SampleCommandsHeader();
  const tandem::LrbcHeader identity = tandem::SampleIdentityHeader();
  const tandem::LrbcHeader cores = tandem::SampleCoresHeader();
  const tandem::LrbcHeader own_run = tandem::SampleOwnRunHeader();
  const tandem::LrbcHeader attendants = tandem::SampleAttendantsHeader();
  const tandem::AttendantSlot slot = tandem::SampleAttendantSlot();
  const tandem::LrbcHeader image_slots = tandem::SampleImageSlotsHeader();
  const tandem::ImageSlot image_slot = tandem::SampleImageSlot();
  const tandem::LrbcHeader fields = tandem::SampleFieldsHeader();
  const tandem::FieldRecord field = tandem::SampleField();
  const tandem::LrbcHeader workers = tandem::SampleWorkersHeader();
  const tandem::LrbcHeader gpu = tandem::SampleGpuHeader();
  const tandem::LrbcHeader gpu_memory = tandem::SampleGpuMemoryHeader();
  const tandem::WorkersHeader workers_head = tandem::SampleWorkersHead();
  const tandem::WorkerSlot worker_slot = tandem::SampleWorkerSlot();
  const auto ring = tandem::SampleRing();
  const auto flan = tandem::SampleFlan();
  const std::string listing = tandem::Listing();
  const std::string flan_listing = tandem::FlanListing();
  const bool written =
      Write(folder + "lrbc_v1.bin", &header, sizeof(header)) &&
      Write(folder + "lrbc_v1_images.bin", &images, sizeof(images)) &&
      Write(folder + "lrbc_v1_commands.bin", &commands, sizeof(commands)) &&
      Write(folder + "lrbc_v1_identity.bin", &identity, sizeof(identity)) &&
      Write(folder + "lrbc_v1_cores.bin", &cores, sizeof(cores)) &&
      Write(folder + "lrbc_v1_own_run.bin", &own_run, sizeof(own_run)) &&
      Write(folder + "lrbc_v1_attendants.bin", &attendants,
            sizeof(attendants)) &&
      Write(folder + "attendant_slot_v1.bin", &slot, sizeof(slot)) &&
      Write(folder + "lrbc_v1_image_slots.bin", &image_slots,
            sizeof(image_slots)) &&
      Write(folder + "image_slot_v1.bin", &image_slot, sizeof(image_slot)) &&
      Write(folder + "lrbc_v1_fields.bin", &fields, sizeof(fields)) &&
      Write(folder + "field_v1.bin", &field, sizeof(field)) &&
      Write(folder + "lrbc_v1_workers.bin", &workers, sizeof(workers)) &&
      Write(folder + "lrbc_v1_gpu.bin", &gpu, sizeof(gpu)) &&
      Write(folder + "lrbc_v1_gpu_memory.bin", &gpu_memory,
            sizeof(gpu_memory)) &&
      Write(folder + "workers_header_v1.bin", &workers_head,
            sizeof(workers_head)) &&
      Write(folder + "worker_slot_v1.bin", &worker_slot, sizeof(worker_slot)) &&
      Write(folder + "ring_v1.bin", ring.data(), ring.size()) &&
      Write(folder + "flan_v1.bin", flan.data(), flan.size()) &&
      Write(folder + "lrbc_v1.txt", listing.data(), listing.size()) &&
      Write(folder + "flan_v1.txt", flan_listing.data(), flan_listing.size()) &&
      WriteMessages(root, folder + "rpc_v1/");
  return written ? 0 : 1;
}
