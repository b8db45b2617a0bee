// The functions of tandem.h for clients and attendants, and their RPCs.
//
// Length: one short function for each of the interface.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os/fork_guard.h"
#include "schema/layout/attendant_slot.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "schema/messages/rpc_methods.h"
#include "sdk/call_result.h"
#include "sdk/handle_table.h"
#include "sdk/named_arrays.h"
#include "sdk/tandem.h"
#include "transport/attendant_side.h"
#include "transport/client_side.h"
#include "transport/envelope.h"
#include "transport/region.h"
#include "transport/rpc_client.h"
#include "transport/wait_strategy.h"

namespace tandem {
namespace {

constexpr double kAttachSecs = 10;  // the default
// tandem.h's text contains the number.
static_assert(kMaxLabelBytes == 55);

// What a handle of a client, an attendant or their RPCs leads to: one table, so
// that tandem_rpc is the handle of its owner.
struct Caller {
  std::optional<ClientSide> client;
  std::unique_ptr<AttendantSide> attendant;
  std::optional<RpcSession> rpcs;
  NamedArrays arrays;
  std::string description;
  const uint32_t born_in = ForkCount();
};
// Other generations than those of engines: a client is never taken for one.
using Table = HandleTable<Caller, tandem_rpc, 1 << 20>;

Table callers;  // constant-initialised, unless Mutex is not (base/mutex.h)

tandem_rpc* RpcOf(tandem_client* client) {
  return reinterpret_cast<tandem_rpc*>(client);
}
tandem_rpc* RpcOf(tandem_attendant* attendant) {
  return reinterpret_cast<tandem_rpc*>(attendant);
}

// Calls `body` at any time.
template <typename Body>
tandem_code CallAnytime(tandem_rpc* handle, absl::string_view type,
                        const Body& body) {
  return CallOpen(callers, handle, type, body);
}

// Calls `body` with a client, while no other thread is inside such a call.
template <typename Body>
tandem_code CallClient(tandem_client* handle, const Body& body) {
  const Table::AloneUse alone = callers.EnterAlone(RpcOf(handle));
  return CallAnytime(RpcOf(handle), "client",
                     [&](Caller& caller) -> absl::Status {
                       if (!caller.client) return InvalidHandle("client");
                       if (alone) return body(caller);
                       return caller.client->Explain(caller.client->Refusal());
                     });
}

absl::Status Explained(const Caller& caller, ErrorCode code) {
  return code == ErrorCode::kOk ? absl::OkStatus()
                                : caller.client->Explain(code);
}

// Reads a vector of resets into what ClientSide takes.
ErrorCode SendReset(ClientSide* client, const tandem_reset* resets,
                    uint32_t count) {
  std::vector<int64_t> env_ids;
  std::vector<std::optional<uint64_t>> seeds;
  for (const tandem_reset& each : std::span(resets, count)) {
    env_ids.push_back(each.env);
    seeds.push_back(each.has_seed != 0 ? std::optional(each.seed)
                                       : std::nullopt);
  }
  return client->SendReset(env_ids, seeds);
}

absl::StatusOr<std::span<const float>> Actions(const Caller& caller,
                                               const float* actions,
                                               uint64_t count) {
  if (actions == nullptr) return caller.client->arrays().actions;
  return std::span<const float>(actions, count);
}

// How a method answers.
enum class Answers : uint8_t { kOnce, kStream };

// kInvalidArgument for a known method that answers in the other way: a stream
// without an end, or one that no call would end.
absl::Status CheckAnswers(rpc::MethodId method, Answers expected) {
  const bool known = PayloadsOf(method).answer != rpc::Payload::NONE;
  if (!known || IsStream(method) == (expected == Answers::kStream)) {
    return absl::OkStatus();
  }
  const char* const name = rpc::EnumNameMethodId(method);
  return MakeError(
      ErrorCode::kInvalidArgument,
      expected == Answers::kStream
          ? absl::StrCat("envelope: expected a method that answers with a "
                         "stream, found ",
                         name, ", which answers once; use tandem_rpc_call")
          : absl::StrCat("envelope: expected a method that answers once, "
                         "found ",
                         name,
                         ", which answers with a stream; use "
                         "tandem_rpc_open"));
}

// This interface has no access to the slots of images.
void RequestImagesInData(rpc::PayloadUnion* request) {
  if (auto* const camera = request->AsGetCameraFrameRequest()) {
    camera->to_slot = false;
  } else if (auto* const stream = request->AsStreamCameraRequest()) {
    stream->to_slot = false;
  } else if (auto* const viewport = request->AsGetViewportFrameRequest()) {
    viewport->to_slot = false;
  } else if (auto* const views = request->AsStartViewportStreamRequest()) {
    views->to_slot = false;
  }
}

absl::Status CheckBytes(uint64_t size) {
  return CheckEnvelopeBytes(size, "size", "nothing was sent");
}

// Checks what each call needs; there is no answer yet.
absl::Status CheckCall(uint8_t** answer, uint64_t* answer_size,
                       double timeout_secs) {
  if (answer == nullptr) return MissingArgument("answer");
  if (answer_size == nullptr) return MissingArgument("answer_size");
  *answer = nullptr;
  *answer_size = 0;
  return CheckSeconds(timeout_secs);
}

absl::StatusOr<PackedCall> CallFrom(const uint8_t* envelope, uint64_t size,
                                    Answers expected) {
  if (envelope == nullptr) return MissingArgument("envelope");
  TANDEM_RETURN_IF_ERROR(CheckBytes(size));
  const AlignedEnvelope found({envelope, size});
  if (found.get() == nullptr) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("envelope: expected an Envelope of "
                                  "hazel_rpc.fbs, with its identifier HRPC, "
                                  "found ",
                                  size, " other bytes; nothing was sent"));
  }
  TANDEM_RETURN_IF_ERROR(CheckAnswers(found.get()->method(), expected));
  rpc::EnvelopeT call;
  found.get()->UnPackTo(&call);
  RequestImagesInData(&call.payload);
  return PackedCall(call);
}

// Copies bytes into memory of the program's.
absl::Status GiveBytes(const void* data, size_t data_bytes, uint8_t** bytes,
                       uint64_t* size) {
  *bytes = static_cast<uint8_t*>(std::malloc(std::max<size_t>(data_bytes, 1)));
  if (*bytes == nullptr) throw std::bad_alloc();
  if (data_bytes > 0) std::memcpy(*bytes, data, data_bytes);
  *size = data_bytes;
  return absl::OkStatus();
}

// The same for a message.
absl::Status GiveBytes(const RpcMessage& message, uint8_t** bytes,
                       uint64_t* size) {
  return GiveBytes(message.data(), message.bytes(), bytes, size);
}

// The same for the answer of a method of the engine's own.
absl::Status GiveOwnAnswer(const RpcMessage& message, uint8_t** bytes,
                           uint64_t* size) {
  const rpc::CallOwnResponse* const answer =
      message.envelope().payload_as_CallOwnResponse();
  if (answer == nullptr) {
    return MakeError(
        ErrorCode::kBrokenPeer,
        absl::StrCat("expected a CallOwnResponse, found ",
                     rpc::EnumNamePayload(message.envelope().payload_type()),
                     "; close the client"));
  }
  const auto* const data = answer->data();
  return GiveBytes(data == nullptr ? nullptr : data->data(),
                   data == nullptr ? 0 : data->size(), bytes, size);
}

absl::StatusOr<WaitStrategy> WaitFrom(uint32_t number) {
  switch (number) {
    case TANDEM_WAIT_ADAPTIVE:
      return WaitStrategy::kAdaptive;
    case TANDEM_WAIT_SPIN:
      return WaitStrategy::kSpin;
    case TANDEM_WAIT_BLOCK:
      return WaitStrategy::kBlock;
    default:
      return MakeError(ErrorCode::kInvalidArgument,
                       absl::StrCat("options->wait: expected a TANDEM_WAIT_ "
                                    "number, found ",
                                    number));
  }
}

absl::Status Keep(std::unique_ptr<Caller> caller, tandem_rpc** handle) {
  *handle = callers.Add(std::move(caller));
  if (*handle != nullptr) return absl::OkStatus();
  return MakeError(ErrorCode::kInvalidArgument,
                   absl::StrCat("expected fewer than ", Table::kSlots,
                                " clients and attendants in a process, found "
                                "as many; close one"));
}

void Adopt(Caller* caller) {
  caller->arrays =
      NamedArrays::OfClient(caller->client->arrays(), caller->client->plan());
  caller->description = std::string(
      DescriptionOf(caller->client->plan(), *caller->client->mapping()));
}

absl::Status AttachClient(const tandem_client_options* options,
                          tandem_rpc** handle) {
  tandem_client_options read;
  TANDEM_RETURN_IF_ERROR(ReadStruct(options, "options", &read));
  if (read.autoreset > TANDEM_AUTORESET_DISABLED) {
    return MakeError(ErrorCode::kInvalidArgument,
                     absl::StrCat("options->autoreset: expected a "
                                  "TANDEM_AUTORESET_ number, found ",
                                  read.autoreset));
  }
  TANDEM_RETURN_IF_ERROR(CheckSeconds(read.timeout_secs));
  TANDEM_ASSIGN_OR_RETURN(const WaitStrategy wait, WaitFrom(read.wait));
  TANDEM_ASSIGN_OR_RETURN(
      ClientSide side,
      ClientSide::Attach(
          RegionNameOr(read.name),
          {.timeout_secs =
               read.timeout_secs == 0 ? kAttachSecs : read.timeout_secs,
           .wait = wait,
           .autoreset = static_cast<AutoresetMode>(read.autoreset)}));
  auto caller = std::make_unique<Caller>();
  caller->client.emplace(std::move(side));
  caller->rpcs.emplace(&*caller->client, RpcClient::Options());
  Adopt(caller.get());
  return Keep(std::move(caller), handle);
}

absl::Status AttachAttendant(const tandem_attendant_options* options,
                             tandem_rpc** handle) {
  tandem_attendant_options read;
  TANDEM_RETURN_IF_ERROR(ReadStruct(options, "options", &read));
  TANDEM_RETURN_IF_ERROR(CheckSeconds(read.timeout_secs));
  auto caller = std::make_unique<Caller>();
  TANDEM_ASSIGN_OR_RETURN(
      caller->attendant,
      AttendantSide::Attach(
          RegionNameOr(read.name),
          {.label = read.label == nullptr ? "libtandem" : read.label,
           .timeout_secs =
               read.timeout_secs == 0 ? kAttachSecs : read.timeout_secs}));
  caller->rpcs.emplace(caller->attendant.get(), RpcClient::Options());
  return Keep(std::move(caller), handle);
}

}  // namespace
}  // namespace tandem

using tandem::CallAnytime;
using tandem::CallClient;
using tandem::Caller;
using tandem::Deadline;
using tandem::MissingArgument;

extern "C" {

tandem_code tandem_client_attach(const tandem_client_options* options,
                                 tandem_client** client) {
  return tandem::Result([&]() -> absl::Status {
    if (client == nullptr) return MissingArgument("client");
    tandem_rpc* handle = nullptr;
    absl::Status status = tandem::AttachClient(options, &handle);
    *client = reinterpret_cast<tandem_client*>(handle);
    return status;
  });
}

tandem_code tandem_client_array(tandem_client* client, const char* name,
                                tandem_array* array) {
  return CallClient(
      client, [&](Caller& caller) { return caller.arrays.Find(name, array); });
}

uint64_t tandem_client_description(tandem_client* client, char* text,
                                   uint64_t size) {
  uint64_t bytes = 0;
  (void)CallClient(client, [&](Caller& caller) {
    bytes = tandem::CopyText(caller.description, text, size);
    return absl::OkStatus();
  });
  return bytes;
}

tandem_code tandem_client_send(tandem_client* client, const float* actions,
                               uint64_t count) {
  return CallClient(client, [&](Caller& caller) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const auto given,
                            tandem::Actions(caller, actions, count));
    return tandem::Explained(caller, caller.client->Send(given));
  });
}

tandem_code tandem_client_send_reset(tandem_client* client,
                                     const tandem_reset* resets,
                                     uint32_t count) {
  return CallClient(client, [&](Caller& caller) -> absl::Status {
    if (resets == nullptr && count > 0) return MissingArgument("resets");
    const uint32_t envs = caller.client->plan().num_envs;
    if (count > envs) {
      return tandem::MakeError(
          tandem::ErrorCode::kInvalidArgument,
          absl::StrCat("count: expected at most ", envs,
                       ", the number of environments, found ", count));
    }
    return tandem::Explained(caller,
                             tandem::SendReset(&*caller.client, resets, count));
  });
}

tandem_code tandem_client_recv(tandem_client* client, double timeout_secs) {
  return CallClient(client, [&](Caller& caller) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(tandem::CheckSeconds(timeout_secs));
    return tandem::Explained(
        caller, caller.client->Recv(Deadline::After(timeout_secs)));
  });
}

tandem_code tandem_client_step(tandem_client* client, const float* actions,
                               uint64_t count, double timeout_secs) {
  return CallClient(client, [&](Caller& caller) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const auto given,
                            tandem::Actions(caller, actions, count));
    TANDEM_RETURN_IF_ERROR(tandem::CheckSeconds(timeout_secs));
    return tandem::Explained(caller, caller.client->Step(given, timeout_secs));
  });
}

tandem_code tandem_client_reconnect(tandem_client* client,
                                    double timeout_secs) {
  return CallClient(client, [&](Caller& caller) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(tandem::CheckSeconds(timeout_secs));
    caller.rpcs->End();
    TANDEM_RETURN_IF_ERROR(caller.client->Reconnect(timeout_secs));
    caller.rpcs->Begin();
    tandem::Adopt(&caller);
    return absl::OkStatus();
  });
}

tandem_rpc* tandem_client_rpc(tandem_client* client) {
  return tandem::RpcOf(client);
}

tandem_code tandem_client_close(tandem_client* client) {
  if (client == nullptr) return TANDEM_OK;
  return CallClient(client, [&](Caller& caller) -> absl::Status {
    caller.rpcs->End();
    TANDEM_RETURN_IF_ERROR(tandem::Explained(caller, caller.client->Close()));
    // This call is a use as well; the object goes when all have ended.
    const auto use = tandem::callers.Enter(tandem::RpcOf(client));
    (void)tandem::callers.Close(use);
    return absl::OkStatus();
  });
}

tandem_code tandem_attendant_attach(const tandem_attendant_options* options,
                                    tandem_attendant** attendant) {
  return tandem::Result([&]() -> absl::Status {
    if (attendant == nullptr) return MissingArgument("attendant");
    tandem_rpc* handle = nullptr;
    absl::Status status = tandem::AttachAttendant(options, &handle);
    *attendant = reinterpret_cast<tandem_attendant*>(handle);
    return status;
  });
}

tandem_rpc* tandem_attendant_rpc(tandem_attendant* attendant) {
  return tandem::RpcOf(attendant);
}

tandem_code tandem_attendant_close(tandem_attendant* attendant) {
  if (attendant == nullptr) return TANDEM_OK;
  tandem_rpc* const handle = tandem::RpcOf(attendant);
  return CallAnytime(handle, "attendant", [&](Caller& caller) -> absl::Status {
    if (caller.attendant == nullptr) return tandem::InvalidHandle("attendant");
    const auto use = tandem::callers.Enter(handle);
    if (!use || !tandem::callers.Close(use)) {
      return tandem::InvalidHandle("attendant");
    }
    caller.rpcs->End();
    caller.attendant->Close();
    return absl::OkStatus();
  });
}

tandem_code tandem_rpc_call(tandem_rpc* rpc, const uint8_t* envelope,
                            uint64_t size, double timeout_secs,
                            uint8_t** answer, uint64_t* answer_size) {
  return CallAnytime(rpc, "rpc", [&](Caller& caller) -> absl::Status {
    TANDEM_RETURN_IF_ERROR(
        tandem::CheckCall(answer, answer_size, timeout_secs));
    TANDEM_ASSIGN_OR_RETURN(
        tandem::PackedCall call,
        tandem::CallFrom(envelope, size, tandem::Answers::kOnce));
    TANDEM_ASSIGN_OR_RETURN(const auto calls, caller.rpcs->Client());
    TANDEM_ASSIGN_OR_RETURN(
        const tandem::RpcMessage message,
        calls->Call(std::move(call), Deadline::After(timeout_secs)));
    return tandem::GiveBytes(message, answer, answer_size);
  });
}

tandem_code tandem_rpc_call_own(tandem_rpc* rpc, const char* name,
                                const void* request, uint64_t size,
                                double timeout_secs, uint8_t** answer,
                                uint64_t* answer_size) {
  return CallAnytime(rpc, "rpc", [&](Caller& caller) -> absl::Status {
    if (name == nullptr) return MissingArgument("name");
    if (request == nullptr && size > 0) return MissingArgument("request");
    TANDEM_RETURN_IF_ERROR(
        tandem::CheckCall(answer, answer_size, timeout_secs));
    TANDEM_RETURN_IF_ERROR(tandem::CheckBytes(size));
    tandem::rpc::CallOwnRequestT own;
    own.name = name;
    const auto* const bytes = static_cast<const uint8_t*>(request);
    own.data.assign(bytes, bytes + size);
    tandem::rpc::EnvelopeT envelope;
    envelope.method = tandem::rpc::MethodId::CallOwn;
    envelope.payload.Set(std::move(own));
    TANDEM_ASSIGN_OR_RETURN(const auto calls, caller.rpcs->Client());
    TANDEM_ASSIGN_OR_RETURN(const tandem::RpcMessage message,
                            calls->Call(tandem::PackedCall(envelope),
                                        Deadline::After(timeout_secs)));
    return tandem::GiveOwnAnswer(message, answer, answer_size);
  });
}

tandem_code tandem_rpc_open(tandem_rpc* rpc, const uint8_t* envelope,
                            uint64_t size, uint64_t* stream) {
  return CallAnytime(rpc, "rpc", [&](Caller& caller) -> absl::Status {
    if (stream == nullptr) return MissingArgument("stream");
    TANDEM_ASSIGN_OR_RETURN(
        tandem::PackedCall call,
        tandem::CallFrom(envelope, size, tandem::Answers::kStream));
    TANDEM_ASSIGN_OR_RETURN(const auto calls, caller.rpcs->Client());
    TANDEM_ASSIGN_OR_RETURN(*stream, calls->Open(std::move(call)));
    return absl::OkStatus();
  });
}

tandem_code tandem_rpc_next(tandem_rpc* rpc, uint64_t stream,
                            double timeout_secs, uint8_t** item,
                            uint64_t* item_size) {
  return CallAnytime(rpc, "rpc", [&](Caller& caller) -> absl::Status {
    if (item == nullptr) return MissingArgument("item");
    if (item_size == nullptr) return MissingArgument("item_size");
    *item = nullptr;
    *item_size = 0;
    TANDEM_RETURN_IF_ERROR(tandem::CheckSeconds(timeout_secs));
    TANDEM_ASSIGN_OR_RETURN(const auto calls, caller.rpcs->Client());
    TANDEM_ASSIGN_OR_RETURN(const auto message,
                            calls->Next(stream, Deadline::After(timeout_secs)));
    if (!message) return absl::OkStatus();
    return tandem::GiveBytes(*message, item, item_size);
  });
}

tandem_code tandem_rpc_close(tandem_rpc* rpc, uint64_t stream) {
  return CallAnytime(rpc, "rpc", [&](Caller& caller) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const auto calls, caller.rpcs->Client());
    calls->Close(stream);
    return absl::OkStatus();
  });
}

}  // extern "C"
