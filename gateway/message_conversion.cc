#include "gateway/message_conversion.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace tandem::gateway {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Table;
using flatbuffers::TypeCode;
using flatbuffers::TypeTable;
using flatbuffers::Vector;
using flatbuffers::voffset_t;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The place of a table's field in its vtable. FlatBuffers numbers fields by id.
voffset_t PlaceOf(size_t id) {
  return static_cast<voffset_t>(
      flatbuffers::FieldIndexToOffset(static_cast<voffset_t>(id)));
}

// Returns nullptr if the field refers to no other type.
const TypeTable* RefOf(const TypeTable& type, const TypeCode& code) {
  return code.sequence_ref < 0 ? nullptr : type.type_refs[code.sequence_ref]();
}

// Whether the message has the field of this name; for a field that only has a
// value, whether it is not the default.
bool Has(const Message& message, const FieldDescriptor* field) {
  return field->is_repeated()
             ? message.GetReflection()->FieldSize(message, field) > 0
             : message.GetReflection()->HasField(message, field);
}

// An EntityId is its number.
bool IsEntityId(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field->message_type()->full_name() == "hazel.rpc.EntityId";
}
const FieldDescriptor* NumberOf(const FieldDescriptor* entity_id) {
  return entity_id->message_type()->FindFieldByNumber(1);
}

// Whether both sides' fields have the same type. Otherwise the field is left
// out; the test finds that.
bool IsSameType(const FieldDescriptor* field, const TypeCode& code) {
  const auto is = [&](flatbuffers::ElementaryType type) {
    return code.base_type == type &&
           (code.is_repeating != 0) == field->is_repeated();
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return is(flatbuffers::ET_BOOL);
    case FieldDescriptor::CPPTYPE_INT32:
      return is(flatbuffers::ET_INT);
    case FieldDescriptor::CPPTYPE_UINT32:
      return is(flatbuffers::ET_UINT);
    case FieldDescriptor::CPPTYPE_UINT64:
      return is(flatbuffers::ET_ULONG);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return is(flatbuffers::ET_FLOAT);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return is(flatbuffers::ET_DOUBLE);
    case FieldDescriptor::CPPTYPE_ENUM:
      return is(flatbuffers::ET_UCHAR);
    case FieldDescriptor::CPPTYPE_STRING:
      return field->type() == FieldDescriptor::TYPE_BYTES
                 ? code.base_type == flatbuffers::ET_UCHAR &&
                       code.is_repeating != 0
                 : is(flatbuffers::ET_STRING);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return is(IsEntityId(field) ? flatbuffers::ET_ULONG
                                  : flatbuffers::ET_SEQUENCE);
    default:
      return false;
  }
}

// The fields of structs are float32 numbers.
std::vector<float> NumbersOf(const Message& message, const TypeTable& type) {
  std::vector<float> numbers(type.num_elems);
  for (size_t i = 0; i < type.num_elems; ++i) {
    const FieldDescriptor* const field =
        message.GetDescriptor()->FindFieldByName(type.names[i]);
    numbers[i] = message.GetReflection()->GetFloat(message, field);
  }
  return numbers;
}

template <typename Number>
flatbuffers::uoffset_t PackNumbers(const Message& from,
                                   const FieldDescriptor* field,
                                   FlatBufferBuilder* builder) {
  const auto numbers =
      from.GetReflection()->GetRepeatedFieldRef<Number>(from, field);
  return builder
      ->CreateVector(std::vector<Number>(numbers.begin(), numbers.end()))
      .o;
}

template <typename Number>
void UnpackNumbers(const Table& from, voffset_t place,
                   const FieldDescriptor* field, Message* to) {
  const auto numbers =
      to->GetReflection()->GetMutableRepeatedFieldRef<Number>(to, field);
  for (const Number number : *from.GetPointer<const Vector<Number>*>(place)) {
    numbers.Add(number);
  }
}

flatbuffers::uoffset_t PackRepeated(const Message& from,
                                    const FieldDescriptor* field,
                                    const TypeTable* items,
                                    FlatBufferBuilder* builder) {
  const Reflection& reflection = *from.GetReflection();
  const int count = reflection.FieldSize(from, field);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      return PackNumbers<float>(from, field, builder);
    case FieldDescriptor::CPPTYPE_UINT32:
      return PackNumbers<uint32_t>(from, field, builder);
    case FieldDescriptor::CPPTYPE_STRING: {
      std::vector<std::string> texts;
      for (int i = 0; i < count; ++i) {
        texts.push_back(reflection.GetRepeatedString(from, field, i));
      }
      return builder->CreateVectorOfStrings(texts).o;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      std::vector<Offset<Table>> tables;
      for (int i = 0; i < count; ++i) {
        tables.push_back(Pack(reflection.GetRepeatedMessage(from, field, i),
                              *items, builder));
      }
      return builder->CreateVector(tables).o;
    }
    default:
      std::abort();  // the test packs each field
  }
}

// Packs what the table refers to; 0: the field is in the table itself.
flatbuffers::uoffset_t PackChild(const Message& from,
                                 const FieldDescriptor* field,
                                 const TypeTable* ref,
                                 FlatBufferBuilder* builder) {
  const Reflection& reflection = *from.GetReflection();
  if (field->is_repeated()) return PackRepeated(from, field, ref, builder);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return builder->CreateString(reflection.GetString(from, field)).o;
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
      !IsEntityId(field) && ref->st == flatbuffers::ST_TABLE) {
    return Pack(reflection.GetMessage(from, field), *ref, builder).o;
  }
  return 0;
}

void AddStruct(const std::vector<float>& numbers, voffset_t place,
               FlatBufferBuilder* builder) {
  if (numbers.size() == 3) {
    const rpc::Vec3 vector(numbers[0], numbers[1], numbers[2]);
    builder->AddStruct(place, &vector);
  } else {
    const rpc::Quat rotation(numbers.at(0), numbers.at(1), numbers.at(2),
                             numbers.at(3));
    builder->AddStruct(place, &rotation);
  }
}

// Adds a field that is in the table itself.
void AddInline(const Message& from, const FieldDescriptor* field,
               const TypeTable* ref, voffset_t place,
               FlatBufferBuilder* builder) {
  const Reflection& reflection = *from.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return builder->AddElement<uint8_t>(
          place, reflection.GetBool(from, field) ? 1 : 0, 0);
    case FieldDescriptor::CPPTYPE_UINT32:
      return builder->AddElement<uint32_t>(
          place, reflection.GetUInt32(from, field), 0);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return builder->AddElement<float>(place, reflection.GetFloat(from, field),
                                        0);
    case FieldDescriptor::CPPTYPE_INT32:
      return builder->AddElement<int32_t>(place,
                                          reflection.GetInt32(from, field), 0);
    case FieldDescriptor::CPPTYPE_UINT64:
      return builder->AddElement<uint64_t>(
          place, reflection.GetUInt64(from, field), 0);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return builder->AddElement<double>(place,
                                         reflection.GetDouble(from, field), 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      // A number that is not of the enum reaches the engine, too, which refuses
      // it. Larger ones do not fit, and become the largest.
      return builder->AddElement<uint8_t>(
          place,
          static_cast<uint8_t>(std::min<uint32_t>(
              static_cast<uint32_t>(reflection.GetEnumValue(from, field)),
              0xff)),
          0);
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      const Message& message = reflection.GetMessage(from, field);
      if (!IsEntityId(field)) {
        return AddStruct(NumbersOf(message, *ref), place, builder);
      }
      return builder->AddElement<uint64_t>(
          place, message.GetReflection()->GetUInt64(message, NumberOf(field)),
          0);
    }
    default:
      std::abort();  // the test packs each field
  }
}

void UnpackRepeated(const Table& from, voffset_t place, const TypeTable* items,
                    const FieldDescriptor* field, Message* to) {
  const Reflection& reflection = *to->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      return UnpackNumbers<float>(from, place, field, to);
    case FieldDescriptor::CPPTYPE_UINT32:
      return UnpackNumbers<uint32_t>(from, place, field, to);
    case FieldDescriptor::CPPTYPE_STRING:
      for (const auto* const text :
           *from.GetPointer<const Vector<Offset<flatbuffers::String>>*>(
               place)) {
        reflection.AddString(to, field, text->str());
      }
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      for (const auto* const table :
           *from.GetPointer<const Vector<Offset<Table>>*>(place)) {
        Unpack(*table, *items, reflection.AddMessage(to, field));
      }
      return;
    default:
      std::abort();  // the test unpacks each field
  }
}

void UnpackMessage(const Table& from, voffset_t place, const TypeTable* ref,
                   const FieldDescriptor* field, Message* to) {
  Message* const message = to->GetReflection()->MutableMessage(to, field);
  if (IsEntityId(field)) {
    message->GetReflection()->SetUInt64(message, NumberOf(field),
                                        from.GetField<uint64_t>(place, 0));
  } else if (ref->st == flatbuffers::ST_TABLE) {
    Unpack(*from.GetPointer<const Table*>(place), *ref, message);
  } else {
    const uint8_t* const numbers = from.GetAddressOf(place);
    for (size_t i = 0; i < ref->num_elems; ++i) {
      message->GetReflection()->SetFloat(
          message, message->GetDescriptor()->FindFieldByName(ref->names[i]),
          flatbuffers::ReadScalar<float>(numbers + ref->values[i]));
    }
  }
}

void UnpackField(const Table& from, voffset_t place, const TypeTable* ref,
                 const FieldDescriptor* field, Message* to) {
  const Reflection& reflection = *to->GetReflection();
  if (field->is_repeated()) {
    return UnpackRepeated(from, place, ref, field, to);
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(to, field, from.GetField<uint8_t>(place, 0));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(to, field, from.GetField<int32_t>(place, 0));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(to, field, from.GetField<double>(place, 0));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(to, field, from.GetField<uint32_t>(place, 0));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(to, field, from.GetField<uint64_t>(place, 0));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.SetFloat(to, field, from.GetField<float>(place, 0));
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(to, field,
                                     from.GetField<uint8_t>(place, 0));
    case FieldDescriptor::CPPTYPE_STRING: {
      const auto* const bytes = from.GetPointer<const Vector<uint8_t>*>(place);
      return reflection.SetString(to, field,
                                  std::string(bytes->begin(), bytes->end()));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return UnpackMessage(from, place, ref, field, to);
    default:
      std::abort();  // the test unpacks each field
  }
}

}  // namespace

const TypeTable* TypeOf(rpc::Payload payload) {
  const TypeTable& all = *rpc::PayloadTypeTable();
  for (size_t i = 0; i < all.num_elems; ++i) {
    if (all.values[i] == static_cast<int64_t>(payload)) {
      return RefOf(all, all.type_codes[i]);
    }
  }
  return nullptr;
}

Offset<Table> Pack(const Message& from, const TypeTable& type,
                   FlatBufferBuilder* builder) {
  struct Field {
    const FieldDescriptor* field;
    const TypeTable* ref;
    voffset_t place;
    flatbuffers::uoffset_t child;
  };
  std::vector<Field> fields;
  for (size_t i = 0; i < type.num_elems; ++i) {
    const FieldDescriptor* const field =
        from.GetDescriptor()->FindFieldByName(type.names[i]);
    if (field == nullptr || !IsSameType(field, type.type_codes[i]) ||
        !Has(from, field)) {
      continue;
    }
    const TypeTable* const ref = RefOf(type, type.type_codes[i]);
    fields.push_back({.field = field,
                      .ref = ref,
                      .place = PlaceOf(i),
                      .child = PackChild(from, field, ref, builder)});
  }
  const flatbuffers::uoffset_t start = builder->StartTable();
  for (const Field& each : fields) {
    if (each.child != 0) {
      builder->AddOffset(each.place, Offset<void>(each.child));
    } else {
      AddInline(from, each.field, each.ref, each.place, builder);
    }
  }
  return Offset<Table>(builder->EndTable(start));
}

void Unpack(const Table& from, const TypeTable& type, Message* to) {
  for (size_t i = 0; i < type.num_elems; ++i) {
    const FieldDescriptor* const field =
        to->GetDescriptor()->FindFieldByName(type.names[i]);
    if (field == nullptr || !IsSameType(field, type.type_codes[i]) ||
        !from.CheckField(PlaceOf(i))) {
      continue;
    }
    UnpackField(from, PlaceOf(i), RefOf(type, type.type_codes[i]), field, to);
  }
}

}  // namespace tandem::gateway
