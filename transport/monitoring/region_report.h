// RegionReport: read-only snapshot of a region, for monitoring.
//
// Data flow: a name -> the region's header and the heads of its rings, copied,
// never trusted -> a plain struct; two of them -> rates.
// Ownership: the observer's: a command, a viewer's panel. Whatever state the
// region is in, alive, dead, truncated, corrupt, reading it is bounded, and
// neither side can tell: nothing is mapped, locked, written, or woken
// (observed_file.h).
//
//   absl::StatusOr<RegionReport> report = ReadRegionReport("demo");
//   if (report->header_problems.empty()) Show(report->engine.phase);
//   ... a second later ...
//   std::optional<RegionRates> rates = RatesBetween(*report, later);

#ifndef TANDEM_TRANSPORT_MONITORING_REGION_REPORT_H_
#define TANDEM_TRANSPORT_MONITORING_REGION_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"
#include "schema/layout/lrbc.h"
#include "transport/frames/frame_ring_report.h"
#include "transport/memory/region_plan.h"
#include "transport/ring/ring_fill.h"
#include "transport/session/step_times.h"

namespace tandem {

// Whether a side is there. The lock is the truth.
enum class Life : uint8_t {
  kAlive,    // its lock is held
  kDead,     // no lock, but traces of a side that did not leave cleanly
  kAbsent,   // never attached, or left cleanly
  kUnknown,  // a header-only side holds no lock, or the kernel does not say
};
const char* NameOf(Life life);  // "alive"

struct PeerReport {
  Life life = Life::kUnknown;
  uint32_t pid = 0;              // a label for people; 0: none
  Phase phase = Phase::kAbsent;  // may be a number that has no name
  double phase_secs = 0;         // for how long
  uint32_t bell_rings = 0;       // of the bell that wakes it; wraps
  uint32_t sleepers = 0;         // its threads that sleep, or are about to
};

// The two counts at the moment of the copy.
enum class ExchangeState : uint8_t {
  kIdle,        // action_seq = frame_seq
  kPending,     // one more: the engine's turn
  kImpossible,  // anything else, for kSequenceGraceNs
};
inline constexpr int64_t kSequenceGraceNs = 20'000'000;

struct ImagesReport {
  uint32_t width = 0;  // pixels
  uint32_t height = 0;
  uint32_t channels = 0;  // bytes of a pixel
  uint64_t step = 0;      // the frame_seq that they belong to
};

// Of a region whose engine answers RPCs.
struct RpcReport {
  std::vector<std::string> on = {};  // services, by name
  std::vector<std::string> off = {};
  uint64_t dropped_messages = 0;  // of the client that is there
};

// Texts have what is no printable ASCII escaped. Of a corrupt header each
// number is what it says, checked only as far as header_problems says.
struct RegionReport {
  std::string name;
  bool name_gone = false;  // found by its spare link only
  uint64_t file_bytes = 0;
  uint64_t device = 0;  // of the file, to know it again
  uint64_t inode = 0;
  int64_t read_ns = 0;  // CLOCK_MONOTONIC, when it was copied

  // As HeaderFindings.
  std::vector<std::string> header_problems;
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
  uint64_t generation = 0;  // nanoseconds since the Unix epoch at birth

  PeerReport engine;
  PeerReport client;

  uint64_t frame_seq = 0;
  uint64_t action_seq = 0;
  ExchangeState exchange = ExchangeState::kIdle;
  ExchangeKind kind = ExchangeKind::kStep;  // of the exchange that is pending
  AutoresetMode autoreset = AutoresetMode::kSameStep;
  // Of the last exchange.
  ErrorCode status = ErrorCode::kOk;
  std::string error_text;

  StepTimesSnapshot step_times;   // the engine's: actions taken to results out
  StepTimesSnapshot round_trips;  // the client's: actions out to results seen

  RingFill to_client;
  RingFill to_engine;
  std::optional<FrameRingReport> frames;  // nothing: it has no frame ring
  std::optional<ImagesReport> images;     // nothing: no images
  std::optional<RpcReport> commands;      // nothing: it does not say
};

// Makes some dozen system calls. Waits only where something is invalid: 20 ms
// for each. Errors: ObservedFile::Open's, and
//   kLayoutMismatch  the file is no region: no magic, no spare link
absl::StatusOr<RegionReport> ReadRegionReport(absl::string_view name);

// "arrays", "step times" ...; bits without a name by number, "bit 7".
std::vector<std::string> FeatureNames(uint64_t feature_bits);

// "SAME_STEP", as Gymnasium names it; "12" for a number that has no name.
std::string NameOf(AutoresetMode mode);

// What came between two reports of one region.
struct RegionRates {
  double secs = 0;
  double exchanges_per_sec = 0;
  double busy_share = 0;      // of the time that the engine worked on exchanges
  double frames_per_sec = 0;  // into the frame ring
  StepTimesSnapshot step_times;  // of the exchanges between
  StepTimesSnapshot round_trips;
};

// Nothing if they are not of one region, or not in this order, or if a counter
// went back: a restarted engine, or a corrupt region.
std::optional<RegionRates> RatesBetween(const RegionReport& earlier,
                                        const RegionReport& later);

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_MONITORING_REGION_REPORT_H_
