// WorkersHeader and WorkerSlot: a region's places for the worker processes that
// simulate its environments.
//
// Data flow: client's actions -> each worker does its own rows and stores
// `done` -> the last of them publishes frame_seq. Beside the step path: the
// supervisor's order -> each worker carries it out and stores `ack`.
// Ownership: a region with kFeatureWorkers has one WorkersHeader at
// workers_offset, then num_workers WorkerSlots. The supervisor is the engine's
// process; while a slot has no worker, it may write the slot's words.
// `schema/goldens/lrbc_v1.txt` lists every field. docs/protocol.md, "Workers",
// is the specification.
//
//   auto* head = mapping.At<WorkersHeader>(plan.workers_offset);
//   auto* slot = mapping.At<WorkerSlot>(WorkerSlotOffset(plan, 2));

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "schema/layout/lrbc.h"
#include "schema/layout/shared_word.h"

namespace tandem {

inline constexpr uint32_t kMaxWorkers = 1024;

// What the supervisor orders. After any order but kGo, a worker takes no
// exchange and no lane. A released number keeps its meaning; new ones are
// appended.
enum class WorkerOrder : uint32_t {
  kHold = 0,         // nothing else
  kGo = 1,           // take exchanges and lanes; value: an AutoresetMode
  kReset = 2,        // reset all own environments; their seeds are the worker's
  kSeededReset = 3,  // the same; environment i gets the seed value + i
  kFinish = 4,       // do the exchange `value`, unless it is done
  kCount = 5,        // take `value` as the number of completed exchanges
  kMessage = 6,      // the worker's caller has a message of the supervisor's
  kStop = 7,         // the worker's caller ends
};

// Which process publishes which exchange: the low 16 bits are a worker's index
// or kSupervisorIndex, the others the low 48 bits of the exchange's number.
inline constexpr uint32_t kSupervisorIndex = 0xFFFF;
constexpr uint64_t PackPublisher(uint64_t exchange, uint32_t index) {
  return exchange << 16 | index;
}
constexpr uint32_t PublisherIndex(uint64_t publisher) {
  return static_cast<uint32_t>(publisher & 0xFFFF);
}
// Whether the word has the winner of this exchange's election.
constexpr bool HasPublisher(uint64_t publisher, uint64_t exchange) {
  return publisher >> 16 == (exchange & ((uint64_t{1} << 48) - 1));
}

struct WorkersHeader {
  // Writer supervisor; readers workers. It writes them only while each worker
  // has acknowledged the order before.
  SharedWord<uint32_t> order;  // number of the last order; publishes the next
                               // two; wraps, compared for equality only; 0 at
                               // birth, which counts as kHold
  SharedWord<uint32_t> order_kind;  // a WorkerOrder; kHold while the
                                    // supervisor writes another value
  SharedWord<uint64_t> order_value;
  uint8_t reserved_16[112];

  // Writers workers and supervisor, by compare-exchange; readers the same: the
  // winner of the last election (PackPublisher). Publishes nothing; initially
  // 0. The supervisor stores it while no worker takes exchanges.
  SharedWord<uint64_t> publisher;
  uint8_t reserved_136[120];

  // Writer supervisor; reader client: why the region ends. Published by
  // end_code.
  SharedWord<uint32_t> end_code;  // an ErrorCode; 0: it does not end
  char end_text[764];             // NUL-terminated
};

// The rows of a worker: environments first_env to first_env + num_envs - 1.
struct WorkerRows {
  uint32_t first_env;
  uint32_t num_envs;
};

struct WorkerSlot {
  // Constant after creation.
  WorkerRows rows;

  // Writer worker; reader supervisor.
  SharedWord<uint32_t> pid;  // for display; 0: no worker has taken the slot;
                             // its first byte is the lock byte
  SharedWord<uint32_t> ack;  // the last order that was carried out; publishes
                             // its effects; initially 0
  uint8_t reserved_16[112];

  // Writer worker; readers the other workers and the supervisor: the last
  // exchange that this worker has completed; publishes its rows and its error.
  // Initially 0. Does not wrap in the lifetime of a machine.
  SharedWord<uint64_t> done;
  // Writer worker; reader client: the same for lanes.
  SharedWord<uint64_t> lane_done;
  // Writer worker; readers the publisher and the client: the last exchange and
  // the last lane that failed. Published by done and lane_done; 0: none.
  SharedWord<uint64_t> failed_exchange;
  SharedWord<uint64_t> failed_lane;
  uint8_t reserved_160[96];

  // Writer worker; readers observers, and the client's error texts. For
  // display only.
  SharedWord<uint64_t> phase;    // as the header's engine_phase
  SharedWord<uint64_t> steps;    // of environments, since the slot was made
  SharedWord<uint64_t> busy_ns;  // in exchanges, lanes and resets, since then
  SharedWord<uint32_t> env;      // the environment in work
  uint8_t reserved_284[100];

  // Writer client; reader worker: the lane whose actions are out; lane_done or
  // one more. Publishes actions and reset flags of the worker's rows. Initially
  // 0. The supervisor stores lane_done in it while there is no client.
  SharedWord<uint64_t> lane_go;
  uint8_t reserved_392[120];

  // Writer worker; readers the publisher and the client: the last failure.
  // Published by done, or by lane_done.
  SharedWord<uint32_t> error_env;    // the environment that failed
  SharedWord<uint32_t> error_bytes;  // of error_text
  char error_text[3576];             // UTF-8: the end of the error's text
};

static_assert(offsetof(WorkersHeader, order) == 0);
static_assert(offsetof(WorkersHeader, order_kind) == 4);
static_assert(offsetof(WorkersHeader, order_value) == 8);
static_assert(offsetof(WorkersHeader, publisher) == 128);
static_assert(offsetof(WorkersHeader, end_code) == 256);
static_assert(offsetof(WorkersHeader, end_text) == 260);
static_assert(sizeof(WorkersHeader) == 1024);
static_assert(alignof(WorkersHeader) == 8);
static_assert(std::is_trivially_copyable_v<WorkersHeader>);
static_assert(std::is_standard_layout_v<WorkersHeader>);

static_assert(sizeof(WorkerRows) == 8);
static_assert(offsetof(WorkerRows, first_env) == 0);
static_assert(offsetof(WorkerRows, num_envs) == 4);

static_assert(offsetof(WorkerSlot, rows) == 0);
static_assert(offsetof(WorkerSlot, pid) == 8);
static_assert(offsetof(WorkerSlot, ack) == 12);
static_assert(offsetof(WorkerSlot, done) == 128);
static_assert(offsetof(WorkerSlot, lane_done) == 136);
static_assert(offsetof(WorkerSlot, failed_exchange) == 144);
static_assert(offsetof(WorkerSlot, failed_lane) == 152);
static_assert(offsetof(WorkerSlot, phase) == 256);
static_assert(offsetof(WorkerSlot, steps) == 264);
static_assert(offsetof(WorkerSlot, busy_ns) == 272);
static_assert(offsetof(WorkerSlot, env) == 280);
static_assert(offsetof(WorkerSlot, lane_go) == 384);
static_assert(offsetof(WorkerSlot, error_env) == 512);
static_assert(offsetof(WorkerSlot, error_bytes) == 516);
static_assert(offsetof(WorkerSlot, error_text) == 520);
static_assert(sizeof(WorkerSlot) == 4096);
static_assert(alignof(WorkerSlot) == 8);
static_assert(std::is_trivially_copyable_v<WorkerSlot>);
static_assert(std::is_standard_layout_v<WorkerSlot>);

// Words that different processes write at every exchange never share a pair of
// lines.
static_assert(offsetof(WorkersHeader, publisher) % 128 == 0);
static_assert(offsetof(WorkerSlot, done) % 128 == 0);
static_assert(offsetof(WorkerSlot, phase) % 128 == 0);
static_assert(offsetof(WorkerSlot, lane_go) % 128 == 0);
static_assert(offsetof(WorkerSlot, error_env) % 128 == 0);
static_assert(sizeof(WorkersHeader) % 128 == 0);
static_assert(sizeof(WorkerSlot) % 128 == 0);

// Whether the header's members of the workers' section are in use.
inline bool HasWorkers(const LrbcHeader& header) {
  return (header.feature_bits & kFeatureWorkers) != 0;
}

// Bytes of the section.
constexpr uint64_t WorkersBytes(uint32_t num_workers) {
  return sizeof(WorkersHeader) + uint64_t{num_workers} * sizeof(WorkerSlot);
}

// The offset of a slot in the region; `plan` has passed CheckHeader.
inline uint64_t WorkerSlotOffset(const LrbcHeader& plan, size_t worker) {
  return plan.workers_offset + sizeof(WorkersHeader) +
         worker * sizeof(WorkerSlot);
}

// The byte of the file that the slot's worker locks.
inline int64_t WorkerLockByte(const LrbcHeader& plan, size_t worker) {
  return static_cast<int64_t>(WorkerSlotOffset(plan, worker) +
                              offsetof(WorkerSlot, pid));
}

}  // namespace tandem
