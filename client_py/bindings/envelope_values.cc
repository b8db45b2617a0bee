#include "client_py/bindings/envelope_values.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/table_packer.h"
#include "client_py/bindings/table_values.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"
#include "schema/layout/error_codes.h"
#include "transport/base/error.h"

namespace tandem {
namespace py = pybind11;
namespace {

using flatbuffers::TypeTable;

const TypeTable* TableOf(rpc::Payload payload) {
  // The union's own table has no row for NONE's table.
  const TypeTable* const all = rpc::PayloadTypeTable();
  for (size_t i = 0; i < all->num_elems; ++i) {
    if (all->values[i] == static_cast<int64_t>(payload)) {
      return RefOf(all, all->type_codes[i]);
    }
  }
  return nullptr;
}

}  // namespace

MethodPayloads PayloadsOf(rpc::MethodId method) {
  using M = rpc::MethodId;
  using P = rpc::Payload;
  switch (method) {
    case M::GetAgentSchema:
      return {P::GetAgentSchemaRequest, P::GetAgentSchemaResponse};
    case M::ResetAgent:
      return {P::ResetAgentRequest, P::ResetAgentResponse};
    case M::GetJointState:
    case M::StreamJointState:
      return {P::GetJointStateRequest, P::GetJointStateResponse};
    case M::GetMujocoInfo:
      return {P::GetMujocoInfoRequest, P::GetMujocoInfoResponse};
    case M::SendControl:
      return {P::SendControlRequest, P::SendControlResponse};
    case M::GetTelemetrySchema:
      return {P::GetTelemetrySchemaRequest, P::GetTelemetrySchemaResponse};
    case M::StreamTelemetry:
      return {P::StreamTelemetryRequest, P::TelemetryFrame};
    case M::GetSceneInfo:
      return {P::GetSceneInfoRequest, P::GetSceneInfoResponse};
    case M::ListEntities:
      return {P::ListEntitiesRequest, P::ListEntitiesResponse};
    case M::GetEntity:
      return {P::GetEntityRequest, P::GetEntityResponse};
    case M::SetEntityTransform:
      return {P::SetEntityTransformRequest, P::SetEntityTransformResponse};
    case M::SetSimulationMode:
      return {P::SetSimulationModeRequest, P::SetSimulationModeResponse};
    case M::GetSimulationMode:
      return {P::GetSimulationModeRequest, P::GetSimulationModeResponse};
    case M::SetPaused:
      return {P::SetPausedRequest, P::SetPausedResponse};
    case M::SingleStep:
      return {P::SingleStepRequest, P::SingleStepResponse};
    case M::ListCameras:
      return {P::ListCamerasRequest, P::ListCamerasResponse};
    case M::GetCameraFrame:
      return {P::GetCameraFrameRequest, P::NamedImageFrame};
    case M::StreamCamera:
      return {P::StreamCameraRequest, P::ImageFrame};
    case M::GetViewportInfo:
      return {P::GetViewportInfoRequest, P::GetViewportInfoResponse};
    case M::GetViewportFrame:
      return {P::GetViewportFrameRequest, P::NamedImageFrame};
    case M::StreamViewport:
      return {P::StartViewportStreamRequest, P::ImageFrame};
    case M::Draw:
      return {P::DebugDrawRequest, P::DebugDrawResponse};
    case M::CancelStream:
      return {P::CancelStreamRequest, P::CancelStreamResponse};
    case M::GetServices:
      return {P::GetServicesRequest, P::GetServicesResponse};
    case M::NONE:
      break;
  }
  return {P::NONE, P::NONE};
}

rpc::EnvelopeT PackRequest(rpc::MethodId method, py::handle fields,
                           absl::string_view region) {
  const rpc::Payload request = PayloadsOf(method).request;
  const TypeTable* const type = TableOf(request);
  if (type == nullptr) {
    Raise(MakeError(ErrorCode::kInvalidArgument,
                    absl::StrCat(
                        "method: expected a tandem.services.MethodId, found ",
                        static_cast<int>(method))),
          region);
  }
  flatbuffers::FlatBufferBuilder builder;
  const flatbuffers::Offset<void> payload =
      PackTable(fields, type, rpc::EnumNamePayload(request), region, &builder);
  rpc::FinishEnvelopeBuffer(
      builder, rpc::CreateEnvelope(builder, method, 0, 0, request, payload));
  rpc::EnvelopeT envelope;
  rpc::GetEnvelope(builder.GetBufferPointer())->UnPackTo(&envelope);
  return envelope;
}

py::dict PayloadValues(const rpc::Envelope& envelope) {
  return TableValues(static_cast<const flatbuffers::Table*>(envelope.payload()),
                     TableOf(envelope.payload_type()));
}

}  // namespace tandem
