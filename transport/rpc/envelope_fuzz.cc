// Fuzz target of EnvelopeReader. The input is a sequence of ring entries that a
// peer writes. Each is a valid envelope, or one with bytes overwritten or cut.
//
// Data flow: bytes -> entries -> EnvelopeReader -> abort on one of these:
//  - a valid envelope was lost
//  - an entry was returned twice, or not at all
//  - an accepted envelope cannot be read completely
//
//   bazel run --config=fuzz //transport/rpc:envelope_fuzz -- -max_total_time=60
//
// envelope_fuzz_test runs the same function over transport/rpc/corpus and over
// random scripts.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "transport/ring/testing/ring_test_region.h"
#include "transport/rpc/envelope_reader.h"
#include "transport/testing/fuzz_script.h"

namespace tandem {
namespace {

constexpr uint32_t kRingBytes = 2048;
constexpr size_t kLargestBytes = 16 * 1024;
constexpr size_t kMaxUnpackedBytes = 256 * 1024;

// Returns a valid envelope, of a kind and size that the script selects. The
// fields of a Fragment may have any values.
rpc::EnvelopeT Honest(Script& script, uint64_t id) {
  rpc::EnvelopeT envelope;
  envelope.correlation_id = id;
  envelope.method = rpc::MethodId::ListEntities;
  switch (script.Byte() % 4) {
    case 0:
      envelope.error_message = std::string(script.Byte(), 'e');
      break;
    case 1: {
      rpc::ListEntitiesResponseT entities;
      for (int i = script.Byte() % 16; i > 0; --i) {
        auto entity = std::make_unique<rpc::EntityInfoT>();
        entity->id = static_cast<uint64_t>(i);
        entity->name = "entity";
        entity->components = {"body", "geom"};
        entities.entities.push_back(std::move(entity));
      }
      envelope.payload.Set(std::move(entities));
      break;
    }
    case 2: {
      rpc::FragmentT fragment;
      fragment.index = script.Byte() % 4;
      fragment.count = script.Byte() % 4;
      fragment.total_bytes = uint64_t{script.Byte()} << (script.Byte() % 48);
      fragment.data.resize(script.Byte());
      envelope.payload.Set(std::move(fragment));
      break;
    }
    default: {
      rpc::ImageFrameT frame;
      frame.data.resize(size_t{script.Byte()} * 16);
      envelope.payload.Set(std::move(frame));
      break;
    }
  }
  return envelope;
}

// Reads every field of the envelope.
void ReadThrough(const rpc::Envelope& envelope) {
  rpc::EnvelopeT copy;
  envelope.UnPackTo(&copy);
}

}  // namespace

void FuzzEnvelopes(const uint8_t* data, size_t size) {
  Script script(data, size);
  TestRegion region(kRingBytes);
  RingWriter writer = region.Writer();
  EnvelopeReader reader(region.Reader(),
                        {.max_envelope_bytes = kLargestBytes,
                         .max_depth = 16,
                         .max_tables = 1000,
                         .max_unpacked_bytes = kMaxUnpackedBytes});
  for (uint64_t id = 1; !script.AtEnd(); ++id) {
    flatbuffers::FlatBufferBuilder builder;
    const rpc::EnvelopeT envelope = Honest(script, id);
    rpc::FinishEnvelopeBuffer(builder, rpc::CreateEnvelope(builder, &envelope));
    std::vector<uint8_t> bytes(builder.GetBufferPointer(),
                               builder.GetBufferPointer() + builder.GetSize());
    const int flips = script.Byte() % 4;
    for (int i = 0; i < flips; ++i) {
      const size_t at = size_t{script.Byte()} << 8 | script.Byte();
      bytes[at % bytes.size()] = script.Byte();
    }
    const bool cut = script.Byte() % 8 == 0;
    if (cut) bytes.resize(bytes.size() / 2);
    if (bytes.size() > writer.max_message_bytes()) continue;
    Require(writer.TryWrite(std::as_bytes(std::span(bytes))) == ErrorCode::kOk,
            "no room in a ring that was read empty");

    const EnvelopeReader::Got got = reader.Next();
    Require(got == EnvelopeReader::Got::kEnvelope ||
                got == EnvelopeReader::Got::kPiece ||
                got == EnvelopeReader::Got::kDropped,
            "an entry was not seen");
    if (flips == 0 && !cut && !envelope.payload.AsFragment()) {
      Require(got == EnvelopeReader::Got::kEnvelope &&
                  reader.envelope().correlation_id() == id,
              "an honest envelope was lost");
    }
    if (got == EnvelopeReader::Got::kEnvelope) ReadThrough(reader.envelope());
    Require(reader.Next() == EnvelopeReader::Got::kNothing,
            "an entry was seen twice");
  }
  Require(region.CanariesLive(), "something beside the ring was written");
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::FuzzEnvelopes(data, size);
  return 0;
}
