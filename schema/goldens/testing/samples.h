// The samples of the goldens: a header with every field set, a ring
// with three entries and a skip, and a frame ring.
//
// Data flow: samples -> :generate -> the files of SampleFiles, and the
// listings; goldens_test compares them again.
//
//   LrbcHeader header = SampleHeader();
//   std::vector<uint8_t> bytes = SampleRing();

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/layout/attendant_slot.h"
#include "schema/layout/field.h"
#include "schema/layout/image_slot.h"
#include "schema/layout/lrbc.h"
#include "schema/layout/worker_slot.h"

namespace tandem {

// A valid region header: sections are aligned, within the region, and disjoint.
// Only reserved fields, those of the tables of fields and GPU arrays and of the
// workers, and the identity are zero; no two fields have the same number where
// the format leaves a choice.
LrbcHeader SampleHeader();

// The same for an engine with images: its feature bit is set, and the images
// belong to the current exchange.
LrbcHeader SampleImagesHeader();

// The same for an engine that answers RPCs.
LrbcHeader SampleCommandsHeader();

// The same for an engine with slots for attendants.
LrbcHeader SampleAttendantsHeader();

// A slot whose new attendant waits for the engine.
AttendantSlot SampleAttendantSlot();

// The same as SampleHeader for an engine with slots for images.
LrbcHeader SampleImageSlotsHeader();

// A slot into which the engine writes image 7; the caller has released 6.
ImageSlot SampleImageSlot();

// The same as SampleHeader for an engine with fields, and its table: the
// float32 rows, then a field of each role from kReward on. Only reserved fields
// and those of the workers are zero.
LrbcHeader SampleFieldsHeader();
std::vector<FieldRecord> SampleFields();

// A record of another table, in which every member is set.
FieldRecord SampleField();

// The same as SampleFieldsHeader for an engine with workers that knows subsets,
// and the rows of these workers.
LrbcHeader SampleWorkersHeader();
std::vector<WorkerRows> SampleWorkers();

// The same as SampleWorkersHeader for an engine with arrays on a GPU, and their
// table: float32 rows, rewards and images. Only reserved fields, and the
// identity, are zero.
LrbcHeader SampleGpuHeader();
std::vector<FieldRecord> SampleGpuArrays();

// The same as SampleWorkersHeader for an engine with images in memory of a GPU
// that it has exported itself, and their table: RGBA. There is no event.
LrbcHeader SampleGpuMemoryHeader();
std::vector<FieldRecord> SampleGpuMemoryArrays();

// The same as SampleGpuHeader for an engine that wrote an identity.
LrbcHeader SampleIdentityHeader();

// The same as SampleIdentityHeader for an engine that shares its client's core.
LrbcHeader SampleCoresHeader();

// The same as SampleCoresHeader for a region whose client computes rewards
// itself.
LrbcHeader SampleOwnRunHeader();

// A workers' header whose supervisor has ordered a reset with seeds, and ends.
WorkersHeader SampleWorkersHead();

// The slot of a worker in environment 7, which failed in the last exchange.
WorkerSlot SampleWorkerSlot();

// The sample ring, exactly full, whose positions have wrapped modulo 2^32:
//   48..80   a message of 27 bytes, 1 to 27
//   80..88   an empty message
//   88..128  skipped
//   0..48    a message of 44 bytes, 101 to 144
inline constexpr uint32_t kSampleRingBytes = 128;
inline constexpr uint32_t kSampleReadPos = 0xFFFFFFB0;
inline constexpr uint32_t kSampleWritePos = 0x30;

// Header and data.
std::vector<uint8_t> SampleRing();

// The sample frame ring, header and slots, after three frames: frame 3 is in
// the first slot, frame 2 in the second. Frame h has the bytes 16h to 16h + 11.
inline constexpr uint32_t kSampleFlanSlots = 2;
inline constexpr uint32_t kSampleFlanFrameBytes = 12;
std::vector<uint8_t> SampleFlan();

// A segment with a scene of one environment and one moving node: the header, a
// GLB without content, and a ring whose first slot has a snapshot.
inline constexpr uint32_t kSampleGlbBytes = 12;
inline constexpr uint32_t kSampleSceneSlots = 4;
std::vector<uint8_t> SampleScene();

struct SampleFile {
  const char* name;
  std::string bytes;
};
// All goldens of the layout but the listings.
std::vector<SampleFile> SampleFiles();

}  // namespace tandem
