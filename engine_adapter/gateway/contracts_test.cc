#include "engine_adapter/gateway/contracts.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "flatbuffers/flatbuffers.h"

namespace tandem::gateway {
namespace {

using google::protobuf::FieldDescriptor;

// A field that ToEngine forgets would be left out of the packed contract.
TEST(Contracts, EachFieldReachesTheEngine) {
  const auto* const type = hazel::rpc::SimulationContract::descriptor();
  const flatbuffers::TypeTable* const names =
      rpc::SimulationContractTypeTable();
  ASSERT_EQ(static_cast<size_t>(type->field_count()), names->num_elems);
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    EXPECT_EQ(field->name(), names->names[field->number() - 1]);
    hazel::rpc::SimulationContract contract;
    const auto* const reflection = contract.GetReflection();
    if (field->is_repeated()) {
      reflection->AddFloat(&contract, field, 3);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection->SetString(&contract, field, "x");
    } else {
      reflection->SetFloat(&contract, field, 3);
    }
    flatbuffers::FlatBufferBuilder builder;
    const rpc::SimulationContractT converted = ToEngine(contract);
    builder.Finish(rpc::SimulationContract::Pack(builder, &converted));
    const auto* const table =
        flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer());
    // Fields are numbered from 0; their offsets from 4, by 2.
    EXPECT_TRUE(table->CheckField(static_cast<flatbuffers::voffset_t>(
        4 + 2 * (field->number() - 1))))
        << field->name();
  }
}

}  // namespace
}  // namespace tandem::gateway
