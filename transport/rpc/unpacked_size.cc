#include "transport/rpc/unpacked_size.h"

#include <cstddef>

#include "flatbuffers/flatbuffers.h"
#include "flatbuffers/minireflect.h"

namespace tandem {
namespace {

using flatbuffers::TypeTable;

// An upper bound for a table's plain struct, without its vectors and strings;
// and one for a vector or string, with its allocation.
constexpr uint64_t kTableBytes = 512;
constexpr uint64_t kVectorBytes = 48;

// Returns the object to which an offset in a buffer leads.
const uint8_t* Follow(const uint8_t* offset) {
  return offset + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(offset);
}

// Subtracts sizes from the rest. Each function returns false if the rest is too
// small.
class Budget {
 public:
  explicit Budget(uint64_t bytes) : left_(bytes) {}

  bool TakeTable(const uint8_t* table, const TypeTable& type) {
    if (!Take(kTableBytes)) return false;
    const uint8_t* before = nullptr;
    for (size_t i = 0; i < type.num_elems; ++i) {
      const uint8_t* const field =
          reinterpret_cast<const flatbuffers::Table*>(table)->GetAddressOf(
              flatbuffers::FieldIndexToOffset(
                  static_cast<flatbuffers::voffset_t>(i)));
      if (field != nullptr && !TakeField(type, i, field, before)) return false;
      before = field;
    }
    return true;
  }

 private:
  bool Take(uint64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

  // `before`: the previous field, which has the type of a union.
  bool TakeField(const TypeTable& type, size_t index, const uint8_t* field,
                 const uint8_t* before) {
    const flatbuffers::TypeCode code = type.type_codes[index];
    const TypeTable* const of =
        code.sequence_ref < 0 ? nullptr : type.type_refs[code.sequence_ref]();
    const auto kind = static_cast<flatbuffers::ElementaryType>(code.base_type);
    const bool is_sequence = kind == flatbuffers::ET_SEQUENCE;
    if (is_sequence && of->st == flatbuffers::ST_UNION) {
      return before == nullptr || TakeUnion(*of, *before, Follow(field));
    }
    const bool is_inline = kind != flatbuffers::ET_STRING &&
                           !(is_sequence && of->st == flatbuffers::ST_TABLE);
    if (code.is_repeating == 0) {
      return is_inline || TakeElement(field, is_sequence ? of : nullptr);
    }
    const auto* const vector =
        reinterpret_cast<const flatbuffers::Vector<uint8_t>*>(Follow(field));
    const size_t element_bytes = flatbuffers::InlineSize(kind, of);
    if (!Take(kVectorBytes + uint64_t{vector->size()} * element_bytes)) {
      return false;
    }
    if (is_inline) return true;
    const uint8_t* element = vector->Data();
    for (size_t i = 0; i < vector->size(); ++i, element += element_bytes) {
      if (!TakeElement(element, is_sequence ? of : nullptr)) return false;
    }
    return true;
  }

  // A table of this type, or a string.
  bool TakeElement(const uint8_t* offset, const TypeTable* table) {
    const uint8_t* const at = Follow(offset);
    return table != nullptr
               ? TakeTable(at, *table)
               : Take(kVectorBytes +
                      reinterpret_cast<const flatbuffers::String*>(at)->size());
  }

  // An unknown member of a union is not unpacked.
  bool TakeUnion(const TypeTable& type, uint8_t member, const uint8_t* table) {
    const int64_t index =
        flatbuffers::LookupEnum(member, type.values, type.num_elems);
    if (index < 0 || static_cast<size_t>(index) >= type.num_elems) return true;
    const int of = type.type_codes[index].sequence_ref;
    return of < 0 || TakeTable(table, *type.type_refs[of]());
  }

  uint64_t left_;
};

}  // namespace

bool UnpacksWithin(const rpc::Envelope& envelope, uint64_t max_bytes) {
  return Budget(max_bytes).TakeTable(
      reinterpret_cast<const uint8_t*>(&envelope), *rpc::EnvelopeTypeTable());
}

}  // namespace tandem
