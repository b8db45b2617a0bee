#include "client_py/bindings/native_rpc.h"

#include <pybind11/numpy.h>

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/error.h"
#include "client_py/bindings/envelope_values.h"
#include "client_py/bindings/errors.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/rpc_methods.h"

namespace tandem {
namespace py = pybind11;
namespace {

// If the answer's image is in a slot, makes its data a view of the slot.
void ShowImage(RpcMessage* message, const py::dict& values,
               absl::string_view region) {
  const rpc::Payload type = message->envelope().payload_type();
  if (type != rpc::Payload::NamedImageFrame &&
      type != rpc::Payload::ImageFrame) {
    return;
  }
  const py::object frame = type == rpc::Payload::ImageFrame
                               ? py::object(values)
                               : py::object(values["frame"]);
  if (frame.is_none() || frame["slot_seq"].cast<uint64_t>() == 0) return;
  auto lease = std::make_unique<ImageLease>(message->TakeImage());
  if (!*lease) {
    Raise(
        MakeError(ErrorCode::kBrokenPeer,
                  absl::StrCat("region '", region,
                               "': expected an image in a slot of the region, "
                               "found slot ",
                               frame["slot"].cast<int>(), " with ",
                               frame["slot_bytes"].cast<uint32_t>(),
                               " bytes; reconnect(), or close()")),
        region);
  }
  const std::span<std::byte> bytes = lease->bytes();
  frame["data"] =
      py::array_t<uint8_t>(static_cast<py::ssize_t>(bytes.size()),
                           reinterpret_cast<const uint8_t*>(bytes.data()),
                           py::cast(std::move(lease)));
}

py::dict CheckedValues(RpcMessage* message, rpc::MethodId method,
                       absl::string_view region) {
  const rpc::Envelope& envelope = message->envelope();
  const rpc::Payload expected = PayloadsOf(method).answer;
  if (envelope.payload_type() != expected || envelope.payload() == nullptr) {
    Raise(MakeError(
              ErrorCode::kBrokenPeer,
              absl::StrCat("region '", region, "': expected ",
                           rpc::EnumNamePayload(expected), " in answer to ",
                           rpc::EnumNameMethodId(method), ", found payload ",
                           static_cast<int>(envelope.payload_type()),
                           "; reconnect(), or close()")),
          region);
  }
  py::dict values = PayloadValues(envelope);
  ShowImage(message, values, region);
  return values;
}

std::unique_ptr<AttendantSide> AttachOrRaise(const std::string& name,
                                             const std::string& label,
                                             double timeout_secs) {
  absl::StatusOr<std::unique_ptr<AttendantSide>> side = WithoutGil([&] {
    return AttendantSide::Attach(name, {.label = label,
                                        .timeout_secs = timeout_secs,
                                        .interrupted = PythonInterrupts});
  });
  RaiseWhatPythonRaised();
  if (!side.ok()) Raise(side.status(), name);
  return *std::move(side);
}

}  // namespace

NativeStream::NativeStream(std::shared_ptr<RpcClient> client, uint64_t id,
                           rpc::MethodId method, std::string region)
    : client_(std::move(client)),
      id_(id),
      method_(method),
      region_(std::move(region)),
      born_in_(ForkCount()) {}

py::object NativeStream::Next(double timeout_secs) {
  const Deadline deadline = Deadline::After(timeout_secs);
  absl::StatusOr<std::optional<RpcMessage>> item =
      WithoutGil([&] { return client_->Next(id_, deadline); });
  if (CodeOf(item.status()) == ErrorCode::kStepTimeout) {
    Raise(
        MakeError(ErrorCode::kStepTimeout,
                  absl::StrCat("region '", region_,
                               "': ", rpc::EnumNameMethodId(method_),
                               " sent no item within ", timeout_secs,
                               " s; a stream sends an item only after a step; "
                               "the stream is still open: call next() again")),
        region_);
  }
  if (!item.ok()) Raise(item.status(), region_);
  RaiseWhatPythonRaised();
  if (!item->has_value()) return py::none();
  number_ = (*item)->envelope().stream_number();
  return CheckedValues(&**item, method_, region_);
}

uint64_t NativeStream::dropped() const {
  // In a forked child, another thread's lock is never released.
  const bool live = !closed_ && born_in_ == ForkCount();
  return live ? client_->Dropped(id_) : dropped_at_close_;
}

void NativeStream::Close() {
  if (closed_ || born_in_ != ForkCount()) return;
  dropped_at_close_ = client_->Dropped(id_);
  closed_ = true;
  client_->Close(id_);
}

py::dict NativeRpc::Call(uint16_t method, py::handle request,
                         std::optional<double> timeout_secs) {
  const double secs = timeout_secs.value_or(timeout_secs_);
  const std::shared_ptr<RpcClient> session = Client();
  const auto id = static_cast<rpc::MethodId>(method);
  PackedCall call = PackRequest(id, request, side_->name());
  absl::StatusOr<RpcMessage> answer = WithoutGil(
      [&] { return session->Call(std::move(call), Deadline::After(secs)); });
  if (!answer.ok()) Raise(answer.status(), side_->name());
  RaiseWhatPythonRaised();
  return CheckedValues(&*answer, id, side_->name());
}

std::unique_ptr<NativeStream> NativeRpc::Open(uint16_t method,
                                              py::handle request) {
  std::shared_ptr<RpcClient> session = Client();
  const auto id = static_cast<rpc::MethodId>(method);
  const absl::StatusOr<uint64_t> stream =
      session->Open(PackRequest(id, request, side_->name()));
  if (!stream.ok()) Raise(stream.status(), side_->name());
  return std::make_unique<NativeStream>(std::move(session), *stream, id,
                                        side_->name());
}

void NativeRpc::EndSession() {
  WithoutGil([&] { session_.End(); });
}

std::shared_ptr<RpcClient> NativeRpc::Client() {
  absl::StatusOr<std::shared_ptr<RpcClient>> client = session_.Client();
  if (!client.ok()) Raise(client.status(), side_->name());
  return *std::move(client);
}

NativeAttendant::NativeAttendant(const std::string& name,
                                 const std::string& label, double timeout_secs)
    : side_(AttachOrRaise(name, label, timeout_secs)),
      rpc_(side_.get(), timeout_secs) {}

void NativeAttendant::Close() {
  if (std::exchange(closed_, true)) return;
  rpc_.EndSession();
  side_->Close();
}

}  // namespace tandem
