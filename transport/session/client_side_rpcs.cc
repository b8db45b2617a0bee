// The RpcSide of ClientSide.
#include "schema/layout/ring_header.h"
#include "transport/session/client_side.h"

namespace tandem {

absl::StatusOr<RingReader> ClientSide::RpcRingReader() {
  auto* const ring = mapping()->At<RingHeader>(plan().cmd_s2c_offset);
  return RingReader::Attach(ring, RingDataOf(ring, plan().cmd_ring_size),
                            session_.engine_bell);
}

absl::StatusOr<RingWriter> ClientSide::RpcRingWriter() {
  auto* const ring = mapping()->At<RingHeader>(plan().cmd_c2s_offset);
  return RingWriter::Attach(ring, RingDataOf(ring, plan().cmd_ring_size),
                            session_.engine_bell);
}

ImagePlace ClientSide::image_place() const {
  return ImagePlace::Of(mapping(), plan(), 0);
}

}  // namespace tandem
