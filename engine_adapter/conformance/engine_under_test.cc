#include "engine_adapter/conformance/engine_under_test.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine_adapter/conformance/suite_arguments.h"
#include "flatbuffers/flatbuffers.h"
#include "schema/messages/rpc_methods.h"
#include "transport/attached_frames.h"
#include "transport/region.h"

namespace tandem {
namespace {

// Returns the nearest float16 towards zero.
uint16_t HalfOf(float value) {
  constexpr uint32_t kSmallest = 0x38800000;  // 2^-14
  constexpr uint32_t kTooLarge = 0x47800000;  // 2^16
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t size = bits & 0x7FFFFFFF;
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t half = size < kSmallest    ? 0
                        : size < kTooLarge  ? (size - 0x38000000) >> 13
                        : std::isnan(value) ? 0x7E00
                                            : 0x7C00;
  return static_cast<uint16_t>(sign | half);
}

// Returns the bytes of a field's element, the first of them first.
uint64_t ElementOf(FieldType type, float value) {
  switch (type) {
    case FieldType::kFloat16:
      return HalfOf(value);
    case FieldType::kFloat32:
      return std::bit_cast<uint32_t>(value);
    case FieldType::kFloat64:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    case FieldType::kBool:
      return value != 0 ? 1 : 0;
    default:
      return std::abs(value) < 1e9F
                 ? static_cast<uint64_t>(static_cast<int64_t>(value))
                 : ~uint64_t{0};
  }
}

bool IsFinite(const FieldArray& field) {
  const auto are_finite = [](auto values) {
    return std::ranges::all_of(values,
                               [](auto value) { return std::isfinite(value); });
  };
  switch (field.type) {
    case FieldType::kFloat16:
      return std::ranges::all_of(field.Values<uint16_t>(), [](uint16_t half) {
        return (half & 0x7C00) != 0x7C00;
      });
    case FieldType::kFloat32:
      return are_finite(field.Values<float>());
    case FieldType::kFloat64:
      return are_finite(field.Values<double>());
    default:
      return true;
  }
}

// Whose end ends an Attach; nullptr outside of one.
const ServerProcess* awaited = nullptr;

bool AwaitedHasEnded() { return awaited != nullptr && awaited->HasEnded(); }

}  // namespace

// A process id alone is not unique in /dev/shm: tests may run in their own pid
// namespaces.
EngineUnderTest::EngineUnderTest()
    : name(absl::StrCat("tandem-conformance-", getpid(), "-",
                        MonotonicNanos())) {}

std::vector<std::string> EngineUnderTest::Command(
    const std::vector<std::string>& flags) const {
  std::vector<std::string> command = SuiteArguments::Get().engine;
  command.push_back(absl::StrCat("--name=", name));
  command.push_back(absl::StrCat("--num_envs=", kEnvs));
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

void EngineUnderTest::Start(const std::vector<std::string>& flags) {
  server.reset();
  server = std::make_unique<ServerProcess>(Command(flags));
}

absl::Status EngineUnderTest::Attach(AutoresetMode autoreset) {
  rpcs.reset();
  client.reset();
  awaited = server.get();
  absl::StatusOr<ClientSide> attached = ClientSide::Attach(
      name, {.timeout_secs = std::numeric_limits<double>::infinity(),
             .autoreset = autoreset,
             .interrupted = AwaitedHasEnded});
  awaited = nullptr;
  if (attached.ok()) {
    client.emplace(*std::move(attached));
    return absl::OkStatus();
  }
  const std::string found =
      RuleWatchdog::HasKilled()
          ? absl::StrCat("nothing served within ",
                         SuiteArguments::Get().rule_secs,
                         " s (--rule_secs), and the suite has killed it")
      : server->HasEnded()
          ? absl::StrCat("its end with exit code ", server->ExitCode())
          : std::string(attached.status().message());
  return MakeError(
      CodeOf(attached.status()),
      absl::StrCat("expected an engine that serves, found ", found,
                   ". Its last lines on stderr:\n", server->LastLines()));
}

absl::StatusOr<RpcClient*> EngineUnderTest::Calls() {
  if (rpcs == nullptr) {
    TANDEM_ASSIGN_OR_RETURN(rpcs, RpcClient::Create(&*client, {}));
  }
  return rpcs.get();
}

absl::StatusOr<RpcMessage> EngineUnderTest::Call(PackedCall call) {
  TANDEM_ASSIGN_OR_RETURN(RpcClient * calls, Calls());
  return calls->Call(std::move(call), Deadline::Infinite());
}

absl::StatusOr<Frame> EngineUnderTest::RequestFrame() {
  const ErrorCode code = client->AwaitFrame(Deadline::Infinite());
  if (code != ErrorCode::kOk) return client->Explain(code);
  TANDEM_ASSIGN_OR_RETURN(AttachedFrames frames,
                          AttachedFrames::OpenRegion(name));
  Frame frame;
  if (frames.reader().Newest(&frame) != FrameReader::Found::kFrame) {
    return MakeError(ErrorCode::kBrokenPeer,
                     "expected the requested frame in the ring, found none");
  }
  return frame;
}

void EngineUnderTest::End() {
  rpcs.reset();
  client.reset();
  if (server == nullptr) return;
  server.reset();
  RemoveIfDead(name).IgnoreError();
}

PackedCall EmptyCall(rpc::MethodId method) {
  flatbuffers::FlatBufferBuilder builder;
  const flatbuffers::Offset<void> request(
      builder.EndTable(builder.StartTable()));
  return {&builder, method, PayloadsOf(method).request, request};
}

std::vector<FieldArray> FieldsOf(const StepArrays& arrays, FieldRole role) {
  std::vector<FieldArray> found;
  for (const FieldArray& field : arrays.fields) {
    if (field.role == role) found.push_back(field);
  }
  const bool is_action = role == FieldRole::kAction;
  const uint32_t size = is_action ? arrays.act_size : arrays.obs_size;
  if (!found.empty() || size == 0) return found;
  const std::span<float> rows = is_action                 ? arrays.actions
                                : role == FieldRole::kObs ? arrays.obs
                                                          : arrays.final_obs;
  found.push_back({.role = role,
                   .type = FieldType::kFloat32,
                   .shape = {size},
                   .row_bytes = size * sizeof(float),
                   .data = std::as_writable_bytes(rows)});
  return found;
}

void FillActions(const StepArrays& arrays, float value) {
  for (const FieldArray& field : FieldsOf(arrays, FieldRole::kAction)) {
    const uint64_t element = ElementOf(field.type, value);
    const size_t bytes = ElementBytes(field.type);
    for (size_t at = 0; at < field.data.size(); at += bytes) {
      std::memcpy(&field.data[at], &element, bytes);
    }
  }
}

bool AllFinite(const StepArrays& arrays, FieldRole role) {
  return std::ranges::all_of(FieldsOf(arrays, role), IsFinite);
}

}  // namespace tandem
