// The RpcSide of ClientSide.
#include "schema/layout/ring_header.h"
#include "transport/session/client_side.h"

namespace tandem {

absl::StatusOr<RingReader> ClientSide::RpcRingReader() {
  const uint64_t offset = plan().cmd_s2c_offset;
  return RingReader::Attach(region_.mapping()->At<RingHeader>(offset),
                            RpcRingData(offset), engine_bell_);
}

absl::StatusOr<RingWriter> ClientSide::RpcRingWriter() {
  const uint64_t offset = plan().cmd_c2s_offset;
  return RingWriter::Attach(region_.mapping()->At<RingHeader>(offset),
                            RpcRingData(offset), engine_bell_);
}

Waiter ClientSide::RpcWaiter() const {
  return Waiter(own_bell_, options_.wait);
}

std::span<std::byte> ClientSide::RpcRingData(uint64_t ring_offset) const {
  return {region_.mapping()->At<std::byte>(ring_offset + sizeof(RingHeader)),
          plan().cmd_ring_size};
}

}  // namespace tandem
