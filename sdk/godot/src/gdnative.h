// gdnative.h: the few functions of Godot 3.2's C interface that the library
// calls, and Value, an owned Variant.
//
// Data flow: Godot calls godot_gdnative_init with a table of functions; Value's
// members call them by their place in it. The places are those of core.api and
// of NATIVESCRIPT in modules/gdnative/gdnative_api.json of Godot 3.2.3
// (Debian's source package `godot`), the types those of
// modules/gdnative/include. Godot keeps both in all its versions 3. Only for
// 64-bit processes. One thread.
//
//   std::vector<Value> row = Value(argument).List();
//   Value answer = host.Call("draw", {Value(call), Value(env)});

#ifndef TANDEM_SDK_GODOT_GDNATIVE_H_
#define TANDEM_SDK_GODOT_GDNATIVE_H_

#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem_godot {

struct godot_variant {
  alignas(8) uint8_t bytes[24];
};
struct godot_extension {
  unsigned type, version[2];  // type 1: NATIVESCRIPT
  const void* next;
  void* functions[];
};
struct godot_api {
  unsigned type, version[2];
  const void* next;
  unsigned extension_count;
  const godot_extension* const* extensions;
  void* functions[];  // core.api
};
struct godot_init_options {
  uint64_t in_editor, hashes[3];
  void *reporters[2], *library;
  const godot_api* api;
};

// Set by godot_gdnative_init.
inline const godot_api* api = nullptr;

// Calls the function at this place of the table; a comment has its name.
// String, Array, Dictionary and the pool arrays are a pointer each.
template <typename Result, typename... Args>
Result Core(int at, Args... args) {
  return reinterpret_cast<Result (*)(Args...)>(api->functions[at])(args...);
}

// A Variant. Conversions follow Godot's: what cannot be converted is 0 or
// empty.
class Value {
 public:
  enum Type { kNil, kReal = 3, kString, kDictionary = 18, kBytes = 20 };

  Value() { Core<void>(/*variant_new_nil*/ 509, &raw_); }
  explicit Value(std::integral auto value) {
    Core<void>(/*variant_new_int*/ 512, &raw_, static_cast<int64_t>(value));
  }
  explicit Value(std::floating_point auto value) {
    Core<void>(/*variant_new_real*/ 513, &raw_, double{value});
  }
  explicit Value(std::string_view text) {
    void* string = NewString(text);
    Core<void>(/*variant_new_string*/ 514, &raw_, &string);
    Core<void>(/*string_destroy*/ 721, &string);
  }
  explicit Value(const char* text) : Value(std::string_view(text)) {}
  explicit Value(std::span<const uint8_t> bytes) {
    void* pool;
    Core<void>(/*pool_byte_array_new*/ 155, &pool);
    Core<void>(/*pool_byte_array_resize*/ 164, &pool,
               static_cast<int>(bytes.size()));
    void* const write = Core<void*>(/*pool_byte_array_write*/ 166, &pool);
    if (!bytes.empty())
      std::memcpy(Core<void*>(/*pool_byte_array_write_access_ptr*/ 296, write),
                  bytes.data(), bytes.size());
    Core<void>(/*pool_byte_array_write_access_destroy*/ 298, write);
    Core<void>(/*variant_new_pool_byte_array*/ 530, &raw_, &pool);
    Core<void>(/*pool_byte_array_destroy*/ 170, &pool);
  }
  explicit Value(const std::vector<Value>& list) {
    void* array;
    Core<void>(/*array_new*/ 323, &array);
    for (const Value& each : list)
      Core<void>(/*array_append*/ 336, &array, &each.raw_);
    Core<void>(/*variant_new_array*/ 529, &raw_, &array);
    Core<void>(/*array_destroy*/ 361, &array);
  }
  // A copy, of an argument of Godot's.
  explicit Value(const godot_variant* other) {
    Core<void>(/*variant_new_copy*/ 508, &raw_, other);
  }
  Value(const Value& other) : Value(&other.raw_) {}
  Value(Value&& other) noexcept : Value() { std::swap(raw_, other.raw_); }
  Value& operator=(Value other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Value() { Core<void>(/*variant_destroy*/ 570, &raw_); }

  int type() const { return Core<int>(/*variant_get_type*/ 507, &raw_); }
  int64_t Int() const { return Core<int64_t>(/*variant_as_int*/ 539, &raw_); }
  uint32_t Count() const { return static_cast<uint32_t>(Int()); }
  double Real() const { return Core<double>(/*variant_as_real*/ 540, &raw_); }
  std::string Text() const {
    if (type() != kString) return "";
    const std::vector<uint8_t> bytes = Call("to_utf8", {}).Bytes();
    return {bytes.begin(), bytes.end()};
  }
  std::vector<uint8_t> Bytes() const {
    auto* pool = Core<void*>(/*variant_as_pool_byte_array*/ 557, &raw_);
    auto* const read = Core<void*>(/*pool_byte_array_read*/ 165, &pool);
    auto* const data =
        Core<const uint8_t*>(/*pool_byte_array_read_access_ptr*/ 268, read);
    std::vector<uint8_t> bytes(
        data, data + Core<int>(/*pool_byte_array_size*/ 169, &pool));
    Core<void>(/*pool_byte_array_read_access_destroy*/ 270, read);
    Core<void>(/*pool_byte_array_destroy*/ 170, &pool);
    return bytes;
  }
  // A list of any kind.
  std::vector<Value> List() const {
    auto* array = Core<void*>(/*variant_as_array*/ 556, &raw_);
    const int size = Core<int>(/*array_size*/ 356, &array);
    std::vector<Value> list;
    list.reserve(static_cast<size_t>(size));
    for (int i = 0; i < size; ++i) {
      list.emplace_back(Core<const godot_variant*>(
          /*array_operator_index_const*/ 335, &array, i));
    }
    Core<void>(/*array_destroy*/ 361, &array);
    return list;
  }
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const Value& each : List()) texts.push_back(each.Text());
    return texts;
  }
  // A dictionary's value of a key; nil: it has none.
  Value At(const char* key) const {
    return type() == kDictionary ? Call("get", {Value(key)}) : Value();
  }
  // Calls a method, which a built-in type must have: else godot3-runner
  // crashes. nil: also if an object has none, or its script fails.
  Value Call(const char* method, std::initializer_list<Value> args) const {
    std::vector<const godot_variant*> pointers;
    for (const Value& each : args) pointers.push_back(&each.raw_);
    void* name = NewString(method);
    Value answer;
    answer.raw_ = Core<godot_variant>(
        /*variant_call*/ 564, &raw_, &name, pointers.data(),
        static_cast<int>(pointers.size()), /*error=*/nullptr);
    Core<void>(/*string_destroy*/ 721, &name);
    return answer;
  }
  // Godot's, which destroys it.
  godot_variant Release() && {
    const godot_variant released = raw_;
    Core<void>(/*variant_new_nil*/ 509, &raw_);
    return released;
  }

 private:
  static void* NewString(std::string_view text) {
    return Core<void*>(/*string_chars_to_utf8_with_len*/ 682, text.data(),
                       static_cast<int>(text.size()));
  }

  godot_variant raw_;
};

}  // namespace tandem_godot

#endif  // TANDEM_SDK_GODOT_GDNATIVE_H_
