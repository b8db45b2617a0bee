// The current generated code reads and writes the messages of version 1.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/idl.h"
#include "schema/goldens/testing/rpc_listing.h"
#include "schema/goldens/testing/rpc_samples.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

using flatbuffers::FieldDef;
using flatbuffers::StructDef;
using flatbuffers::Table;

constexpr char kNext[] =
    "schema/messages/README.md says what may be changed. Next for version 1 "
    "itself, before its release: bazel run //schema/goldens:generate";

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// A golden, aligned so that FlatBuffers can read it in place.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : bytes_(Read("schema/goldens/rpc_v1/" + name + ".bin")) {
    flatbuffers::Verifier verifier(data(), bytes_.size());
    EXPECT_TRUE(rpc::VerifyEnvelopeBuffer(verifier)) << name;
  }

  const std::string& bytes() const { return bytes_; }
  const rpc::Envelope& operator*() const { return *rpc::GetEnvelope(data()); }
  const rpc::Envelope* operator->() const { return rpc::GetEnvelope(data()); }

 private:
  const uint8_t* data() const {
    return reinterpret_cast<const uint8_t*>(bytes_.data());
  }

  std::string bytes_;
};

TEST(RpcGoldens, EqualTheBytesThatTheCodeWrites) {
  for (const RpcSample& sample : RpcSamples()) {
    EXPECT_EQ(Golden(sample.name).bytes(), RpcBytes(sample.envelope))
        << sample.name << ". " << kNext;
  }
}

TEST(RpcGoldens, SurviveTodaysPlainStructs) {
  for (const RpcSample& sample : RpcSamples()) {
    const Golden golden(sample.name);
    rpc::EnvelopeT envelope;
    golden->UnPackTo(&envelope);
    EXPECT_EQ(RpcBytes(envelope), golden.bytes()) << sample.name;
  }
}

// The goldens' listing is equal too, since the goldens equal the samples.
TEST(RpcGoldens, AreListedByTheSchema) {
  const absl::StatusOr<std::string> found =
      RpcListing(Read("schema/messages/hazel_rpc.fbs"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, Read("schema/goldens/rpc_v1/listing.json")) << kNext;
}

TEST(RpcGoldens, EnvelopeIsReadInPlace) {
  const Golden error("Error");
  EXPECT_EQ(error->method(), rpc::MethodId::GetEntity);
  EXPECT_EQ(error->correlation_id(), 0xABCD'0000'0000'0001U);
  EXPECT_EQ(error->error_code(), 12);
  EXPECT_EQ(error->error_message()->str(), "expected an entity, found none");
  EXPECT_EQ(error->payload_type(), rpc::Payload::NONE);
  EXPECT_EQ(error->payload(), nullptr);

  const Golden end("EndOfStream");
  EXPECT_TRUE(end->end_of_stream());
  EXPECT_EQ(end->dropped(), 3U);
  EXPECT_EQ(end->stream_number(), 0U);
}

TEST(RpcGoldens, ResetIsReadInPlace) {
  const Golden golden("ResetAgentRequest");
  const rpc::ResetAgentRequest* reset = golden->payload_as_ResetAgentRequest();
  ASSERT_NE(reset, nullptr);
  EXPECT_EQ(golden->payload_as_ResetAgentResponse(), nullptr);
  EXPECT_EQ(reset->agent_name()->str(), "agent_2");
  EXPECT_EQ(reset->env_ids()->Get(2), 4'000'000'000U);
  EXPECT_EQ(reset->seed(), 0xFEDC'BA98'7654'3210U);
  EXPECT_TRUE(reset->at_next_reset());
  const rpc::SimulationContract& contract = *reset->simulation_contract();
  EXPECT_EQ(contract.friction_range()->Get(1), 1.125F);
  EXPECT_EQ(contract.terrain_type()->str(), "stairs");
  EXPECT_EQ(contract.vel_command_standing_probability(), 0.3125F);
}

TEST(RpcGoldens, TransformIsReadInPlace) {
  const Golden golden("SetEntityTransformRequest");
  const auto* move = golden->payload_as_SetEntityTransformRequest();
  ASSERT_NE(move, nullptr);
  EXPECT_EQ(move->id(), 11'000'000'000U);
  EXPECT_EQ(move->transform()->position()->y(), -2.5F);
  EXPECT_EQ(move->transform()->rotation()->w(), 0.75F);
  EXPECT_EQ(move->transform()->scale()->z(), 8);
}

TEST(RpcGoldens, HaveTheDefaultsOfTheSchema) {
  rpc::EnvelopeT envelope;
  envelope.payload.Set(rpc::ResetAgentRequestT());
  const std::string reset = RpcBytes(envelope);
  envelope.payload.Set(rpc::SingleStepRequestT());
  const std::string step = RpcBytes(envelope);
  EXPECT_FALSE(rpc::GetEnvelope(reset.data())
                   ->payload_as_ResetAgentRequest()
                   ->seed()
                   .has_value());
  EXPECT_EQ(
      rpc::GetEnvelope(step.data())->payload_as_SingleStepRequest()->steps(),
      1U);
}

TEST(RpcSamples, HaveEveryPayloadOnce) {
  std::multiset<rpc::Payload> found;
  for (const RpcSample& sample : RpcSamples()) {
    found.insert(sample.envelope.payload.type);
  }
  EXPECT_EQ(found.count(rpc::Payload::NONE), 2U);
  found.erase(rpc::Payload::NONE);
  found.insert(rpc::Payload::NONE);
  const auto& all = rpc::EnumValuesPayload();
  EXPECT_EQ(found, std::multiset<rpc::Payload>(std::begin(all), std::end(all)));
}

TEST(RpcSamples, HaveEveryMethod) {
  std::set<rpc::MethodId> found = {rpc::MethodId::NONE};
  for (const RpcSample& sample : RpcSamples()) {
    found.insert(sample.envelope.method);
  }
  // Streams and single frames share payloads.
  found.insert({rpc::MethodId::GetJointState, rpc::MethodId::StreamCamera});
  const auto& all = rpc::EnumValuesMethodId();
  EXPECT_EQ(found, std::set<rpc::MethodId>(std::begin(all), std::end(all)));
}

// Walks all tables below one, by the schema.
class FieldsSeen {
 public:
  void Walk(const StructDef& type, const Table& table) {
    std::map<std::string, std::string> numbers;  // value -> field
    for (const FieldDef* field : type.fields.vec) {
      const std::string name = type.name + "." + field->name;
      if (!table.CheckField(field->value.offset)) continue;
      set_.insert(name);
      if (const std::string number = Number(*field, table); !number.empty()) {
        const auto [other, is_new] = numbers.emplace(number, name);
        EXPECT_TRUE(is_new) << name << " and " << other->second << " are both "
                            << number << ": a test would not see them swapped";
      }
      WalkBelow(*field, table);
    }
  }

  const std::set<std::string>& set() const { return set_; }

 private:
  // Empty for a bool or an enum, whose values are few.
  static std::string Number(const FieldDef& field, const Table& table) {
    const flatbuffers::voffset_t at = field.value.offset;
    if (field.value.type.enum_def != nullptr) return "";
    switch (field.value.type.base_type) {
      case flatbuffers::BASE_TYPE_USHORT:
        return std::to_string(table.GetField<uint16_t>(at, 0));
      case flatbuffers::BASE_TYPE_UINT:
        return std::to_string(table.GetField<uint32_t>(at, 0));
      case flatbuffers::BASE_TYPE_ULONG:
        return std::to_string(table.GetField<uint64_t>(at, 0));
      case flatbuffers::BASE_TYPE_FLOAT:
        return std::to_string(table.GetField<float>(at, 0));
      default:
        return "";
    }
  }

  void WalkBelow(const FieldDef& field, const Table& table) {
    const flatbuffers::Type& type = field.value.type;
    const flatbuffers::voffset_t at = field.value.offset;
    if (type.base_type == flatbuffers::BASE_TYPE_UNION) {
      const auto* which = type.enum_def->ReverseLookup(table.GetField<uint8_t>(
          static_cast<flatbuffers::voffset_t>(at - sizeof(at)), 0));
      ASSERT_NE(which, nullptr);
      Walk(*which->union_type.struct_def, *table.GetPointer<const Table*>(at));
    } else if (type.struct_def == nullptr || type.struct_def->fixed) {
      return;
    } else if (type.base_type == flatbuffers::BASE_TYPE_VECTOR) {
      using Tables = flatbuffers::Vector<flatbuffers::Offset<Table>>;
      for (const Table* item : *table.GetPointer<const Tables*>(at)) {
        Walk(*type.struct_def, *item);
      }
    } else {
      Walk(*type.struct_def, *table.GetPointer<const Table*>(at));
    }
  }

  std::set<std::string> set_;  // "Table.field"
};

TEST(RpcSamples, SetEveryFieldOfVersion1AndNoTwoNumbersAlike) {
  flatbuffers::Parser parser;
  ASSERT_TRUE(parser.Parse(Read("schema/messages/hazel_rpc.fbs").c_str()))
      << parser.error_;
  FieldsSeen seen;
  for (const RpcSample& sample : RpcSamples()) {
    SCOPED_TRACE(sample.name);
    const std::string bytes = RpcBytes(sample.envelope);
    seen.Walk(*parser.root_struct_def_,
              *flatbuffers::GetRoot<Table>(bytes.data()));
  }
  std::set<std::string> all;
  for (const StructDef* type : parser.structs_.vec) {
    if (type->fixed) continue;
    for (const FieldDef* field : type->fields.vec) {
      all.insert(type->name + "." + field->name);
    }
  }
  EXPECT_GT(all.size(), 190U);
  EXPECT_EQ(seen.set(), all);
}

}  // namespace
}  // namespace tandem
