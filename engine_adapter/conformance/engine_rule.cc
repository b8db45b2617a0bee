#include "engine_adapter/conformance/engine_rule.h"

#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/shared_region.h"
#include "engine_adapter/conformance/suite_arguments.h"
#include "schema/layout/error_codes.h"
#include "transport/client_side.h"
#include "transport/region.h"

namespace tandem {

void PrintTo(const Observation& observation, std::ostream* out) {
  constexpr size_t kShown = 32;
  const absl::string_view bytes(
      reinterpret_cast<const char*>(observation.data()), observation.size());
  *out << observation.size() << " bytes, "
       << absl::BytesToHexString(bytes.substr(0, kShown))
       << (bytes.size() > kShown ? "..." : "");
}

float ActionOf(size_t step) {
  const std::vector<float>& actions = SuiteArguments::Get().actions;
  return actions[step % actions.size()];
}

void EngineRule::SetUp() {
  for (const Capability need : needs_) {
    if (EngineFacts::Get().Has(need)) continue;
    GTEST_SKIP() << "engine without "
                 << kCapabilityNames[static_cast<size_t>(need)];
  }
  watchdog_.emplace();
}

void EngineRule::TearDown() {
  if (watchdog_ && RuleWatchdog::HasKilled()) {
    ADD_FAILURE() << "expected an end within "
                  << SuiteArguments::Get().rule_secs
                  << " s (--rule_secs); the suite has killed the engine";
  }
  if (HasFailure() && engine_.server != nullptr) {
    ADD_FAILURE() << "the engine's last lines on stderr:\n"
                  << engine_.server->LastLines();
  }
  engine_.End();
  watchdog_.reset();
}

void EngineRule::Attach(AutoresetMode autoreset) {
  Require(engine_.Attach(autoreset));
}

void EngineRule::ServeEpisodes(int steps, AutoresetMode autoreset) {
  engine_.Start(
      {absl::StrCat("--", SuiteArguments::Get().limit_flag, "=", steps)});
  Attach(autoreset);
}

void EngineRule::Receive() {
  const ErrorCode code = engine_.client->Recv(Deadline::Infinite());
  ASSERT_EQ(code, ErrorCode::kOk) << engine_.client->Explain(code);
}

void EngineRule::Step(size_t step) {
  FillActions(arrays(), ActionOf(step));
  const ErrorCode code = engine_.client->Send(arrays().actions);
  ASSERT_EQ(code, ErrorCode::kOk) << engine_.client->Explain(code);
  Receive();
}

void EngineRule::Reset(const std::vector<int64_t>& envs,
                       std::optional<uint64_t> seed) {
  const std::vector<std::optional<uint64_t>> seeds(envs.size(), seed);
  const ErrorCode code = engine_.client->SendReset(envs, seeds);
  ASSERT_EQ(code, ErrorCode::kOk) << engine_.client->Explain(code);
  Receive();
}

void EngineRule::Require(const absl::Status& status) {
  ASSERT_TRUE(status.ok()) << status;
}

absl::Status EngineRule::WrongPayload(rpc::MethodId method) {
  return MakeError(
      ErrorCode::kBrokenPeer,
      absl::StrCat("expected the answer of ", rpc::EnumNameMethodId(method),
                   ", found another payload"));
}

uint64_t EngineRule::frame_seq() {
  // relaxed: Recv has seen the number.
  return engine_.client->mapping()->header()->frame_seq.load(
      std::memory_order_relaxed);
}

bool EngineRule::AnyTraceInSharedMemory() const {
  return access(RegionPath(engine_.name).c_str(), F_OK) == 0 ||
         access(RegionPath(engine_.name, SharedRegion::Link::kSpare).c_str(),
                F_OK) == 0;
}

Observation EngineRule::Rows(FieldRole role, uint32_t first, uint32_t count) {
  Observation rows;
  for (uint32_t env = first; env < first + count; ++env) {
    for (const FieldArray& field : FieldsOf(arrays(), role)) {
      const std::span<std::byte> row = field.Row(env);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return rows;
}

}  // namespace tandem
