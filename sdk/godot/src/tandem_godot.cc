// The native half of the add-on: an engine server of libtandem, as an object
// that addons/tandem/host.gd calls.
//
// Data flow: tandem_serve runs on a stack of its own up to its loop, and again
// from the loop's end: Godot owns the main function, and calls `next` in its
// physics ticks. Every call comes from Godot's main thread.
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <tandem.hpp>

#include "gdnative.h"

namespace tandem_godot {
namespace {

using Args = std::vector<Value>;
using Members = std::vector<std::pair<std::string, Value>>;

// Calls `call` with a value of the type.
template <typename Call>
void WithType(uint32_t dtype, const Call& call) {
  if (dtype == TANDEM_UINT8) return call(uint8_t{});
  if (dtype == TANDEM_INT64) return call(int64_t{});
  call(float{});
}

class GodotServer final : public tandem::Server {
 public:
  ~GodotServer() override { End({}); }

  // (flags, spec): makes the engine; `spec` is that of host.gd. Returns [-1:
  // it serves, or the exit code of the process; num_envs; values of flags].
  Value Begin(const Args& args) {
    if (current != nullptr) throw std::logic_error("a second engine");
    words_ = args.at(0).Texts();
    words_.insert(words_.begin(), "tandem-godot");
    spec_ = args.at(1);
    host_ = spec_.At("host");
    for (const Value& flag : spec_.At("flags").List()) {
      const Args parts = flag.List();  // name, help, default
      flags_.push_back(
          {parts.at(0).Text(), parts.at(1).Text(), parts.at(2).Real()});
      AddFlag(flags_.back().name.c_str(), flags_.back().help.c_str(),
              &flags_.back().value);
    }
    current = this;
    // A display that dies ends the process by exit().
    std::atexit([] {
      if (current != nullptr) current->End({});
    });
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack_.data();
    inside_.uc_stack.ss_size = stack_.size();
    inside_.uc_link = &outside_;
    makecontext(
        &inside_,
        [] {
          std::vector<char*> argv;
          for (std::string& word : current->words_) argv.push_back(word.data());
          current->exit_code_ =
              current->Serve(static_cast<int>(argv.size()), argv.data(),
                             "A project of Godot's with a TandemAgent.");
        },
        0);
    swapcontext(&outside_, &inside_);  // until Loop, or the end
    if (!serving_) current = nullptr;
    return Value(
        Args{Value(exit_code_), Value(options().num_envs), flag_values_});
  }
  // (): ends the engine; returns the exit code of the process.
  Value End(const Args&) {
    if (std::exchange(serving_, false)) {
      swapcontext(&outside_, &inside_);  // the end of Loop
      current = nullptr;
    }
    return Value(exit_code_);
  }

  // (timeout_secs): waits for work. nil: none in time; false: the engine has
  // ended; true: an RPC, which is answered or was passed to `draw`; [resets],
  // each [env, seed or nil, contract or nil, whether it begins, its seed];
  // [nil, envs]: a step.
  Value Next(const Args& args) {
    const tandem::Engine served(engine());
    try {
      work_ = served.Next(args.at(0).Real());
    } catch (const tandem::Error&) {
      return Value(false);  // Serve reports it
    }
    if (work_.kind == TANDEM_WORK_NONE) {
      return served.stopping() ? Value(false) : Value();
    }
    if (work_.kind != TANDEM_WORK_STEP && work_.kind != TANDEM_WORK_RESET) {
      Do(work_);
      return Value(true);
    }
    const tandem::Work work(work_, options());
    Args envs, resets;
    for (const uint32_t env : work.envs()) envs.emplace_back(env);
    if (work_.kind == TANDEM_WORK_STEP)
      return Value(Args{Value(), Value(envs)});
    for (size_t i = 0; i < work.resets().size(); ++i) {
      const tandem_reset& reset = work.resets()[i];
      Args parts = {Value(reset.env), Value()};
      if (reset.has_seed != 0) parts[1] = Value(reset.seed);
      if (const tandem_contract* const contract = work.contract(i)) {
        Members ranges;
        for (const tandem_range& range :
             std::span(contract->ranges, contract->range_count)) {
          ranges.emplace_back(
              range.name, Args(range.values, range.values + range.count));
        }
        parts.insert(parts.end(),
                     {Value(ranges), Value(contract->begins != 0),
                      Value(contract->seed)});
      }
      resets.emplace_back(parts);
    }
    return Value(Args{Value(resets)});
  }
  // (env): the action of the step, numbers; of fields a dictionary of these.
  Value Action(const Args& args) {
    const uint32_t env = args.at(0).Count();
    const tandem::Work work(work_, options());
    const auto list = [](auto row) { return Value(Args(row.begin(), row.end())); };
    if (options().act_size > 0) return list(work.actions(env));
    Members members;
    for (const tandem_field& field : fields_) {
      const std::string name = field.name;
      if (!name.starts_with("action/")) continue;
      WithType(field.dtype, [&](auto type) {
        members.emplace_back(
            name.substr(7),
            list(work.row<decltype(type)>(Array(field.name), env)));
      });
    }
    return Value(members);
  }
  // (env, observation, reward, terminated, truncated): writes a row of the
  // work. Returns "", or what is wrong with it.
  Value Write(const Args& args) {
    const uint32_t env = args.at(0).Count();
    const tandem::Work work(work_, options());
    try {
      if (options().obs_size > 0) {
        Fill("the observation", args.at(1), work.obs(env));
      }
      for (const tandem_field& field : fields_) {
        const std::string name = field.name;
        if (!name.starts_with("obs/")) continue;
        WithType(field.dtype, [&](auto type) {
          Fill(name, args.at(1).At(field.name + 4),
               work.row<decltype(type)>(Array(field.name), env));
        });
      }
    } catch (const std::exception& error) {
      return Value(error.what());
    }
    if (work_.kind == TANDEM_WORK_STEP) {
      work.reward(env) = static_cast<float>(args.at(2).Real());
      work.terminated(env) = args.at(3).Int() != 0 ? 1 : 0;
      work.truncated(env) = args.at(4).Int() != 0 ? 1 : 0;
    }
    return Value("");
  }
  // (env, rgb): writes the image beside the observation.
  Value WriteImage(const Args& args) {
    Fill("the image", args.at(1),
         tandem::Work(work_, options())
             .row<uint8_t>(Array("images"), args.at(0).Count()));
    return Value();
  }
  // (failure): ends the reset or step; "": it has not failed.
  Value Done(const Args& args) {
    const std::string failure = args.at(0).Text();
    tandem_engine_done(engine(), failure.empty() ? nullptr : failure.c_str());
    return Value();
  }
  // (call, width, height, rgb): answers a draw; (call, failure): refuses it.
  Value AnswerDraw(const Args& args) {
    const auto call = static_cast<uint64_t>(args.at(0).Int());
    tandem_draw draw = {};
    draw.width = args.at(1).Count();
    if (args.size() == 2) {
      Refuse(call, TANDEM_UNSUPPORTED, args[1].Text().c_str());
    } else {
      draw.height = args[2].Count();
      Drawn(call, draw, args.at(3).Bytes());
    }
    return Value();
  }

 private:
  struct Flag {
    std::string name, help;
    double value;
  };

  template <typename T>
  static void Fill(const std::string& what, const Value& from,
                   std::span<T> to) {
    const auto copy = [&](const auto& found, auto convert) {
      if (found.size() != to.size()) {
        throw std::invalid_argument(
            what + ": expected " + std::to_string(to.size()) +
            " numbers, found " +
            (from.type() == Value::kNil
                 ? "null: a script error is in Godot's log above"
                 : std::to_string(found.size())));
      }
      std::ranges::transform(found, to.begin(), convert);
    };
    if (from.type() == Value::kBytes) {
      return copy(from.Bytes(), [](uint8_t byte) { return T(byte); });
    }
    copy(from.List(), [&](const Value& each) {
      if (each.type() == Value::kNil || each.type() > Value::kReal) {
        throw std::invalid_argument(what + ": expected numbers, found '" +
                                    each.Text() + "'");
      }
      return std::is_integral_v<T> ? T(each.Int()) : T(each.Real());
    });
  }

  void Prepare(tandem_engine_options* options) override {
    const auto refuse_if = [](bool wrong, const std::string& text) {
      if (wrong) throw std::invalid_argument(text);
    };
    const uint32_t agents = spec_.At("agents").Count();
    refuse_if(agents > 1 && options->num_envs != agents,
              "--num_envs: expected " + std::to_string(agents) +
                  ", the agents of the scene, found " +
                  std::to_string(options->num_envs));
    const std::string wrong = spec_.At("wrong").Text();
    refuse_if(!wrong.empty(), wrong);
    Members values;
    for (const Flag& flag : flags_) values.emplace_back(flag.name, flag.value);
    flag_values_ = Value(values);
    // [description, the images' side], or the text of what is wrong
    const Value described = host_.Call("describe", {flag_values_});
    refuse_if(described.type() == Value::kString, described.Text());
    texts_ = {spec_.At("task").Text(), described.List().at(0).Text()};
    options->task = texts_[0].c_str();
    options->description = texts_[1].c_str();
    options->image_width = options->image_height =
        described.List().at(1).Count();
    options->obs_size = spec_.At("observation_size").Count();
    options->act_size = spec_.At("action_size").Count();
    options->step_secs = spec_.At("step_secs").Real();
    for (const Value& listed : spec_.At("fields").List()) {
      const Args parts = listed.List();  // name, type, shape
      const std::string& name = texts_.emplace_back(parts.at(0).Text());
      const std::string type = parts.at(1).Text();
      const Args shape = parts.at(2).List();
      refuse_if(type != "float32" && type != "uint8" && type != "int64",
                name + ": expected float32, uint8 or int64, found " + type);
      refuse_if(shape.size() > TANDEM_MAX_DIMENSIONS,
                name + ": expected at most 4 dimensions");
      tandem_field& field = fields_.emplace_back();
      field.name = name.c_str();
      field.dtype = type == "uint8"   ? TANDEM_UINT8
                    : type == "int64" ? TANDEM_INT64
                                      : TANDEM_FLOAT32;
      field.dimensions = static_cast<uint32_t>(shape.size());
      std::ranges::transform(shape, field.shape, &Value::Count);
    }
    options->fields = fields_.data();
    options->field_count = static_cast<uint32_t>(fields_.size());
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
    swapcontext(&inside_, &outside_);
  }
  // host.gd takes these from Next.
  void Reset(const tandem::Work&) override {}
  void Step(const tandem::Work&) override {}

  void Draw(uint64_t call, const tandem_draw& draw) override {
    if (draw.depth != 0) return Refuse(call, TANDEM_UNSUPPORTED, "no depth");
    host_.Call("draw", {Value(call), Value(draw.env), Value(draw.width),
                        Value(draw.height)});
  }
  void Joints(uint32_t env, std::span<float> positions,
              std::span<float>) override {
    Fill("the telemetry", host_.Call("telemetry", {Value(env)}), positions);
  }
  std::vector<uint8_t> CallOwn(std::string_view method,
                               std::span<const uint8_t> request) override {
    const Args answer =
        host_.Call("call_own", {Value(method), Value(request)})
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

  // The server in tandem_serve, which runs once in a process.
  static inline GodotServer* current = nullptr;

  std::vector<char> stack_ = std::vector<char>(1 << 20);
  ucontext_t outside_ = {}, inside_ = {};
  bool serving_ = false;
  int exit_code_ = 0;
  tandem_work work_ = {};
  Value spec_, host_, flag_values_;
  std::vector<std::string> words_;
  std::deque<Flag> flags_;         // their addresses stay
  std::deque<std::string> texts_;  // also
  std::vector<tandem_field> fields_;
};

struct Method {
  const char* name;
  Value (GodotServer::*function)(const Args&);
};
std::array kMethods = {Method{"begin", &GodotServer::Begin},
                       Method{"end", &GodotServer::End},
                       Method{"next", &GodotServer::Next},
                       Method{"action", &GodotServer::Action},
                       Method{"write", &GodotServer::Write},
                       Method{"write_image", &GodotServer::WriteImage},
                       Method{"done", &GodotServer::Done},
                       Method{"answer_draw", &GodotServer::AnswerDraw}};

godot_variant CallMethod(void*, void* data, void* server, int count,
                         godot_variant** raw) {
  const Method& method = *static_cast<Method*>(data);
  try {
    const Args args(raw, raw + count);
    return (static_cast<GodotServer*>(server)->*method.function)(args)
        .Release();
  } catch (const std::exception& error) {
    Core<void>(/*print_error*/ 741, error.what(), method.name,
               "tandem_godot.cc", 0);
    return Value().Release();
  }
}

}  // namespace
}  // namespace tandem_godot

#define GODOT_CALLS extern "C" __attribute__((visibility("default"))) void

GODOT_CALLS godot_gdnative_init(
    const tandem_godot::godot_init_options* options) {
  tandem_godot::api = options->api;
}
GODOT_CALLS godot_gdnative_terminate(void*) {}
GODOT_CALLS godot_nativescript_init(void* handle) {
  using namespace tandem_godot;
  struct Function {  // and its data, and what frees these
    void* function;
    void* data = nullptr;
    void* free = nullptr;
  };
  const auto script = *std::find_if(
      api->extensions, api->extensions + api->extension_count,
      [](const godot_extension* each) { return each->type == 1; });
  void* (*const make)(void*, void*) = [](void*, void*) -> void* {
    return new GodotServer;
  };
  void (*const destroy)(void*, void*, void*) = [](void*, void*, void* server) {
    delete static_cast<GodotServer*>(server);
  };
  reinterpret_cast<void (*)(void*, const char*, const char*, Function,
                            Function)>(script->functions[/*register_class*/ 0])(
      handle, "TandemServer", "Reference", {reinterpret_cast<void*>(make)},
      {reinterpret_cast<void*>(destroy)});
  for (Method& each : kMethods) {
    reinterpret_cast<void (*)(void*, const char*, const char*, int, Function)>(
        script->functions[/*register_method*/ 2])(
        handle, "TandemServer", each.name, /*no remote calls*/ 0,
        {reinterpret_cast<void*>(&CallMethod), &each});
  }
}
