#include "tests/benchmark/ladder_rows.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "schema/layout/lrbc.h"
#include "schema/layout/shared_word.h"
#include "tests/benchmark/or_exit.h"
#include "tests/benchmark/payload.h"
#include "transport/base/clock.h"
#include "transport/session/phase_word.h"
#include "transport/session/step_times.h"
#include "transport/wait/doorbell.h"
#include "transport/wait/relax.h"
#include "transport/wait/waiter.h"

namespace tandem {
namespace {

// In lanes, as ClientSide looks.
bool AreFinite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7F800000;
  using Lanes = uint32_t __attribute__((vector_size(16)));
  constexpr size_t kLanes = sizeof(Lanes) / sizeof(float);
  auto any_bad = Lanes{} != Lanes{};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    Lanes bits;
    std::memcpy(&bits, &values[i], sizeof(bits));
    any_bad |= (bits & kExponent) == kExponent;
  }
  bool bad = false;
  for (size_t lane = 0; lane < kLanes; ++lane) bad |= any_bad[lane] != 0;
  for (; i < values.size(); ++i) {
    bad |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent;
  }
  return !bad;
}

template <int kLevel>
class LadderRow final : public Row {
 public:
  static constexpr bool kDoorbells = kLevel >= 1;
  static constexpr bool kClock = kLevel >= 2;
  static constexpr bool kPhases = kLevel >= 3;
  static constexpr bool kStepTimes = kLevel >= 4;
  static constexpr bool kGuard = kLevel >= 5;
  static constexpr bool kChecks = kLevel >= 6;

  explicit LadderRow(const Size& size)
      : size_(size),
        bytes_(sizeof(LrbcHeader) + Payload::Bytes(size) + size.envs),
        header_(static_cast<LrbcHeader*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))),
        payload_(size, header_ + 1),
        resets_(reinterpret_cast<uint8_t*>(header_ + 1) +
                Payload::Bytes(size)) {
    RequireCall(header_ != MAP_FAILED, "mmap");
  }
  ~LadderRow() override { munmap(header_, bytes_); }

  void Serve() override {
    Doorbell client_bell(&header_->client_doorbell, &header_->client_sleepers);
    for (uint64_t seq = 1;; ++seq) {
      const int64_t taken_at = Await(header_->action_seq, seq);
      SetPhase(header_->engine_phase, Phase::kStepping, taken_at);
      TrivialWork(size_, payload_.actions, payload_.obs, payload_.rewards,
                  payload_.dones);
      if (kChecks) std::fill_n(resets_, size_.envs, uint8_t{0});
      // SYNC(ladder.seq): release; the results before the number.
      header_->frame_seq.store(seq, std::memory_order_release);
      const int64_t done_at = Now();
      if (kDoorbells) client_bell.RingIfAwaited();
      SetPhase(header_->engine_phase, Phase::kIdle, done_at);
      if (kStepTimes) {
        RecordStepTime(&header_->engine_step_times,
                       static_cast<uint64_t>(done_at - taken_at));
      }
    }
  }

  Results Exchange(const float* actions) override {
    Send(actions);
    Recv();
    return payload_.results();
  }

 private:
  void Send(const float* actions) {
    Enter();
    const size_t count = size_.action_floats();
    Require(!kChecks || AreFinite({actions, count}), "expected finite actions");
    std::memcpy(payload_.actions, actions, count * 4);
    // SYNC(ladder.seq): release; the actions before the number.
    header_->action_seq.store(seq_ + 1, std::memory_order_release);
    sent_at_ = Now();
    if (kDoorbells) {
      Doorbell(&header_->engine_doorbell, &header_->engine_sleepers)
          .RingIfAwaited();
    }
    SetPhase(header_->client_phase, Phase::kWaiting, sent_at_);
    Leave();
  }

  void Recv() {
    Enter();
    const int64_t received_at = Await(header_->frame_seq, ++seq_);
    SetPhase(header_->client_phase, Phase::kIdle, received_at);
    if (kStepTimes) {
      RecordStepTime(&header_->client_round_trips,
                     static_cast<uint64_t>(received_at - sent_at_));
    }
    Leave();
  }

  // Returns the time of the look that saw the number, as a Waiter does.
  static int64_t Await(const SharedWord<uint64_t>& word, uint64_t wanted) {
    const auto came = [&] {
      // SYNC(ladder.seq): acquire; the number, then the partner's data.
      return word.load(std::memory_order_acquire) == wanted;
    };
    if (came()) return Now();
    const int64_t start = Now();
    int64_t now = start;
    while (!came()) {
      if (!kClock || now - start >= WaitWatch::kQuickNs) Relax();
      now = Now();
    }
    return now;
  }
  static int64_t Now() { return kClock ? MonotonicNanos() : 0; }
  static void SetPhase(SharedWord<uint64_t>& word, Phase phase, int64_t now) {
    // relaxed: for people; nothing is done on the strength of it.
    if (kPhases) word.store(PackPhase(phase, now), std::memory_order_relaxed);
  }
  void Enter() {
    // SYNC(ladder.in_use): acquire; what the thread before did.
    Require(!kGuard || !in_use_.exchange(true, std::memory_order_acquire),
            "expected one thread at a time");
  }
  void Leave() {
    // SYNC(ladder.in_use): release; what this thread did.
    if (kGuard) in_use_.store(false, std::memory_order_release);
  }

  Size size_;
  size_t bytes_;
  LrbcHeader* header_;
  Payload payload_;
  uint8_t* resets_;
  uint64_t seq_ = 0;
  int64_t sent_at_ = 0;
  std::atomic<bool> in_use_{false};
};

}  // namespace

std::unique_ptr<Row> MakeLadderRow(absl::string_view name,
                                   const RowOptions& options) {
  const Size& size = options.size;
  if (name == "ladder_0") return std::make_unique<LadderRow<0>>(size);
  if (name == "ladder_1") return std::make_unique<LadderRow<1>>(size);
  if (name == "ladder_2") return std::make_unique<LadderRow<2>>(size);
  if (name == "ladder_3") return std::make_unique<LadderRow<3>>(size);
  if (name == "ladder_4") return std::make_unique<LadderRow<4>>(size);
  if (name == "ladder_5") return std::make_unique<LadderRow<5>>(size);
  if (name == "ladder_6") return std::make_unique<LadderRow<6>>(size);
  return nullptr;
}

}  // namespace tandem
