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
// String, Array, Dictionary and the pool arrays: a pointer each.
struct godot_handle {
  void* pointer;
};
struct godot_call_error {
  int error;
  int argument;
  int expected;
};
struct godot_api {
  unsigned type;
  unsigned version[2];
  const void* next;
  unsigned extension_count;
  const godot_api* const* extensions;
  void* functions[];  // core.api
};
struct godot_extension {
  unsigned type;  // 1: NATIVESCRIPT
  unsigned version[2];
  const void* next;
  void* functions[];
};
struct godot_init_options {
  bool in_editor;
  uint64_t hashes[3];
  void* reporters[2];
  void* library;
  const godot_api* api;
};

// Set by godot_gdnative_init.
inline const godot_api* api = nullptr;

// Calls function `at` of the table.
template <typename Result, typename... Args>
Result Core(int at, Args... args) {
  return reinterpret_cast<Result (*)(Args...)>(api->functions[at])(args...);
}

// Places in the table. Of a pool array's functions, that of the first of its
// type.
enum : int {
  kRealArray = 187,
  kRealRead = 276,
  kRealWrite = 304,
  kByteArray = 155,
  kByteRead = 268,
  kByteWrite = 296,
  kArrayNew = 323,
  kArrayGet = 333,
  kArrayAppend = 336,
  kArraySize = 356,
  kArrayDestroy = 361,
  kDictionaryNew = 362,
  kDictionaryDestroy = 364,
  kDictionaryGet = 374,
  kDictionarySet = 375,
  kVariantType = 507,
  kVariantCopy = 508,
  kNewNil = 509,
  kNewBool = 510,
  kNewInt = 512,
  kNewReal = 513,
  kNewString = 514,
  kNewDictionary = 528,
  kNewArray = 529,
  kNewByteArray = 530,
  kNewRealArray = 532,
  kAsInt = 539,
  kAsReal = 540,
  kAsString = 541,
  kAsDictionary = 555,
  kAsArray = 556,
  kAsByteArray = 557,
  kAsRealArray = 559,
  kVariantCall = 564,
  kVariantDestroy = 570,
  kCharsLength = 571,
  kCharsData = 572,
  kCharsDestroy = 573,
  kStringToUtf8 = 678,
  kStringFromUtf8 = 682,
  kStringDestroy = 721,
  kPrintError = 741,
  kRegisterClass = 0,   // of NATIVESCRIPT
  kRegisterMethod = 2,  // of NATIVESCRIPT
};

// A Variant. Conversions follow Godot's: what cannot be converted is 0 or
// empty.
class Value {
 public:
  enum Type { kNil = 0, kString = 4, kBytes = 20 };

  Value() { Core<void>(kNewNil, &raw_); }
  explicit Value(bool value) { Core<void>(kNewBool, &raw_, value); }
  explicit Value(int64_t value) { Core<void>(kNewInt, &raw_, value); }
  explicit Value(uint32_t value) : Value(int64_t{value}) {}
  explicit Value(double value) { Core<void>(kNewReal, &raw_, value); }
  explicit Value(const std::string& text) {
    auto string = Core<godot_handle>(kStringFromUtf8, text.data(),
                                     static_cast<int>(text.size()));
    Core<void>(kNewString, &raw_, &string);
    Core<void>(kStringDestroy, &string);
  }
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(std::span<const float> row) {
    MakePool<float>(kRealArray, kRealWrite, kNewRealArray, row);
  }
  explicit Value(std::span<const uint8_t> bytes) {
    MakePool<uint8_t>(kByteArray, kByteWrite, kNewByteArray, bytes);
  }
  explicit Value(const std::vector<Value>& list) {
    godot_handle array;
    Core<void>(kArrayNew, &array);
    for (const Value& each : list) Core<void>(kArrayAppend, &array, &each.raw_);
    Core<void>(kNewArray, &raw_, &array);
    Core<void>(kArrayDestroy, &array);
  }
  explicit Value(const std::vector<std::pair<std::string, Value>>& members) {
    godot_handle map;
    Core<void>(kDictionaryNew, &map);
    for (const auto& [name, value] : members) {
      const Value key(name);
      Core<void>(kDictionarySet, &map, &key.raw_, &value.raw_);
    }
    Core<void>(kNewDictionary, &raw_, &map);
    Core<void>(kDictionaryDestroy, &map);
  }
  // A copy, of an argument of Godot's.
  explicit Value(const godot_variant* other) {
    Core<void>(kVariantCopy, &raw_, other);
  }
  Value(const Value& other) : Value(&other.raw_) {}
  Value(Value&& other) noexcept : Value() { std::swap(raw_, other.raw_); }
  Value& operator=(Value other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Value() { Core<void>(kVariantDestroy, &raw_); }

  int type() const { return Core<int>(kVariantType, &raw_); }
  int64_t Int() const { return Core<int64_t>(kAsInt, &raw_); }
  uint32_t Count() const { return static_cast<uint32_t>(Int()); }
  double Real() const { return Core<double>(kAsReal, &raw_); }
  std::string Text() const {
    auto string = Core<godot_handle>(kAsString, &raw_);
    auto chars = Core<godot_handle>(kStringToUtf8, &string);
    std::string text(Core<const char*>(kCharsData, &chars),
                     static_cast<size_t>(Core<int>(kCharsLength, &chars)));
    Core<void>(kCharsDestroy, &chars);
    Core<void>(kStringDestroy, &string);
    return text;
  }
  // A list of any kind, as numbers.
  std::vector<float> Floats() const {
    return ReadPool<float>(kAsRealArray, kRealArray, kRealRead);
  }
  std::vector<uint8_t> Bytes() const {
    return ReadPool<uint8_t>(kAsByteArray, kByteArray, kByteRead);
  }
  std::vector<Value> List() const {
    auto array = Core<godot_handle>(kAsArray, &raw_);
    std::vector<Value> list;
    for (int i = 0; i < Core<int>(kArraySize, &array); ++i) {
      list.push_back(Own(Core<godot_variant>(kArrayGet, &array, i)));
    }
    Core<void>(kArrayDestroy, &array);
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
    auto map = Core<godot_handle>(kAsDictionary, &raw_);
    Value value = Own(Core<godot_variant>(kDictionaryGet, &map, &name.raw_));
    Core<void>(kDictionaryDestroy, &map);
    return value;
  }
  // Calls an object's method. nil: also if it has none, or its script fails.
  Value Call(const char* method, std::initializer_list<Value> args) {
    std::vector<const godot_variant*> pointers;
    for (const Value& each : args) pointers.push_back(&each.raw_);
    auto name = Core<godot_handle>(kStringFromUtf8, method,
                                   static_cast<int>(std::strlen(method)));
    godot_call_error error = {};
    Value answer =
        Own(Core<godot_variant>(kVariantCall, &raw_, &name, pointers.data(),
                                static_cast<int>(pointers.size()), &error));
    Core<void>(kStringDestroy, &name);
    return answer;
  }
  // Godot's, which destroys it.
  godot_variant Release() && {
    const godot_variant released = raw_;
    Core<void>(kNewNil, &raw_);
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
    godot_handle array;
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
    auto array = Core<godot_handle>(as, &raw_);
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
