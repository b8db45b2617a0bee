// The native half of the add-on: an engine server of libtandem, as an object
// that addons/tandem/host.gd calls.
//
// Data flow: tandem_serve runs on a fiber, a stack of its own, up to its loop,
// and again from the loop's end: Godot owns the main function, and calls `next`
// in its physics ticks. Every call comes from Godot's main thread.
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tandem.hpp>

#include "gdnative.h"

namespace tandem_godot {
namespace {

// Runs a function that returns, for a while, in its middle. One at a time.
class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  ~Fiber() {
    if (stack_ != nullptr) munmap(stack_, kStackBytes);
  }
  // Calls `function` until it calls Leave, or ends.
  void Enter(void (*function)()) {
    stack_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(stack_, 4096, PROT_NONE);  // an overflow ends the process
    getcontext(&inside_);
    inside_.uc_stack = {stack_, 0, kStackBytes};
    inside_.uc_link = &outside_;
    makecontext(&inside_, function, 0);
    swapcontext(&outside_, &inside_);
  }
  void Leave() { swapcontext(&inside_, &outside_); }
  // Returns from Leave, and runs the function to its end.
  void Resume() { swapcontext(&outside_, &inside_); }

 private:
  static constexpr size_t kStackBytes = 1 << 20;
  void* stack_ = nullptr;
  ucontext_t outside_ = {};
  ucontext_t inside_ = {};
};

uint32_t TypeNamed(const std::string& name) {
  static const std::map<std::string, uint32_t> types = {
      {"float32", TANDEM_FLOAT32}, {"float64", TANDEM_FLOAT64},
      {"uint8", TANDEM_UINT8},     {"bool", TANDEM_BOOL},
      {"int32", TANDEM_INT32},     {"int64", TANDEM_INT64}};
  const auto found = types.find(name);
  if (found != types.end()) return found->second;
  throw std::invalid_argument(
      "a field's type: expected float32, float64, "
      "uint8, bool, int32 or int64, found '" +
      name + "'");
}

template <typename Call>
void WithType(uint32_t dtype, const Call& call) {
  switch (dtype) {
    case TANDEM_FLOAT64:
      return call(double{});
    case TANDEM_INT32:
      return call(int32_t{});
    case TANDEM_INT64:
      return call(int64_t{});
    case TANDEM_UINT8:
    case TANDEM_BOOL:
      return call(uint8_t{});
    default:
      return call(float{});
  }
}

class GodotServer final : public tandem::Server {
 public:
  ~GodotServer() override { End({}); }

  // (flags, spec): makes the engine; `spec` is that of host.gd. Returns -1: it
  // serves, or the exit code of the process.
  Value Begin(const std::vector<Value>& args) {
    if (current != nullptr) throw std::logic_error("a second engine");
    words_ = args.at(0).Texts();
    words_.insert(words_.begin(), "tandem-godot");
    spec_ = args.at(1);
    host_ = spec_.At("host");
    for (const Value& flag : spec_.At("flags").List()) {
      const std::vector<Value> parts = flag.List();  // name, help, default
      Flag& made = flags_[parts.at(0).Text()];
      made = {parts.at(1).Text(), parts.at(2).Real()};
    }
    for (auto& [name, flag] : flags_) {
      AddFlag(name.c_str(), flag.help.c_str(), &flag.value);
    }
    current = this;
    // A display that dies ends the process by exit().
    std::atexit([] {
      if (current != nullptr) current->End({});
    });
    fiber_.Enter([] {
      std::vector<char*> argv;
      for (std::string& word : current->words_) argv.push_back(word.data());
      current->exit_code_ =
          current->Serve(static_cast<int>(argv.size()), argv.data(),
                         "A project of Godot's with a TandemAgent.");
    });
    if (!serving_) current = nullptr;
    return Value(int64_t{exit_code_});
  }
  // (): ends the engine; returns the exit code of the process.
  Value End(const std::vector<Value>&) {
    if (std::exchange(serving_, false)) {
      fiber_.Resume();
      current = nullptr;
    }
    return Value(int64_t{exit_code_});
  }
  Value NumEnvs(const std::vector<Value>&) { return Value(num_envs_); }
  Value FlagOf(const std::vector<Value>& args) {
    return Value(flags_.at(args.at(0).Text()).value);
  }

  // (timeout_secs): waits for work. nil: none in time; false: the engine has
  // ended; true: an RPC, which is answered or was passed to `draw`; [resets],
  // each [env, seed or nil, contract or nil, whether it begins, its seed]; or
  // [nil, envs, whether these are all] for a step.
  Value Next(const std::vector<Value>& args) {
    const tandem::Engine served(engine());
    try {
      work_ = served.Next(args.at(0).Real());
    } catch (const tandem::Error&) {
      return Value(false);  // Serve reports it
    }
    if (work_.kind == TANDEM_WORK_NONE) {
      return served.stopping() ? Value(false) : Value();
    }
    if (work_.kind == TANDEM_WORK_STEP) {
      std::vector<Value> envs;
      for (uint32_t i = 0; i < work_.count; ++i) {
        envs.emplace_back(work_.envs[i]);
      }
      return Value(std::vector<Value>{Value(), Value(envs)});
    }
    if (work_.kind != TANDEM_WORK_RESET) {
      Do(work_);
      return Value(true);
    }
    std::vector<Value> resets;
    for (uint32_t i = 0; i < work_.count; ++i) {
      const tandem_reset& reset = work_.resets[i];
      const tandem_contract* const contract =
          work_.contracts == nullptr ? nullptr : work_.contracts[i];
      std::vector<Value> parts = {Value(reset.env), Value()};
      if (reset.has_seed != 0) {
        parts[1] = Value(static_cast<int64_t>(reset.seed));
      }
      if (contract != nullptr) {
        std::vector<std::pair<std::string, Value>> ranges;
        for (uint32_t k = 0; k < contract->range_count; ++k) {
          const tandem_range& range = contract->ranges[k];
          ranges.emplace_back(range.name,
                              range.text != nullptr
                                  ? Value(range.text)
                                  : Value({range.values, range.count}));
        }
        parts.insert(parts.end(),
                     {Value(ranges), Value(contract->begins != 0),
                      Value(static_cast<int64_t>(contract->seed))});
      }
      resets.emplace_back(parts);
    }
    return Value(std::vector<Value>{Value(resets)});
  }
  // (env): the action of the step, a list of numbers; of fields a dictionary
  // of these.
  Value Action(const std::vector<Value>& args) {
    const uint32_t env = args.at(0).Count();
    const tandem::Work work(work_, options());
    if (options().act_size > 0) return Value(work.actions(env));
    std::vector<std::pair<std::string, Value>> members;
    for (const Field& field : field_list_) {
      if (!field.name.starts_with("action/")) continue;
      const tandem_array array = Array(field.name.c_str());
      WithType(array.dtype, [&](auto type) {
        const auto row = work.row<decltype(type)>(array, env);
        std::vector<float> floats(row.begin(), row.end());
        members.emplace_back(field.name.substr(7), Value(floats));
      });
    }
    return Value(members);
  }
  // (env, observation, reward, terminated, truncated): writes a row of the
  // work. Returns "", or what is wrong with it.
  Value Write(const std::vector<Value>& args) {
    const uint32_t env = args.at(0).Count();
    const tandem::Work work(work_, options());
    try {
      if (options().obs_size > 0) {
        Fill("the observation", args.at(1), work.obs(env));
      }
      for (const Field& field : field_list_) {
        if (!field.name.starts_with("obs/")) continue;
        const tandem_array array = Array(field.name.c_str());
        const std::string key = field.name.substr(4);
        WithType(array.dtype, [&](auto type) {
          Fill("observation['" + key + "']", args.at(1).At(key.c_str()),
               work.row<decltype(type)>(array, env));
        });
      }
    } catch (const std::exception& error) {
      return Value(std::string(error.what()));
    }
    if (work_.kind == TANDEM_WORK_STEP) {
      work.reward(env) = static_cast<float>(args.at(2).Real());
      work.terminated(env) = args.at(3).Int() != 0 ? 1 : 0;
      work.truncated(env) = args.at(4).Int() != 0 ? 1 : 0;
    }
    return Value("");
  }
  // (failure): ends the reset or step; "": it has not failed.
  Value Done(const std::vector<Value>& args) {
    const std::string failure = args.at(0).Text();
    tandem_engine_done(engine(), failure.empty() ? nullptr : failure.c_str());
    return Value();
  }
  // (env, rgb): writes the image beside the observation.
  Value WriteImage(const std::vector<Value>& args) {
    const tandem::Work work(work_, options());
    Fill("the image", args.at(1),
         work.row<uint8_t>(Array("images"), args.at(0).Count()));
    return Value();
  }
  // (call, width, height, rgb): answers a draw; (call, failure): refuses it.
  Value AnswerDraw(const std::vector<Value>& args) {
    const auto call = static_cast<uint64_t>(args.at(0).Int());
    if (args.size() == 2) {
      Refuse(call, TANDEM_UNSUPPORTED, args.at(1).Text().c_str());
      return Value();
    }
    tandem_draw draw = {};
    draw.width = args.at(1).Count();
    draw.height = args.at(2).Count();
    Drawn(call, draw, args.at(3).Bytes());
    return Value();
  }

 private:
  struct Flag {
    std::string help;
    double value = 0;
  };
  struct Field {
    std::string name;
    uint32_t dtype;
    std::vector<float> shape;
  };

  template <typename T>
  static void Fill(const std::string& what, const Value& from,
                   std::span<T> to) {
    const auto expect = [&](size_t found) {
      if (found == to.size()) return;
      throw std::invalid_argument(
          what + ": expected " + std::to_string(to.size()) +
          " numbers, found " +
          (from.type() == Value::kNil
               ? "null: a script error is in Godot's log above"
               : std::to_string(found)));
    };
    if (sizeof(T) == 1 && from.type() == Value::kBytes) {
      const std::vector<uint8_t> bytes = from.Bytes();
      expect(bytes.size());
      std::ranges::copy(bytes, to.begin());
      return;
    }
    const std::vector<float> floats = from.Floats();
    expect(floats.size());
    std::ranges::transform(floats, to.begin(), [](float value) {
      return std::is_integral_v<T> && !std::isfinite(value)
                 ? T{}
                 : static_cast<T>(value);
    });
  }

  void Prepare(tandem_engine_options* options) override {
    num_envs_ = options->num_envs;
    const uint32_t agents = spec_.At("agents").Count();
    if (agents > 1 && num_envs_ != agents) {
      throw std::invalid_argument(
          "--num_envs: expected " + std::to_string(agents) +
          ", the agents of the scene, found " + std::to_string(num_envs_));
    }
    const std::string wrong = spec_.At("wrong").Text();
    if (!wrong.empty()) throw std::invalid_argument(wrong);
    task_ = spec_.At("task").Text();
    description_ =
        host_.Call("describe", {Value(flags_.at("max_episode_steps").value)})
            .Text();
    options->task = task_.c_str();
    options->description = description_.c_str();
    options->obs_size = spec_.At("observation_size").Count();
    options->act_size = spec_.At("action_size").Count();
    options->step_secs = spec_.At("step_secs").Real();
    for (const Value& field : spec_.At("fields").List()) {
      const std::vector<Value> parts = field.List();  // name, type, shape
      field_list_.push_back({parts.at(0).Text(), TypeNamed(parts.at(1).Text()),
                             parts.at(2).Floats()});
    }
    for (const Field& field : field_list_) {
      const auto dimensions = static_cast<uint32_t>(field.shape.size());
      tandem_field& made = fields_.emplace_back(
          tandem_field{field.name.c_str(), field.dtype, dimensions, {}});
      if (dimensions > TANDEM_MAX_DIMENSIONS) {
        throw std::invalid_argument(field.name + ": at most 4 dimensions");
      }
      std::ranges::copy(field.shape, made.shape);
    }
    options->fields = fields_.data();
    options->field_count = static_cast<uint32_t>(fields_.size());
    const std::string no_pictures = spec_.At("no_pictures").Text();
    const auto side = static_cast<uint32_t>(flags_.at("image_side").value);
    if (side > 0 && !no_pictures.empty()) {
      throw std::invalid_argument("--image_side: expected 0, found " +
                                  std::to_string(side) + "; " + no_pictures);
    }
    options->image_width = options->image_height = side;
    services.joint_names = spec_.At("telemetry").Texts();
    services.contract_fields = spec_.At("contract_fields").Texts();
    for (const std::string& name : spec_.At("own_methods").Texts()) {
      services.own_methods.push_back({name});
    }
    services.cameras = {"main"};
    services.draws_frames = true;
  }
  void Loop(const tandem::Engine&) override {
    exit_code_ = -1;
    serving_ = true;
    fiber_.Leave();
  }
  // host.gd takes these from Next.
  void Reset(const tandem::Work&) override {}
  void Step(const tandem::Work&) override {}

  void Draw(uint64_t call, const tandem_draw& draw) override {
    if (draw.depth != 0) return Refuse(call, TANDEM_UNSUPPORTED, "no depth");
    host_.Call("draw", {Value(static_cast<int64_t>(call)), Value(draw.env),
                        Value(draw.width), Value(draw.height)});
  }
  void Joints(uint32_t env, std::span<float> positions,
              std::span<float>) override {
    Fill("the telemetry", host_.Call("telemetry", {Value(env)}), positions);
  }
  std::vector<uint8_t> CallOwn(std::string_view method,
                               std::span<const uint8_t> request) override {
    const std::vector<Value> answer =
        host_.Call("call_own", {Value(std::string(method)), Value(request)})
            .List();
    const std::string failure = answer.size() != 2
                                    ? "a script error is in Godot's log"
                                    : answer[0].Text();
    if (!failure.empty()) throw std::runtime_error(failure);
    if (answer[1].type() != Value::kString) return answer[1].Bytes();
    const std::string text = answer[1].Text();
    return {text.begin(), text.end()};
  }
  void Clear() override { host_.Call("clear", {}); }

  // The server that is on the fiber: tandem_serve runs once in a process.
  static inline GodotServer* current = nullptr;

  Fiber fiber_;
  bool serving_ = false;
  int exit_code_ = 0;
  uint32_t num_envs_ = 0;
  tandem_work work_ = {};
  Value spec_, host_;
  std::vector<std::string> words_;
  std::map<std::string, Flag> flags_;
  std::vector<Field> field_list_;
  std::vector<tandem_field> fields_;
  std::string task_, description_;
};

using Method = Value (GodotServer::*)(const std::vector<Value>&);
struct NamedMethod {
  const char* name;
  Method method;
};
std::array kMethods = {NamedMethod{"begin", &GodotServer::Begin},
                       NamedMethod{"end", &GodotServer::End},
                       NamedMethod{"num_envs", &GodotServer::NumEnvs},
                       NamedMethod{"flag", &GodotServer::FlagOf},
                       NamedMethod{"next", &GodotServer::Next},
                       NamedMethod{"action", &GodotServer::Action},
                       NamedMethod{"write", &GodotServer::Write},
                       NamedMethod{"write_image", &GodotServer::WriteImage},
                       NamedMethod{"done", &GodotServer::Done},
                       NamedMethod{"answer_draw", &GodotServer::AnswerDraw}};

godot_variant CallMethod(void*, void* named, void* server, int count,
                         godot_variant** raw) {
  try {
    std::vector<Value> args;
    for (int i = 0; i < count; ++i) args.emplace_back(raw[i]);
    return (static_cast<GodotServer*>(server)
                ->*static_cast<NamedMethod*>(named)
                ->method)(args)
        .Release();
  } catch (const std::exception& error) {
    Core<void>(kPrintError, error.what(),
               static_cast<NamedMethod*>(named)->name, "tandem_godot.cc", 0);
    return Value().Release();
  }
}

}  // namespace
}  // namespace tandem_godot

// What Godot calls.
extern "C" {
__attribute__((visibility("default"))) void godot_gdnative_init(
    const tandem_godot::godot_init_options* options) {
  tandem_godot::api = options->api;
}
__attribute__((visibility("default"))) void godot_gdnative_terminate(void*) {}
__attribute__((visibility("default"))) void godot_nativescript_init(
    void* handle) {
  using namespace tandem_godot;
  struct Function {  // of a class or a method: the function, its data, a free
    void* function;
    void* data = nullptr;
    void (*free)(void*) = nullptr;
  };
  const godot_extension* script = nullptr;
  for (unsigned i = 0; i < api->extension_count; ++i) {
    const auto* each =
        reinterpret_cast<const godot_extension*>(api->extensions[i]);
    if (each->type == 1) script = each;
  }
  if (script == nullptr) return;
  void* (*const make)(void*, void*) = [](void*, void*) -> void* {
    return new GodotServer;
  };
  void (*const destroy)(void*, void*, void*) = [](void*, void*, void* server) {
    delete static_cast<GodotServer*>(server);
  };
  reinterpret_cast<void (*)(void*, const char*, const char*, Function,
                            Function)>(script->functions[kRegisterClass])(
      handle, "TandemServer", "Reference", {reinterpret_cast<void*>(make)},
      {reinterpret_cast<void*>(destroy)});
  for (NamedMethod& each : kMethods) {
    reinterpret_cast<void (*)(void*, const char*, const char*, int, Function)>(
        script->functions[kRegisterMethod])(
        handle, "TandemServer", each.name, /*no remote calls*/ 0,
        {reinterpret_cast<void*>(&CallMethod), &each});
  }
}
}
