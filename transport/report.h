// Reports for monitoring: read-only snapshots of regions and of segments with
// frames, their list, and the problems of a region.
//
// Data flow: a name -> copies of the file's header and of the heads of its
// rings, untrusted -> a plain struct; two structs -> rates; one -> sentences.
// Ownership: the observer owns a report: a command, a viewer's panel. Reading
// is bounded for a file in any state: live, dead, truncated, corrupt. It has no
// effect on either side: it maps, locks, writes and wakes nothing.
//
//   absl::StatusOr<RegionReport> report = ReadRegionReport("demo");
//   if (report->header_problems.empty()) Show(report->engine.phase);
//   ... a second later ...
//   std::optional<RegionRates> rates = RatesBetween(*report, later);

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "transport/frame_geometry.h"
#include "transport/region.h"
#include "transport/run_snapshot.h"
#include "transport/step_times.h"

namespace tandem {

// The state of a side. Its lock decides.
enum class Life : uint8_t {
  kAlive,    // holds its lock
  kDead,     // no lock, but data of a side that did not detach
  kAbsent,   // never attached, or detached
  kUnknown,  // a header-only side, or an error of the kernel
};
const char* NameOf(Life life);  // "alive"

struct PeerReport {
  Life life = Life::kUnknown;
  uint32_t pid = 0;              // for display; 0: none
  Phase phase = Phase::kAbsent;  // may be an unknown number
  double phase_secs = 0;         // duration of the phase
  uint32_t bell_rings = 0;       // of the bell that wakes it; wraps
  uint32_t sleepers = 0;         // threads that sleep, or will sleep
  // Client: on which its thread waits for results; engine: on which it sleeps
  // between two requests, since it is the client's. nullopt: none, or unknown.
  std::optional<uint32_t> core = {};
};

// The state of the two counts in the copy.
enum class ExchangeState : uint8_t {
  kIdle,        // action_seq = frame_seq
  kPending,     // action_seq = frame_seq + 1
  kImpossible,  // other values for kSequenceGraceNs
};
inline constexpr int64_t kSequenceGraceNs = 20'000'000;

struct ImagesReport {
  uint32_t width = 0;  // pixels
  uint32_t height = 0;
  uint32_t channels = 0;  // bytes per pixel
  uint64_t step = 0;      // the images' frame_seq
};

// For a region whose engine answers RPCs.
struct RpcReport {
  std::vector<std::string> on = {};  // enabled services, by name
  std::vector<std::string> off = {};
  uint64_t dropped_messages = 0;  // of the current client
};

// A field of the region's table. Its section, if it has an array of its own, is
// also in RegionReport::sections.
struct FieldReport {
  std::string role = {};             // "obs"
  std::string path = {};             // "/image"
  std::string dtype = {};            // NumPy's name
  std::vector<uint32_t> shape = {};  // [num_envs, ...]
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// The engine's allocation on a GPU.
struct GpuReport {
  std::string path = {};    // "CUDA IPC", "Vulkan", or "mode 7"
  std::string device = {};  // "GPU-41424344-4546-..."
  uint64_t bytes = 0;
  bool fills_cpu = false;  // the region's observations are written, too
  std::vector<FieldReport> arrays = {};  // with offsets in the allocation
};

// A process that calls the engine's RPCs in addition to the client.
struct AttendantReport {
  uint32_t slot = 0;  // from 0
  std::string label = {};
  uint32_t pid = 0;  // for display
};

// A process that simulates some of the environments.
struct WorkerReport {
  // kAbsent: it has not taken its slot yet, or has left it.
  Life life = Life::kUnknown;
  uint32_t pid = 0;  // for display; 0: none
  uint32_t first_env = 0;
  uint32_t num_envs = 0;
  uint32_t env = 0;              // in work, if IsWork(phase)
  Phase phase = Phase::kAbsent;  // may be an unknown number
  double phase_secs = 0;
  bool done = false;     // with the last exchange that the client has sent
  uint64_t steps = 0;    // of environments
  uint64_t busy_ns = 0;  // in steps and resets
};

// The messages in an RPC ring.
struct RingFill {
  // The maximum of `messages`; more messages also give this number.
  static constexpr uint32_t kMostCounted = 1u << 16;

  uint32_t capacity = 0;    // bytes
  uint32_t used_bytes = 0;  // by unread messages, and skips
  // nullopt: the reader advanced during each read, or there is a problem.
  std::optional<uint32_t> messages = {};
  // A value that was invalid for 20 ms; "": none.
  std::string problem = {};
};

// A frame ring. Reading it takes no readers' lock, so the engine does not begin
// to render.
struct FrameRingReport {
  uint64_t bytes = 0;  // of the ring
  FrameGeometry geometry = {.capacity = 0};
  uint64_t frames = 0;       // published so far
  bool invalidated = false;  // the writer has left
  // Whether a Tandem reader is attached; other readers hold no lock. nullopt if
  // the kernel reports an error.
  std::optional<bool> watched;
  FrameMetrics metrics;
  // The first invalid value; "": none. Then `geometry` is checked.
  std::string problem = {};
};

// Texts are escaped as by Printable. With a corrupt header the numbers are the
// header's; header_problems shows which checks failed.
struct RegionReport {
  std::string name;
  bool name_gone = false;  // only the spare link exists
  uint64_t file_bytes = 0;
  uint64_t device = 0;  // identity of the file
  uint64_t inode = 0;
  int64_t read_ns = 0;  // CLOCK_MONOTONIC of the copy

  // Such as "expected version 1, found 2"; includes the sections' problems.
  // Empty: a client may use the region.
  std::vector<std::string> header_problems;
  // Ordered by offset; empty if the sizes are invalid. Includes the fields with
  // arrays of their own.
  std::vector<RegionSection> sections;
  // False: the file is too short for a header, and the rest is empty.
  bool has_header = false;

  uint32_t version = 0;
  RegionMode mode = RegionMode::kTraining;
  uint32_t num_envs = 0;
  uint32_t obs_size = 0;
  uint32_t act_size = 0;
  uint32_t info_size = 0;
  std::string task;
  uint64_t feature_bits = 0;
  uint64_t generation = 0;  // its creation, nanoseconds since the Unix epoch

  PeerReport engine;
  PeerReport client;

  uint64_t frame_seq = 0;
  uint64_t action_seq = 0;
  ExchangeState exchange = ExchangeState::kIdle;
  ExchangeKind kind = ExchangeKind::kStep;  // of the pending exchange
  AutoresetMode autoreset = AutoresetMode::kSameStep;
  // The result of the last exchange.
  ErrorCode status = ErrorCode::kOk;
  std::string error_text;

  StepTimesSnapshot step_times;   // engine: from taking actions to results
  StepTimesSnapshot round_trips;  // client: from actions to results
  // How often the engine polled before a request that it forecast, and how
  // often the request came meanwhile.
  uint64_t early_wakes = 0;
  uint64_t early_hits = 0;

  // Of the rewards that the client computes itself. nullopt: it computes none,
  // or was writing them.
  std::optional<RunSnapshot> own_run;

  RingFill to_client;
  RingFill to_engine;
  std::optional<FrameRingReport> frames;    // nullopt: no frame ring
  std::optional<ImagesReport> images;       // nullopt: no images
  std::optional<RpcReport> commands;        // nullopt: unknown
  std::vector<AttendantReport> attendants;  // those that hold a slot's lock
  std::vector<FieldReport> fields;          // empty: none, or an invalid table
  std::optional<GpuReport> gpu;             // nullopt: none
  // Empty: the engine simulates the environments itself. Otherwise `engine` is
  // the supervisor, but its phase is that of the workers during an exchange.
  std::vector<WorkerReport> workers;
};

// Makes some dozen system calls. Waits 20 ms for each invalid part, otherwise
// not. Errors:
//   kInvalidArgument  not a valid name
//   kNotReady         no such file
//   kAccessDenied     this user may not read it; the text names its owner
//   kLayoutMismatch   the file is not a region: no magic, no spare link
absl::StatusOr<RegionReport> ReadRegionReport(absl::string_view name);

// Returns "arrays", "step times" ...; an unknown bit by number, "bit 7".
std::vector<std::string> FeatureNames(uint64_t feature_bits);

// Returns Gymnasium's name, such as "SAME_STEP"; "12" for an unknown number.
std::string NameOf(AutoresetMode mode);

// The rates between two reports of one region.
struct RegionRates {
  double secs = 0;
  double exchanges_per_sec = 0;
  double busy_share = 0;         // share of time in exchanges
  double frames_per_sec = 0;     // into the frame ring
  StepTimesSnapshot step_times;  // of the exchanges between the reports
  StepTimesSnapshot round_trips;
  std::vector<double> worker_busy_shares;  // as busy_share; of each worker
};

// nullopt if the reports are of different regions or in the wrong order, or if
// a counter decreased: a restarted engine, or a corrupt region.
std::optional<RegionRates> RatesBetween(const RegionReport& earlier,
                                        const RegionReport& later);

// The problems of a region, as sentences, the worst first.
struct RegionVerdict {
  // The region is corrupt, or a side died: no step is possible.
  std::vector<std::string> problems;
  // Conditions to check: a stalled side, a full ring, a failed step.
  std::vector<std::string> remarks;
};

// Each sentence states a finding, its meaning, and the next action if there is
// one.
RegionVerdict JudgeRegion(const RegionReport& report);

// A file of /dev/shm.
struct SharedName {
  std::string name;  // as in /dev/shm; a segment's may have any bytes
  bool is_segment = false;
};

// Returns all regions and segments, of all users, live and dead, ordered by
// name: each file with a spare link, a region's magic, or a segment's prefix.
// At most 1,000.
std::vector<SharedName> ListShared();

// A segment.
struct SegmentReport {
  std::string name;  // escaped
  uint64_t file_bytes = 0;
  int64_t read_ns = 0;  // CLOCK_MONOTONIC of the copy
  // kUnknown: a foreign writer, which holds no lock.
  Life writer = Life::kUnknown;
  FrameRingReport ring;
};

// Reads a segment by its full name. Errors: as ReadRegionReport.
absl::StatusOr<SegmentReport> ReadSegmentReport(absl::string_view name);

// What a list of runs shows of a segment or a region.
struct RunReport {
  // kAccessDenied: another user's; the rest is empty.
  absl::Status access;
  std::optional<LrbcHeader> region;       // a checked copy; nullopt: a segment
  std::optional<FrameRingReport> frames;  // nullopt: an engine without frames
};

// Reads one by the name of its file, without a wait. nullopt: no such file, not
// a region, or no live engine serves it.
std::optional<RunReport> ReadRunReport(absl::string_view name);

}  // namespace tandem
