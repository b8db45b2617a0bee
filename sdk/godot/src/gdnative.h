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
//   std::vector<float> row = Value(argument).Floats();
//   Value answer = host.Call("draw", {Value(call), Value(env)});

#ifndef TANDEM_SDK_GODOT_GDNATIVE_H_
#define TANDEM_SDK_GODOT_GDNATIVE_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
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
  enum Type { kNil = 0, kString = 4, kBytes = 20 };

  Value() { Core<void>(/*variant_new_nil*/ 509, &raw_); }
  explicit Value(bool value) {
    Core<void>(/*variant_new_bool*/ 510, &raw_, value);
  }
  explicit Value(int64_t value) {
    Core<void>(/*variant_new_int*/ 512, &raw_, value);
  }
  explicit Value(uint32_t value) : Value(int64_t{value}) {}
  explicit Value(double value) {
    Core<void>(/*variant_new_real*/ 513, &raw_, value);
  }
  explicit Value(const std::string& text) {
    auto* string = Core<void*>(/*string_chars_to_utf8_with_len*/ 682,
                               text.data(), static_cast<int>(text.size()));
    Core<void>(/*variant_new_string*/ 514, &raw_, &string);
    Core<void>(/*string_destroy*/ 721, &string);
  }
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(std::span<const float> row) {
    MakePool<float>(187, 304, 532, row);
  }
  explicit Value(std::span<const uint8_t> bytes) {
    MakePool<uint8_t>(155, 296, 530, bytes);
  }
  explicit Value(const std::vector<Value>& list) {
    void* array;
    Core<void>(/*array_new*/ 323, &array);
    for (const Value& each : list)
      Core<void>(/*array_append*/ 336, &array, &each.raw_);
    Core<void>(/*variant_new_array*/ 529, &raw_, &array);
    Core<void>(/*array_destroy*/ 361, &array);
  }
  explicit Value(const std::vector<std::pair<std::string, Value>>& members) {
    void* map;
    Core<void>(/*dictionary_new*/ 362, &map);
    for (const auto& [name, value] : members) {
      const Value key(name);
      Core<void>(/*dictionary_set*/ 375, &map, &key.raw_, &value.raw_);
    }
    Core<void>(/*variant_new_dictionary*/ 528, &raw_, &map);
    Core<void>(/*dictionary_destroy*/ 364, &map);
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
    auto* string = Core<void*>(/*variant_as_string*/ 541, &raw_);
    auto* chars = Core<void*>(/*string_utf8*/ 678, &string);
    std::string text(
        Core<const char*>(/*char_string_get_data*/ 572, &chars),
        static_cast<size_t>(Core<int>(/*char_string_length*/ 571, &chars)));
    Core<void>(/*char_string_destroy*/ 573, &chars);
    Core<void>(/*string_destroy*/ 721, &string);
    return text;
  }
  // A list of any kind, as numbers.
  std::vector<float> Floats() const { return ReadPool<float>(559, 187, 276); }
  std::vector<uint8_t> Bytes() const {
    return ReadPool<uint8_t>(557, 155, 268);
  }
  std::vector<Value> List() const {
    auto* array = Core<void*>(/*variant_as_array*/ 556, &raw_);
    std::vector<Value> list;
    for (int i = 0; i < Core<int>(/*array_size*/ 356, &array); ++i) {
      list.push_back(Own(Core<godot_variant>(/*array_get*/ 333, &array, i)));
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
    const Value name(key);
    auto* map = Core<void*>(/*variant_as_dictionary*/ 555, &raw_);
    Value value =
        Own(Core<godot_variant>(/*dictionary_get*/ 374, &map, &name.raw_));
    Core<void>(/*dictionary_destroy*/ 364, &map);
    return value;
  }
  // Calls an object's method. nil: also if it has none, or its script fails.
  Value Call(const char* method, std::initializer_list<Value> args) {
    std::vector<const godot_variant*> pointers;
    for (const Value& each : args) pointers.push_back(&each.raw_);
    auto* name = Core<void*>(/*string_chars_to_utf8_with_len*/ 682, method,
                             static_cast<int>(std::strlen(method)));
    int error[3] = {};
    Value answer = Own(
        Core<godot_variant>(/*variant_call*/ 564, &raw_, &name, pointers.data(),
                            static_cast<int>(pointers.size()), error));
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
  static Value Own(const godot_variant& raw) {
    Value value;
    value.raw_ = raw;
    return value;
  }
  // A pool array's functions stand in one order for each type: new, and 9, 10,
  // 11, 14 and 15 places later resize, read, write, size and destroy; an
  // access has ptr, and 2 places later destroy.
  template <typename T>
  void MakePool(int pool, int access, int make, std::span<const T> data) {
    void* array;
    Core<void>(pool, &array);
    Core<void>(pool + 9, &array, static_cast<int>(data.size()));
    if (!data.empty()) {
      void* const write = Core<void*>(pool + 11, &array);
      std::memcpy(Core<T*>(access, write), data.data(), data.size_bytes());
      Core<void>(access + 2, write);
    }
    Core<void>(make, &raw_, &array);
    Core<void>(pool + 15, &array);
  }
  template <typename T>
  std::vector<T> ReadPool(int as, int pool, int access) const {
    auto* array = Core<void*>(as, &raw_);
    std::vector<T> data(static_cast<size_t>(Core<int>(pool + 14, &array)));
    if (!data.empty()) {
      void* const read = Core<void*>(pool + 10, &array);
      std::memcpy(data.data(), Core<const T*>(access, read),
                  data.size() * sizeof(T));
      Core<void>(access + 2, read);
    }
    Core<void>(pool + 15, &array);
    return data;
  }

  godot_variant raw_;
};

}  // namespace tandem_godot

#endif  // TANDEM_SDK_GODOT_GDNATIVE_H_
