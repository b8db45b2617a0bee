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

// GCC 10 calls its C++20 201709.
#if __cplusplus <= 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG <= 201703L)
#error "tandem.hpp needs C++20: compile with -std=c++20, or include tandem.h"
#endif

#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
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

namespace internal {

// What a call throws.
struct Failure {
  tandem_code code = TANDEM_OK;  // an Error's; else TANDEM_ENGINE_FAILED
  std::string text = "";         // "": it throws nothing
};
template <typename Call>
Failure FailureOf(const Call& call) {
  const auto of = [](tandem_code code, const char* text) {
    return Failure{code, *text == 0 ? "an exception without a text" : text};
  };
  try {
    call();
    return {};
  } catch (const Error& error) {
    return of(error.code() > TANDEM_OK ? error.code() : TANDEM_ENGINE_FAILED,
              error.what());
  } catch (const std::exception& error) {
    return of(TANDEM_ENGINE_FAILED, error.what());
  } catch (...) {
    return of(TANDEM_ENGINE_FAILED, "an object that is no std::exception");
  }
}

}  // namespace internal

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
  // A method of the engine's own. The answer is its bytes, no Envelope.
  Message CallOwn(const char* name, std::span<const uint8_t> request,
                  double timeout_secs = 10) const {
    uint8_t* answer = nullptr;
    uint64_t size = 0;
    Check(tandem_rpc_call_own(rpc_, name, request.data(), request.size(),
                              timeout_secs, &answer, &size));
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
    void operator()(tandem_client* client) const {
      tandem_client_close(client);
    }
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
  // The row of any array, such as a field, "infos" or "images", as
  // Server::Array describes it. Empty if the array is not part of this work.
  template <typename T>
  std::span<T> row(const tandem_array& array, uint32_t env) const {
    void* const data = work_.data[array.index];
    if (data == nullptr) return {};
    const std::span<T> all = Elements<T>(array, data);
    const size_t size = all.size() / array.shape[0];
    return all.subspan(env * size, size);
  }
  // The contract of resets()[i]; nullptr: it has none.
  const tandem_contract* contract(size_t i) const {
    return work_.contracts == nullptr ? nullptr : work_.contracts[i];
  }
  const tandem_work& raw() const { return work_; }

 private:
  template <typename T>
  std::span<T> Row(size_t array, uint32_t env, uint32_t size) const {
    return {static_cast<T*>(work_.data[array]) + size_t{env} * size, size};
  }
  const tandem_work& work_;
  const tandem_engine_options& sizes_;
};

// The numbers of a contract's field; empty: the contract does not have it.
inline std::span<const float> Range(const tandem_contract* contract,
                                    std::string_view name) {
  for (uint32_t i = 0; contract != nullptr && i < contract->range_count; ++i) {
    const tandem_range& range = contract->ranges[i];
    if (range.name == name) return {range.values, range.count};
  }
  return {};
}

// What an engine has besides steps: tandem_services, with owned lists. The
// functions are those of the Server.
struct Services {
  struct Entity {
    std::string name;
    std::string components = {};
  };
  struct Actuator {
    std::string name;
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
  };
  struct Method {
    std::string name;
    std::string content_type = "application/octet-stream";
    std::string help = {};
  };

  std::string scene_name = {};
  std::vector<Entity> entities = {};
  bool movable = false;  // Server::Move moves entities
  std::vector<std::string> joint_names = {};
  std::vector<std::string> position_names = {};  // empty: joint_names
  uint32_t velocity_count = 0;
  std::vector<Actuator> actuators = {};
  bool settable = false;  // Server::SetControl sets actuators
  bool shows_marks = false;
  std::vector<std::string> cameras = {};
  std::vector<std::string> viewports = {};
  uint32_t image_width = 0;
  uint32_t image_height = 0;
  bool draws_frames = false;
  std::vector<std::string> contract_fields = {};
  std::vector<Method> own_methods = {};
  bool has_scene = false;   // Server::Scene and Poses
  bool has_states = false;  // Server::SaveState and LoadState
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
  // Viewers get the new scene of Server::Scene. Any thread.
  void SceneChanged() const { Check(tandem_engine_scene_changed(engine_)); }
  // Calls `work`, which does the RESET or STEP that Next returned; then Done.
  // An exception of it fails the exchange, with its text.
  template <typename Call>
  void DoneAfter(const Call& work) const {
    const std::string failure = internal::FailureOf(work).text;
    Done(failure.empty() ? nullptr : failure.c_str());
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

  // For `services`, which Prepare fills. An exception of a function or of Call
  // fails the call, with its text, in a loop of one's own, too.

  // Returns the answer of a method of the engine's own.
  virtual std::vector<uint8_t> CallOwn(std::string_view /*method*/,
                                       std::span<const uint8_t> /*request*/) {
    return {};
  }
  // Draws the image, and answers by Drawn: now, or later by any thread.
  virtual void Draw(uint64_t call, const tandem_draw& /*draw*/) {
    Refuse(call, TANDEM_UNSUPPORTED, "this engine does not draw");
  }
  virtual void Transform(uint32_t /*env*/, uint32_t /*entity*/,
                         tandem_transform* /*transform*/) {}
  virtual void Move(uint32_t /*env*/, uint32_t /*entity*/,
                    const tandem_transform& /*transform*/) {}
  virtual void Joints(uint32_t /*env*/, std::span<float> /*positions*/,
                      std::span<float> /*velocities*/) {}
  virtual void Controls(uint32_t /*env*/, std::span<float> /*controls*/) {}
  virtual void SetControl(uint32_t /*env*/, uint32_t /*actuator*/,
                          float /*value*/) {}
  virtual void ShowMarks(uint32_t /*env*/,
                         std::span<const tandem_mark> /*marks*/) {}
  // The file of the live scene (.glb). Valid until the next call.
  virtual std::span<const uint8_t> Scene() { return {}; }
  // Seven numbers for each node that moves, as tandem_services.poses.
  virtual void Poses(uint32_t /*env*/, std::span<float> /*poses*/) {}
  // All that decides the environment's future, but its rows and contract.
  virtual std::vector<uint8_t> SaveState(uint32_t /*env*/) { return {}; }
  // Puts bytes of SaveState in place, instead of a Reset of this environment.
  virtual void LoadState(uint32_t /*env*/, std::span<const uint8_t> /*state*/) {
  }
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
        return RefuseIfThrown(work.call, [&] {
          work.name == nullptr ? Call(work) : AnswerOwn(work);
        });
      case TANDEM_WORK_DRAW:
        return RefuseIfThrown(work.call, [&] { Draw(work.call, *work.draw); });
      case TANDEM_WORK_CLEAR: {
        const std::string failure =
            internal::FailureOf([&] { Clear(); }).text;
        if (!failure.empty()) {
          std::fprintf(stderr, "Clear failed: %s\n", failure.c_str());
        }
        return;
      }
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
  // An array by its name, for Work::row. In Reset, Step and Call.
  tandem_array Array(const char* name) const {
    tandem_array array = {};
    array.struct_size = sizeof(array);
    Check(tandem_engine_array(engine_, name, &array));
    return array;
  }
  // Answers a Draw with an RGB image, [height, width, 3], the top row first.
  // Any thread. The image of a draw whose time is over is dropped.
  // std::invalid_argument: another size.
  void Drawn(uint64_t call, const tandem_draw& draw,
             std::span<const uint8_t> rgb) const {
    const size_t bytes = size_t{3} * draw.width * draw.height;
    if (rgb.size() != bytes) {
      throw std::invalid_argument("Drawn: expected " + std::to_string(bytes) +
                                  " bytes, found " +
                                  std::to_string(rgb.size()));
    }
    tandem_image image = {};
    image.struct_size = sizeof(image);
    image.format = TANDEM_RGB8;
    image.width = draw.width;
    image.height = draw.height;
    image.data = rgb.data();
    Drawn(call, image);
  }
  void Drawn(uint64_t call, const tandem_image& image) const {
    CheckAnswer(tandem_engine_drawn(engine_, call, &image));
  }
  // Answers a Call with an error; a Draw, by any thread.
  void Refuse(uint64_t call, tandem_code code, const char* text) const {
    CheckAnswer(tandem_engine_refuse(engine_, call, code, text));
  }

  Services services;

 private:
  void AnswerOwn(const tandem_work& work) {
    const std::vector<uint8_t> answer =
        CallOwn(work.name, {work.envelope, work.envelope_size});
    static const uint8_t kNone = 0;  // an empty vector may have no address
    CheckAnswer(tandem_engine_answer(engine_, work.call,
                                     answer.empty() ? &kNone : answer.data(),
                                     answer.size()));
  }
  // The caller may have left, or its patience may be over.
  static void CheckAnswer(tandem_code code) {
    if (code != TANDEM_NO_STEP_PENDING) Check(code);
  }
  template <typename Answer>
  void RefuseIfThrown(uint64_t call, const Answer& answer) const {
    const internal::Failure failure = internal::FailureOf(answer);
    if (!failure.text.empty()) {
      Refuse(call, failure.code, failure.text.c_str());
    }
  }
  // Calls `call` for a function of tandem_services.
  template <typename Call>
  static int32_t Called(void* user, const Call& call) {
    auto* const self = static_cast<Server*>(user);
    const std::string failure = internal::FailureOf([&] { call(self); }).text;
    if (failure.empty()) return 0;
    tandem_engine_fail(self->engine_, failure.c_str());
    return 1;
  }
  static std::vector<const char*> Texts(const std::vector<std::string>& texts) {
    std::vector<const char*> pointers;
    for (const std::string& text : texts) pointers.push_back(text.c_str());
    return pointers;
  }
  // Gives `services` to the options. The lists live until the library has
  // copied them.
  void GiveServices(tandem_engine_options* options) {
    lists_ = {};
    for (const Services::Entity& each : services.entities) {
      lists_.entities.push_back({each.name.c_str(), each.components.c_str()});
    }
    for (const Services::Actuator& each : services.actuators) {
      lists_.actuators.push_back({each.name.c_str(), each.low, each.high});
    }
    for (const Services::Method& each : services.own_methods) {
      lists_.methods.push_back(
          {each.name.c_str(), each.content_type.c_str(), each.help.c_str()});
    }
    lists_.joints = Texts(services.joint_names);
    lists_.positions = Texts(services.position_names);
    lists_.cameras = Texts(services.cameras);
    lists_.viewports = Texts(services.viewports);
    lists_.fields = Texts(services.contract_fields);
    const auto count = [](const auto& list) {
      return static_cast<uint32_t>(list.size());
    };
    tandem_services& given = lists_.services;
    given.struct_size = sizeof(given);
    given.user = this;
    if (!services.scene_name.empty()) {
      given.scene_name = services.scene_name.c_str();
    }
    given.entities = lists_.entities.data();
    given.entity_count = count(lists_.entities);
    given.transform = [](void* user, uint32_t env, uint32_t entity,
                         tandem_transform* transform) {
      return Called(
          user, [&](Server* self) { self->Transform(env, entity, transform); });
    };
    if (services.movable) {
      given.move = [](void* user, uint32_t env, uint32_t entity,
                      const tandem_transform* transform) {
        return Called(
            user, [&](Server* self) { self->Move(env, entity, *transform); });
      };
    }
    given.joint_names = lists_.joints.data();
    given.joint_count = count(lists_.joints);
    given.position_count =
        count(lists_.positions.empty() ? lists_.joints : lists_.positions);
    if (!lists_.positions.empty()) {
      given.position_names = lists_.positions.data();
    }
    given.velocity_count = services.velocity_count;
    given.actuators = lists_.actuators.data();
    given.actuator_count = count(lists_.actuators);
    if (given.position_count > 0) {
      given.joints = [](void* user, uint32_t env, float* positions,
                        float* velocities) {
        return Called(user, [&](Server* self) {
          const tandem_services& sizes = self->lists_.services;
          self->Joints(env, {positions, sizes.position_count},
                       {velocities, sizes.velocity_count});
        });
      };
      given.controls = [](void* user, uint32_t env, float* controls) {
        return Called(user, [&](Server* self) {
          self->Controls(env, {controls, self->lists_.services.actuator_count});
        });
      };
    }
    if (services.settable) {
      given.set_control = [](void* user, uint32_t env, uint32_t actuator,
                             float value) {
        return Called(user, [&](Server* self) {
          self->SetControl(env, actuator, value);
        });
      };
    }
    if (services.shows_marks) {
      given.show_marks = [](void* user, uint32_t env, const tandem_mark* marks,
                            uint32_t size) {
        return Called(user, [&](Server* self) {
          self->ShowMarks(env, {marks, size});
        });
      };
    }
    given.cameras = lists_.cameras.data();
    given.camera_count = count(lists_.cameras);
    given.viewports = lists_.viewports.data();
    given.viewport_count = count(lists_.viewports);
    given.image_width = services.image_width;
    given.image_height = services.image_height;
    given.draws_frames = services.draws_frames ? 1 : 0;
    given.contract_fields = lists_.fields.data();
    given.contract_field_count = count(lists_.fields);
    given.own_methods = lists_.methods.data();
    given.own_method_count = count(lists_.methods);
    if (services.has_scene) {
      given.scene = [](void* user, const uint8_t** glb, uint64_t* bytes) {
        return Called(user, [&](Server* self) {
          const std::span<const uint8_t> scene = self->Scene();
          *glb = scene.data();
          *bytes = scene.size();
        });
      };
      given.poses = [](void* user, uint32_t env, float* poses, uint32_t nodes) {
        return Called(user, [&](Server* self) {
          self->Poses(env, {poses, size_t{7} * nodes});
        });
      };
    }
    if (services.has_states) {
      given.save_state = [](void* user, uint32_t env, const uint8_t** state,
                            uint64_t* bytes) {
        return Called(user, [&](Server* self) {
          self->state_ = self->SaveState(env);
          *state = self->state_.data();
          *bytes = self->state_.size();
        });
      };
      given.load_state = [](void* user, uint32_t env, const uint8_t* state,
                            uint64_t bytes) {
        return Called(
            user, [&](Server* self) { self->LoadState(env, {state, bytes}); });
      };
    }
    options->services = &given;
  }
  static const char* PrepareCalled(void* user, tandem_engine_options* options) {
    auto* const self = static_cast<Server*>(user);
    try {
      self->Prepare(options);
      self->GiveServices(options);
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
    return Called(user, [&](Server* self) { self->Do(*work); });
  }
  static void LoopCalled(void* user, tandem_engine* engine) {
    auto* const self = static_cast<Server*>(user);
    self->engine_ = engine;
    self->error_ =
        internal::FailureOf([&] { self->Loop(Engine(engine)); }).text;
  }

  // The lists of `services` as C has them.
  struct Lists {
    std::vector<tandem_entity> entities;
    std::vector<tandem_actuator> actuators;
    std::vector<tandem_method> methods;
    std::vector<const char*> joints, positions, cameras, viewports, fields;
    tandem_services services;
  };

  std::vector<tandem_flag> flags_;
  tandem_engine_options options_ = {};
  Lists lists_ = {};
  tandem_engine* engine_ = nullptr;
  std::vector<uint8_t> state_;  // which the library copies
  std::string error_;
};

}  // namespace tandem

#endif  // TANDEM_HPP_
