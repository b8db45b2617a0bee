// The LRBC region's header, version 1: the contract of engine and client.
//
// Length: one format, each field with its asserts.
//
// Data flow: the engine fills the header before the region has a name;
// afterwards only SharedWords change. Each has one writing side, named in its
// row, with these exceptions: the engine also writes client_pid, client_phase,
// exchange_kind and resets after a client has left or an exchange has ended,
// and own_seq, own_present and both positions of both rings when it
// acknowledges a client. In a region with workers (worker_slot.h), "engine" is
// a worker for the words of an exchange, and the supervisor for all others.
// Ownership: the mapped region. `schema/goldens/lrbc_v1.txt` lists every field
// with offset, type, value and meaning; prose refers to it.
//
//   const auto* header = reinterpret_cast<const LrbcHeader*>(mapping);
//   if (header->magic != kLrbcMagic) return NotARegion();
//   const float* obs = reinterpret_cast<const float*>(
//       mapping + header->obs_offset);  // float32[num_envs, obs_size]

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/layout/shared_word.h"

namespace tandem {

inline constexpr uint32_t kLrbcMagic = 0x4C524243;  // "LRBC", read big-endian
inline constexpr uint32_t kLrbcVersion = 1;
inline constexpr uint32_t kLrbcHeaderBytes = 4096;

// Each section of the region begins at a pair of cache lines, since the
// adjacent-line prefetcher loads two. The format guarantees 64 bytes.
inline constexpr uint64_t kSectionAlignment = 128;
inline constexpr uint64_t kPromisedAlignment = 64;

// The byte of the file that each side locks by an open-file-description lock:
// the first byte of its pid label, so that label and lock are in one place.
inline constexpr int64_t kEngineLockByte = 8;
inline constexpr int64_t kClientLockByte = 12;

// The relation of simulated time to the wall clock.
enum class RegionMode : uint8_t {
  kTraining = 0,   // one step per exchange, as fast as possible
  kInference = 1,  // real time, also without actions
};

// The kind of an exchange. A header-only client, which does not write this
// word, gets 0.
enum class ExchangeKind : uint32_t {
  kStep = 0,       // resets the flagged environments, steps all others
  kResetOnly = 1,  // resets the flagged environments, steps none
};

// The time of the reset after the end of an episode. The names are those of
// Gymnasium's AutoresetMode. A header-only client gets 0.
enum class AutoresetMode : uint32_t {
  // Gymnasium's SAME_STEP, NEXT_STEP, DISABLED.
  kSameStep = 0,  // resets at once; final_obs has the last obs
  kNextStep = 1,  // the next step resets, ignores its action; reward 0
  kDisabled = 2,  // only the client's reset flags reset
};

// Bits of a reset flag. A header-only client writes 1.
inline constexpr uint8_t kResetRequested = 1;
inline constexpr uint8_t kResetSeeded = 2;  // reset_seeds has the seed
// Alone: the exchange neither resets nor steps the environment, whose rows stay
// as they are. For an engine with kFeatureSubsets; for others, a reset.
inline constexpr uint8_t kSkip = 4;

// Whether an exchange resets the environment with these flags.
constexpr bool IsReset(uint8_t flags) { return flags != 0 && flags != kSkip; }

// Bits of feature_bits: the extensions of the engine that made the region.
inline constexpr uint64_t kFeatureArrays = 1;  // terminateds .. reset_seeds
inline constexpr uint64_t kFeatureSession =
    2;  // locks, attaching, doorbells, phases
inline constexpr uint64_t kFeatureStepTimes = 4;
inline constexpr uint64_t kFeatureInfos = 8;    // info_size, the infos section
inline constexpr uint64_t kFeatureFrames = 16;  // flan_offset to flan_size,
                                                // frame_request and _answer;
                                                // only regions with frames
inline constexpr uint64_t kFeatureImages = 32;  // image_offset to
                                                // image_channels, image_step;
                                                // only regions with images
inline constexpr uint64_t kFeatureCommands = 64;     // services,
                                                     // dropped_messages
inline constexpr uint64_t kFeatureAttendants = 128;  // attendants_offset to
                                                     // attendants_crc32,
                                                     // attendant_bell,
                                                     // attendant_pause_ns
inline constexpr uint64_t kFeatureImageSlots =
    256;  // image_slots_offset to image_slots_crc32; only regions with slots
inline constexpr uint64_t kFeatureFields =
    512;  // fields_offset to fields_crc32; only regions with fields, whose
          // obs_size and act_size may be 0
inline constexpr uint64_t kFeatureWorkers =
    1024;  // workers_offset to workers_crc32; only regions with workers
inline constexpr uint64_t kFeatureSubsets = 2048;  // the flag kSkip
inline constexpr uint64_t kFeatureGpuArrays =
    4096;  // gpu_arrays_offset to gpu_arrays_crc32; only regions whose engine
           // exports memory of a GPU
inline constexpr uint64_t kFeatureIdentity = 8192;  // identity
inline constexpr uint64_t kFeatureCoreSharing =
    16384;  // client_core, engine_core, early_wakes, early_hits
inline constexpr uint64_t kFeatureOwnRun =
    32768;  // own_seq to own_episode_length
inline constexpr uint64_t kFeatureFinalImages =
    65536;  // the images are followed by as many final images, from the next
            // multiple of kSectionAlignment on; only regions with images
inline constexpr uint64_t kFeaturesOfVersion1 =
    kFeatureArrays | kFeatureSession | kFeatureStepTimes | kFeatureInfos;

// The current activity of a side, for the peer's error texts and for observers.
enum class Phase : uint8_t {
  kAbsent = 0,             // no client process, or not started yet
  kAttaching = 1,          // client: has the lock, waits for attach_ack
  kIdle = 2,               // client: runs its own code; engine: waits
  kWaiting = 3,            // client: waits for the engine's results
  kStepping = 4,           // engine: resets and steps environments
  kResetting = 5,          // engine: resets only (an exchange, a new client)
  kStopped = 6,            // detached
  kPaused = 7,             // engine: simulated time stops, exchanges wait
  kPausedByAttendant = 8,  // the same; the client's deadlines do not run
  kCalling = 9,            // worker: in calls of environments' methods, such as
                           // `render`, between two exchanges
};

// First byte and length of each range that layout_crc32 covers, and of the ones
// that attendants_crc32, image_slots_crc32, fields_crc32, workers_crc32 and
// gpu_arrays_crc32 cover.
inline constexpr uint32_t kLayoutCrcRanges[][2] = {{20, 108}, {384, 512}};
inline constexpr uint32_t kAttendantsCrcRanges[][2] = {{904, 12}};
inline constexpr uint32_t kImageSlotsCrcRanges[][2] = {{920, 12}};
inline constexpr uint32_t kFieldsCrcRanges[][2] = {{936, 12}};
inline constexpr uint32_t kWorkersCrcRanges[][2] = {{952, 12}};
inline constexpr uint32_t kGpuArraysCrcRanges[][2] = {{968, 16}};

// Where the observations are: the values of gpu_obs_mode.
enum class GpuMode : uint8_t {
  kCpu = 0,             // in the region only
  kCudaIpc = 1,         // the handles are CUipcMemHandle and CUipcEventHandle
  kVulkanExternal = 2,  // in the region; images alone in memory that the engine
                        // has exported itself: a GpuFileHandle, no event
};

// The bytes of gpu_obs_handle with kVulkanExternal: the opaque descriptor of
// the allocation, in the engine's process (server_pid).
struct GpuFileHandle {
  uint32_t fd;     // its number, below 2^31
  uint32_t flags;  // kGpuDedicated
  uint8_t reserved_8[56];
};
inline constexpr uint32_t kGpuDedicated = 1;  // a dedicated allocation

static_assert(offsetof(GpuFileHandle, fd) == 0);
static_assert(offsetof(GpuFileHandle, flags) == 4);
static_assert(sizeof(GpuFileHandle) == 64);
static_assert(alignof(GpuFileHandle) == 4);
static_assert(std::is_trivially_copyable_v<GpuFileHandle>);
static_assert(std::is_standard_layout_v<GpuFileHandle>);

// Bits of gpu_flags.
inline constexpr uint32_t kGpuFillsCpu = 1;  // obs, final_obs and images of the
                                             // region are written, too

// A logarithmic histogram with four linear parts per octave, from 128 ns to 8.6
// s. The first and last buckets include shorter and longer times. One writer.
// The counters have 64 bits and do not wrap in the lifetime of a machine.
struct StepTimes {
  static constexpr uint32_t kBuckets = 104;
  SharedWord<uint64_t> total_ns;
  SharedWord<uint64_t> counts[kBuckets];
};

struct LrbcHeader {
  // Constant after creation, except the pids and mode. The pids are for
  // display, except server_pid with kVulkanExternal. So is mode: it does not
  // change how exchanges work.
  uint32_t magic;
  uint32_t version;
  SharedWord<uint32_t> server_pid;  // engine
  SharedWord<uint32_t> client_pid;  // client
  SharedWord<uint8_t> mode;         // engine; a RegionMode
  uint8_t reserved_17[3];
  uint32_t num_envs;
  uint32_t obs_size;  // float32 values per environment; 0: only in fields
  uint32_t act_size;
  uint8_t reserved_32[96];

  // Writer engine; reader client; publishes an exchange's results; initially 0.
  SharedWord<uint64_t> frame_seq;
  uint8_t reserved_136[120];

  // Writer client; reader engine; publishes actions, resets and exchange_kind;
  // initially 0.
  SharedWord<uint64_t> action_seq;
  uint8_t reserved_264[120];

  // Constant after creation: byte offsets from the start of the region.
  uint64_t obs_offset;      // float32[num_envs, obs_size]
  uint64_t act_offset;      // float32[num_envs, act_size]
  uint64_t rewards_offset;  // float32[num_envs]
  uint64_t dones_offset;    // uint8[num_envs]
  uint64_t resets_offset;   // uint8[num_envs]
  uint64_t cmd_s2c_offset;  // RingHeader, then cmd_ring_size bytes
  uint64_t cmd_c2s_offset;
  uint32_t cmd_ring_size;  // a power of two
  uint8_t reserved_444[4];
  uint64_t image_offset;  // 0: no images
  uint32_t image_width;
  uint32_t image_height;
  uint32_t image_channels;
  uint8_t reserved_468[4];
  uint8_t gpu_available;
  uint8_t gpu_obs_mode;  // a GpuMode
  uint8_t reserved_474[2];
  uint8_t gpu_obs_handle[64];  // of the allocation, by gpu_obs_mode
  uint32_t gpu_device_id;
  uint8_t reserved_544[96];

  // Extensions. Constant after creation up to layout_crc32.
  uint64_t region_size;   // bytes, equal to the file's
  uint64_t feature_bits;  // kFeature*
  uint64_t generation;    // creation, nanoseconds since the Unix epoch
  uint32_t header_size;   // kLrbcHeaderBytes
  uint32_t info_size;     // float64 values per environment; 0 without infos
  uint64_t truncateds_offset;   // uint8[num_envs]
  uint64_t terminateds_offset;  // uint8[num_envs]
  uint64_t final_obs_offset;    // float32[num_envs, obs_size]
  uint64_t reset_seeds_offset;  // uint64[num_envs]
  // float64[num_envs, info_size] infos; the same size of final_infos; the
  // task's description as JSON text, up to the end. Each begins at a multiple
  // of kSectionAlignment from the first. 0: none.
  uint64_t infos_offset;
  uint64_t infos_size;   // bytes of all three
  uint64_t flan_offset;  // FlanHeader, then its slots (flan.h); 0: none
  uint64_t flan_size;    // bytes
  uint8_t gpu_device_uuid[16];
  // In the shared allocation: of the observations; kVulkanExternal: of the
  // images.
  uint64_t gpu_alloc_offset;
  uint64_t gpu_alloc_size;  // bytes
  uint8_t gpu_event_handle[64];
  char task[64];  // the task's name, NUL-terminated
  // CRC-32 (IEEE 802.3, as zlib's crc32) of the constant bytes,
  // kLayoutCrcRanges in order. It detects an overwritten offset that still
  // looks valid.
  uint32_t layout_crc32;
  uint8_t reserved_900[4];
  // The slots of attendants (attendant_slot.h); 0: none.
  uint64_t attendants_offset;
  uint32_t attendant_ring_size;  // of data in each ring; a power of two
  uint32_t attendants_crc32;     // as layout_crc32, kAttendantsCrcRanges
  // The slots of requested images (image_slot.h); 0: none.
  uint64_t image_slots_offset;
  uint32_t image_slot_bytes;   // of an image; a multiple of kPromisedAlignment
  uint32_t image_slots_crc32;  // as layout_crc32, kImageSlotsCrcRanges
  // The table of fields (field.h); 0: none.
  uint64_t fields_offset;
  uint32_t field_count;   // records of the table
  uint32_t fields_crc32;  // as layout_crc32: kFieldsCrcRanges, then all records
  // The workers' section (worker_slot.h); 0: none.
  uint64_t workers_offset;
  uint32_t num_workers;
  uint32_t workers_crc32;  // as layout_crc32: kWorkersCrcRanges, then the rows
                           // of all slots
  // The table of arrays in the GPU allocation (field.h); 0: none.
  uint64_t gpu_arrays_offset;
  uint32_t gpu_array_count;   // records of the table
  uint32_t gpu_flags;         // kGpu*
  uint32_t gpu_arrays_crc32;  // as layout_crc32: kGpuArraysCrcRanges, then all
                              // records
  // Constant after creation; random, no two regions have the same. Where
  // threads of several processes cannot sleep on a word of memory, bells are
  // named by it. Linux writes it and does not read it.
  uint8_t identity[16];
  uint8_t reserved_1004[20];

  // Writer client; reader engine.
  SharedWord<uint32_t> exchange_kind;   // published by action_seq
  SharedWord<uint32_t> autoreset_mode;  // published by attach_request
  SharedWord<uint32_t>
      attach_request;                  // a new client's number; wraps, compared
                                       // for equality only; 0 at birth
  SharedWord<uint32_t> frame_request;  // a frame of the state as it is, asked
                                       // for; wraps, compared for equality
                                       // only; 0 at birth
  // Writers attendants; reader engine. Any attendant has written into its slot
  // or ring: each adds 1.
  SharedWord<uint32_t> attendant_bell;
  // 1 + the core of the thread that asked last and waits for the results; 0:
  // unknown, or it computes meanwhile.
  SharedWord<uint32_t> client_core;
  uint8_t reserved_1048[104];

  // Writer engine; reader client.
  SharedWord<uint32_t> attach_ack;  // the request that the engine acknowledged
  SharedWord<uint32_t> exchange_status;  // ErrorCode, published by frame_seq
  char error_text[240];  // of exchange_status, published by frame_seq
  SharedWord<uint32_t> frame_answer;  // the frame_request whose frame is in
                                      // the frame ring; 0 at birth
  SharedWord<uint32_t> services;      // that answer calls now: bits of
                                      // service.h

  // Doorbells: see docs/protocol.md, "Waiting". The writer of a doorbell is the
  // peer of the side that it wakes. The word counts rings and wraps; it is
  // compared for equality only. The writer of sleepers is the side that sleeps.
  SharedWord<uint32_t> engine_doorbell;
  uint8_t reserved_1412[124];
  SharedWord<uint32_t> engine_sleepers;
  // 1 + the core to which the engine's thread is limited, to sleep there, since
  // it is the client's; 0: none.
  SharedWord<uint32_t> engine_core;
  // How often the engine has polled before a request that it forecast, and how
  // often the request came meanwhile.
  SharedWord<uint64_t> early_wakes;
  SharedWord<uint64_t> early_hits;
  uint8_t reserved_1560[104];
  SharedWord<uint32_t> client_doorbell;
  uint8_t reserved_1668[124];
  SharedWord<uint32_t> client_sleepers;
  uint8_t reserved_1796[124];

  // Phase in the top 4 bits, CLOCK_MONOTONIC nanoseconds of its start below.
  SharedWord<uint64_t> engine_phase;
  SharedWord<uint64_t> image_step;          // the frame_seq of the images
  SharedWord<uint64_t> dropped_messages;    // of this client, that were no
                                            // envelopes, or had no id
  SharedWord<uint64_t> attendant_pause_ns;  // of all ended attendants' pauses
                                            // together; published by the phase
                                            // that follows
  uint8_t reserved_1952[96];
  SharedWord<uint64_t> client_phase;
  // Writer client; readers engine and observers. Statistics of the rewards that
  // the client computes itself: see docs/protocol.md, "Own rewards". own_seq
  // grows; it is odd while the others are written, and publishes them.
  SharedWord<uint64_t> own_seq;
  SharedWord<uint64_t> own_present;   // 1, or 0: the rewards are the engine's
  SharedWord<uint64_t> own_episodes;  // that have ended, of all environments
  SharedDouble own_last_reward;       // mean of all environments
  SharedDouble own_rolling_return;  // mean of the last 100 episodes; until one
                                    // has ended: of the current ones so far
  SharedDouble own_episode_length;  // mean of the same, in steps; 0: none
  uint8_t reserved_2104[72];

  StepTimes engine_step_times;  // writer engine: from taking actions to results
  uint8_t reserved_3016[56];
  StepTimes client_round_trips;  // writer client: from actions to results seen
  uint8_t reserved_3912[184];
};

static_assert(offsetof(LrbcHeader, magic) == 0);
static_assert(offsetof(LrbcHeader, version) == 4);
static_assert(offsetof(LrbcHeader, server_pid) == kEngineLockByte);
static_assert(offsetof(LrbcHeader, client_pid) == kClientLockByte);
static_assert(offsetof(LrbcHeader, mode) == 16);
static_assert(offsetof(LrbcHeader, num_envs) == 20);
static_assert(offsetof(LrbcHeader, obs_size) == 24);
static_assert(offsetof(LrbcHeader, act_size) == 28);
static_assert(offsetof(LrbcHeader, frame_seq) == 128);
static_assert(offsetof(LrbcHeader, action_seq) == 256);
static_assert(offsetof(LrbcHeader, obs_offset) == 384);
static_assert(offsetof(LrbcHeader, act_offset) == 392);
static_assert(offsetof(LrbcHeader, rewards_offset) == 400);
static_assert(offsetof(LrbcHeader, dones_offset) == 408);
static_assert(offsetof(LrbcHeader, resets_offset) == 416);
static_assert(offsetof(LrbcHeader, cmd_s2c_offset) == 424);
static_assert(offsetof(LrbcHeader, cmd_c2s_offset) == 432);
static_assert(offsetof(LrbcHeader, cmd_ring_size) == 440);
static_assert(offsetof(LrbcHeader, image_offset) == 448);
static_assert(offsetof(LrbcHeader, image_width) == 456);
static_assert(offsetof(LrbcHeader, image_height) == 460);
static_assert(offsetof(LrbcHeader, image_channels) == 464);
static_assert(offsetof(LrbcHeader, gpu_available) == 472);
static_assert(offsetof(LrbcHeader, gpu_obs_mode) == 473);
static_assert(offsetof(LrbcHeader, gpu_obs_handle) == 476);
static_assert(offsetof(LrbcHeader, gpu_device_id) == 540);
static_assert(offsetof(LrbcHeader, region_size) == 640);
static_assert(offsetof(LrbcHeader, feature_bits) == 648);
static_assert(offsetof(LrbcHeader, generation) == 656);
static_assert(offsetof(LrbcHeader, header_size) == 664);
static_assert(offsetof(LrbcHeader, info_size) == 668);
static_assert(offsetof(LrbcHeader, truncateds_offset) == 672);
static_assert(offsetof(LrbcHeader, terminateds_offset) == 680);
static_assert(offsetof(LrbcHeader, final_obs_offset) == 688);
static_assert(offsetof(LrbcHeader, reset_seeds_offset) == 696);
static_assert(offsetof(LrbcHeader, infos_offset) == 704);
static_assert(offsetof(LrbcHeader, infos_size) == 712);
static_assert(offsetof(LrbcHeader, flan_offset) == 720);
static_assert(offsetof(LrbcHeader, flan_size) == 728);
static_assert(offsetof(LrbcHeader, gpu_device_uuid) == 736);
static_assert(offsetof(LrbcHeader, gpu_alloc_offset) == 752);
static_assert(offsetof(LrbcHeader, gpu_alloc_size) == 760);
static_assert(offsetof(LrbcHeader, gpu_event_handle) == 768);
static_assert(offsetof(LrbcHeader, task) == 832);
static_assert(offsetof(LrbcHeader, layout_crc32) == 896);
static_assert(offsetof(LrbcHeader, attendants_offset) == 904);
static_assert(offsetof(LrbcHeader, attendant_ring_size) == 912);
static_assert(offsetof(LrbcHeader, attendants_crc32) == 916);
static_assert(offsetof(LrbcHeader, image_slots_offset) == 920);
static_assert(offsetof(LrbcHeader, image_slot_bytes) == 928);
static_assert(offsetof(LrbcHeader, image_slots_crc32) == 932);
static_assert(offsetof(LrbcHeader, fields_offset) == 936);
static_assert(offsetof(LrbcHeader, field_count) == 944);
static_assert(offsetof(LrbcHeader, fields_crc32) == 948);
static_assert(offsetof(LrbcHeader, workers_offset) == 952);
static_assert(offsetof(LrbcHeader, num_workers) == 960);
static_assert(offsetof(LrbcHeader, workers_crc32) == 964);
static_assert(offsetof(LrbcHeader, gpu_arrays_offset) == 968);
static_assert(offsetof(LrbcHeader, gpu_array_count) == 976);
static_assert(offsetof(LrbcHeader, gpu_flags) == 980);
static_assert(offsetof(LrbcHeader, gpu_arrays_crc32) == 984);
static_assert(offsetof(LrbcHeader, identity) == 988);
static_assert(offsetof(LrbcHeader, exchange_kind) == 1024);
static_assert(offsetof(LrbcHeader, autoreset_mode) == 1028);
static_assert(offsetof(LrbcHeader, attach_request) == 1032);
static_assert(offsetof(LrbcHeader, frame_request) == 1036);
static_assert(offsetof(LrbcHeader, attendant_bell) == 1040);
static_assert(offsetof(LrbcHeader, client_core) == 1044);
static_assert(offsetof(LrbcHeader, attach_ack) == 1152);
static_assert(offsetof(LrbcHeader, exchange_status) == 1156);
static_assert(offsetof(LrbcHeader, error_text) == 1160);
static_assert(offsetof(LrbcHeader, frame_answer) == 1400);
static_assert(offsetof(LrbcHeader, services) == 1404);
static_assert(offsetof(LrbcHeader, engine_doorbell) == 1408);
static_assert(offsetof(LrbcHeader, engine_sleepers) == 1536);
static_assert(offsetof(LrbcHeader, engine_core) == 1540);
static_assert(offsetof(LrbcHeader, early_wakes) == 1544);
static_assert(offsetof(LrbcHeader, early_hits) == 1552);
static_assert(offsetof(LrbcHeader, client_doorbell) == 1664);
static_assert(offsetof(LrbcHeader, client_sleepers) == 1792);
static_assert(offsetof(LrbcHeader, engine_phase) == 1920);
static_assert(offsetof(LrbcHeader, image_step) == 1928);
static_assert(offsetof(LrbcHeader, dropped_messages) == 1936);
static_assert(offsetof(LrbcHeader, attendant_pause_ns) == 1944);
static_assert(offsetof(LrbcHeader, client_phase) == 2048);
static_assert(offsetof(LrbcHeader, own_seq) == 2056);
static_assert(offsetof(LrbcHeader, own_present) == 2064);
static_assert(offsetof(LrbcHeader, own_episodes) == 2072);
static_assert(offsetof(LrbcHeader, own_last_reward) == 2080);
static_assert(offsetof(LrbcHeader, own_rolling_return) == 2088);
static_assert(offsetof(LrbcHeader, own_episode_length) == 2096);
static_assert(offsetof(LrbcHeader, engine_step_times) == 2176);
static_assert(offsetof(LrbcHeader, client_round_trips) == 3072);
static_assert(sizeof(StepTimes) == 840);
static_assert(sizeof(LrbcHeader) == kLrbcHeaderBytes);
static_assert(alignof(LrbcHeader) == 8);
static_assert(std::is_trivially_copyable_v<LrbcHeader>);
static_assert(std::is_standard_layout_v<LrbcHeader>);

// Words that the two sides write at every exchange never share a pair of lines.
static_assert(offsetof(LrbcHeader, frame_seq) % 128 == 0);
static_assert(offsetof(LrbcHeader, action_seq) % 128 == 0);
static_assert(offsetof(LrbcHeader, exchange_kind) % 128 == 0);
static_assert(offsetof(LrbcHeader, attach_ack) % 128 == 0);
static_assert(offsetof(LrbcHeader, engine_doorbell) % 128 == 0);
static_assert(offsetof(LrbcHeader, engine_sleepers) % 128 == 0);
static_assert(offsetof(LrbcHeader, client_doorbell) % 128 == 0);
static_assert(offsetof(LrbcHeader, client_sleepers) % 128 == 0);
static_assert(offsetof(LrbcHeader, engine_phase) % 128 == 0);
static_assert(offsetof(LrbcHeader, client_phase) % 128 == 0);
static_assert(offsetof(LrbcHeader, engine_step_times) % 128 == 0);
static_assert(offsetof(LrbcHeader, client_round_trips) % 128 == 0);

}  // namespace tandem
