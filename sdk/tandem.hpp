// tandem.hpp: tandem.h for C++20. Handles are objects that close themselves,
// arrays are spans, and errors are exceptions.
//
// Data flow: as in tandem.h, whose texts hold here too. Header-only.
//
//   tandem::Client client("demo");
//   std::span<float> actions = client.Array<float>("actions");
//   client.Step();
//
// An engine derives from tandem::Server, and its main calls Serve:
//
//   int main(int argc, char** argv) { return MyEngine().Serve(argc, argv); }

#ifndef TANDEM_HPP_
#define TANDEM_HPP_

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "tandem.h"

namespace tandem {

// A failed call: its number, and the text of tandem_last_error.
class Error : public std::runtime_error {
 public:
  Error(tandem_code code, const std::string& text)
      : std::runtime_error(text), code_(code) {}
  tandem_code code() const { return code_; }

 private:
  tandem_code code_;
};

inline std::string LastError() {
  std::string text(tandem_last_error(nullptr, 0), '\0');
  tandem_last_error(text.data(), text.size() + 1);
  return text;
}

// Throws Error if the code is one.
inline void Check(tandem_code code) {
  if (code == TANDEM_OK) return;
  throw Error(code, std::string(tandem_code_name(code)) + ": " + LastError());
}

// The dtype of T; 0: none.
template <typename T>
constexpr uint32_t TypeOf() {
  if constexpr (std::is_same_v<T, float>) return TANDEM_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return TANDEM_FLOAT64;
  if constexpr (std::is_same_v<T, uint8_t>) return TANDEM_UINT8;
  if constexpr (std::is_same_v<T, int8_t>) return TANDEM_INT8;
  if constexpr (std::is_same_v<T, uint16_t>) return TANDEM_UINT16;
  if constexpr (std::is_same_v<T, int16_t>) return TANDEM_INT16;
  if constexpr (std::is_same_v<T, uint32_t>) return TANDEM_UINT32;
  if constexpr (std::is_same_v<T, int32_t>) return TANDEM_INT32;
  if constexpr (std::is_same_v<T, uint64_t>) return TANDEM_UINT64;
  if constexpr (std::is_same_v<T, int64_t>) return TANDEM_INT64;
  return 0;
}
template <typename T>
inline constexpr uint32_t kTypeOf = TypeOf<T>();

// Whether T reads elements of this dtype. uint8_t reads TANDEM_BOOL, too, and
// uint16_t the bits of TANDEM_FLOAT16.
template <typename T>
constexpr bool Reads(uint32_t dtype) {
  return dtype == kTypeOf<T> ||
         (dtype == TANDEM_BOOL && std::is_same_v<T, uint8_t>) ||
         (dtype == TANDEM_FLOAT16 && std::is_same_v<T, uint16_t>);
}

// Returns the elements of all environments. Throws Error(
// TANDEM_INVALID_ARGUMENT) if T is not the array's type.
template <typename T>
std::span<T> Elements(const tandem_array& array, void* data) {
  static_assert(kTypeOf<T> != 0);
  if (!Reads<T>(array.dtype)) {
    throw Error(TANDEM_INVALID_ARGUMENT,
                "InvalidArgument: expected the array's own element type");
  }
  return {static_cast<T*>(data), array.bytes / sizeof(T)};
}

// The bytes of an Envelope, owned.
class Message {
 public:
  Message() = default;
  Message(uint8_t* data, uint64_t size) : data_(data), size_(size) {}
  std::span<const uint8_t> bytes() const { return {data_.get(), size_}; }
  // False: the stream has ended.
  explicit operator bool() const { return data_ != nullptr; }

 private:
  struct Free {
    void operator()(uint8_t* data) const { tandem_free(data); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  uint64_t size_ = 0;
};

// The RPCs of a client or an attendant, which must outlive it. Any thread.
class Rpc {
 public:
  explicit Rpc(tandem_rpc* rpc) : rpc_(rpc) {}

  Message Call(std::span<const uint8_t> envelope,
               double timeout_secs = 10) const {
    uint8_t* answer = nullptr;
    uint64_t size = 0;
    Check(tandem_rpc_call(rpc_, envelope.data(), envelope.size(), timeout_secs,
                          &answer, &size));
    return {answer, size};
  }
  uint64_t Open(std::span<const uint8_t> envelope) const {
    uint64_t stream = 0;
    Check(tandem_rpc_open(rpc_, envelope.data(), envelope.size(), &stream));
    return stream;
  }
  Message Next(uint64_t stream, double timeout_secs = 10) const {
    uint8_t* item = nullptr;
    uint64_t size = 0;
    Check(tandem_rpc_next(rpc_, stream, timeout_secs, &item, &size));
    return {item, size};
  }
  void Close(uint64_t stream) const { Check(tandem_rpc_close(rpc_, stream)); }

 private:
  tandem_rpc* rpc_;
};

class Client {
 public:
  explicit Client(const std::string& name, double timeout_secs = 10,
                  uint32_t autoreset = TANDEM_AUTORESET_SAME_STEP) {
    tandem_client_options options = {};
    options.struct_size = sizeof(options);
    options.name = name.c_str();
    options.timeout_secs = timeout_secs;
    options.autoreset = autoreset;
    tandem_client* client = nullptr;
    Check(tandem_client_attach(&options, &client));
    client_.reset(client);
  }

  // Valid until Reconnect, or the client's end.
  template <typename T>
  std::span<T> Array(const char* name) const {
    const tandem_array array = Describe(name);
    return Elements<T>(array, array.data);
  }
  tandem_array Describe(const char* name) const {
    tandem_array array = {};
    array.struct_size = sizeof(array);
    Check(tandem_client_array(client_.get(), name, &array));
    return array;
  }

  // With the actions in the array "actions".
  void Step(double timeout_secs = 10) {
    Check(tandem_client_step(client_.get(), nullptr, 0, timeout_secs));
  }
  void Step(std::span<const float> actions, double timeout_secs = 10) {
    // NULL stands for the array "actions": not meant by an empty span.
    static const float kNone = 0;
    Check(tandem_client_step(client_.get(),
                             actions.empty() ? &kNone : actions.data(),
                             actions.size(), timeout_secs));
  }
  void Send() { Check(tandem_client_send(client_.get(), nullptr, 0)); }
  void SendReset(std::span<const tandem_reset> resets) {
    Check(tandem_client_send_reset(client_.get(), resets.data(),
                                   static_cast<uint32_t>(resets.size())));
  }
  void Recv(double timeout_secs = 10) {
    Check(tandem_client_recv(client_.get(), timeout_secs));
  }
  void Reconnect(double timeout_secs = 10) {
    Check(tandem_client_reconnect(client_.get(), timeout_secs));
  }
  Rpc rpc() const { return Rpc(tandem_client_rpc(client_.get())); }

 private:
  struct Close {
    void operator()(tandem_client* client) const { tandem_client_close(client); }
  };
  std::unique_ptr<tandem_client, Close> client_;
};

class Attendant {
 public:
  explicit Attendant(const std::string& name, const std::string& label,
                     double timeout_secs = 10) {
    tandem_attendant_options options = {};
    options.struct_size = sizeof(options);
    options.name = name.c_str();
    options.label = label.c_str();
    options.timeout_secs = timeout_secs;
    tandem_attendant* attendant = nullptr;
    Check(tandem_attendant_attach(&options, &attendant));
    attendant_.reset(attendant);
  }
  Rpc rpc() const { return Rpc(tandem_attendant_rpc(attendant_.get())); }

 private:
  struct Close {
    void operator()(tandem_attendant* attendant) const {
      tandem_attendant_close(attendant);
    }
  };
  std::unique_ptr<tandem_attendant, Close> attendant_;
};

// A RESET or STEP, with the arrays of this work.
class Work {
 public:
  explicit Work(const tandem_work& work, const tandem_engine_options& sizes)
      : work_(work), sizes_(sizes) {}

  std::span<const tandem_reset> resets() const {
    return {work_.resets, work_.resets == nullptr ? 0 : work_.count};
  }
  std::span<const uint32_t> envs() const {
    return {work_.envs, work_.envs == nullptr ? 0 : work_.count};
  }
  // The row of one environment.
  std::span<float> obs(uint32_t env) const {
    return Row<float>(0, env, sizes_.obs_size);
  }
  std::span<const float> actions(uint32_t env) const {
    return Row<float>(1, env, sizes_.act_size);
  }
  float& reward(uint32_t env) const { return Row<float>(2, env, 1)[0]; }
  uint8_t& terminated(uint32_t env) const { return Row<uint8_t>(3, env, 1)[0]; }
  uint8_t& truncated(uint32_t env) const { return Row<uint8_t>(4, env, 1)[0]; }
  const tandem_work& raw() const { return work_; }

 private:
  template <typename T>
  std::span<T> Row(size_t array, uint32_t env, uint32_t size) const {
    return {static_cast<T*>(work_.data[array]) + size_t{env} * size, size};
  }
  const tandem_work& work_;
  const tandem_engine_options& sizes_;
};

// The engine of a Server, in its Loop.
class Engine {
 public:
  explicit Engine(tandem_engine* engine) : engine_(engine) {}
  bool stopping() const { return tandem_engine_stopping(engine_) != 0; }
  // Serves by Reset, Step, Call and Clear until it is stopped.
  void Run() const { Check(tandem_engine_run(engine_)); }
  // Serves one piece of pending work; false: there was none.
  bool Poll() const {
    int32_t served = 0;
    Check(tandem_engine_poll(engine_, &served));
    return served != 0;
  }
  // The next work, of kind TANDEM_WORK_NONE if there is none in time.
  tandem_work Next(double timeout_secs = 0) const {
    tandem_work work = {};
    work.struct_size = sizeof(work);
    Check(tandem_engine_next(engine_, timeout_secs, &work));
    return work;
  }
  void Done(const char* failure = nullptr) const {
    Check(tandem_engine_done(engine_, failure));
  }
  // Calls `work`, which does the RESET or STEP that Next returned; then Done. An
  // exception of it fails the exchange, with its text.
  template <typename Call>
  void DoneAfter(const Call& work) const {
    std::string failure;
    try {
      work();
      return Done();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    Done(failure.c_str());
  }
  tandem_engine* raw() const { return engine_; }

 private:
  tandem_engine* engine_;
};

// An engine server. An exception of Reset or Step fails the exchange, with its
// text.
class Server {
 public:
  virtual ~Server() = default;

  // Sets obs_size, act_size and what else tandem_server.prepare may set. The
  // flags have their values. An exception ends the server with its text.
  virtual void Prepare(tandem_engine_options* options) = 0;
  virtual void Reset(const Work& work) = 0;
  virtual void Step(const Work& work) = 0;
  // Answers an RPC of the methods of the options, by tandem_engine_answer.
  virtual void Call(const tandem_work&) {}
  // Undoes what the last client's RPCs have changed.
  virtual void Clear() {}
  // Serves until engine.stopping(). An engine with a loop of its own takes its
  // work here by Next, passes it to Do when it is time, and calls Done.
  virtual void Loop(const Engine& engine) { engine.Run(); }
  void Do(const tandem_work& work) {
    switch (work.kind) {
      case TANDEM_WORK_RESET:
        return Reset(Work(work, options_));
      case TANDEM_WORK_STEP:
        return Step(Work(work, options_));
      case TANDEM_WORK_CALL:
        return Call(work);
      case TANDEM_WORK_CLEAR:
        return Clear();
      default:
        return;
    }
  }

  // Adds a flag; call it before Serve. `value` has the default.
  void AddFlag(const char* name, const char* help, double* value) {
    flags_.push_back({name, help, value});
  }
  int Serve(int argc, char** argv, const char* usage = "") {
    tandem_server server = {};
    server.struct_size = sizeof(server);
    server.flags = flags_.data();
    server.flag_count = static_cast<uint32_t>(flags_.size());
    server.usage = usage;
    server.user = this;
    server.prepare = &PrepareCalled;
    server.work = &WorkCalled;
    server.loop = &LoopCalled;
    const int code = tandem_serve(argc, argv, &server);
    if (code != 0 || error_.empty()) return code;
    std::fprintf(stderr, "the engine's loop ended: %s\n", error_.c_str());
    return 1;
  }

 protected:
  // In Reset, Step and Call.
  tandem_engine* engine() const { return engine_; }
  const tandem_engine_options& options() const { return options_; }

 private:
  static const char* PrepareCalled(void* user, tandem_engine_options* options) {
    auto* const self = static_cast<Server*>(user);
    try {
      self->Prepare(options);
      self->options_ = *options;
      return nullptr;
    } catch (const std::exception& error) {
      self->error_ = error.what();
    } catch (...) {
      self->error_ = "Prepare threw an object that is no std::exception";
    }
    return self->error_.c_str();
  }
  static int32_t WorkCalled(void* user, const tandem_work* work) {
    auto* const self = static_cast<Server*>(user);
    try {
      self->Do(*work);
      return 0;
    } catch (const std::exception& error) {
      tandem_engine_fail(self->engine_, error.what());
    } catch (...) {
      tandem_engine_fail(self->engine_, "an object that is no std::exception");
    }
    return 1;
  }
  static void LoopCalled(void* user, tandem_engine* engine) {
    auto* const self = static_cast<Server*>(user);
    self->engine_ = engine;
    try {
      self->Loop(Engine(engine));
    } catch (const std::exception& error) {
      self->error_ = error.what();
    } catch (...) {
      self->error_ = "Loop threw an object that is no std::exception";
    }
  }

  std::vector<tandem_flag> flags_;
  tandem_engine_options options_ = {};
  tandem_engine* engine_ = nullptr;
  std::string error_;
};

}  // namespace tandem

#endif  // TANDEM_HPP_
