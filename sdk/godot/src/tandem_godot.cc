// The native half of the add-on: an engine server of libtandem, as an object
// that addons/tandem/host.gd calls.
//
// Data flow: tandem_serve runs on a stack of its own up to its loop, and again
// from the loop's end: Godot owns the main function, and calls `next` in its
// physics ticks. Every call comes from Godot's main thread.
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>
#include <tandem.hpp>

#include "gdnative.h"

namespace tandem_godot {
namespace {

using Args = std::vector<Value>;

const std::map<std::string, uint32_t> kTypes = {{"float32", TANDEM_FLOAT32},
                                                {"int64", TANDEM_INT64},
                                                {"uint8", TANDEM_UINT8}};

class GodotServer final : public tandem::Server {
 public:
  ~GodotServer() override { End({}); }

  // (flags, spec): makes the engine; `spec` is that of host.gd. Returns [-1:
  // it serves, or the exit code of the process; num_envs; and the flags].
  Value Begin(const Args& args) {
    if (current != nullptr) throw std::logic_error("a second engine");
    words_ = args.at(0).Texts();
    words_.insert(words_.begin(), "tandem-godot");
    spec_ = args.at(1);
    host_ = spec_.At("host");
    limit_ = spec_.At("max_episode_steps").Real();
    AddFlag("max_episode_steps",
            "steps after which an episode is truncated; 0: no limit", &limit_);
    AddFlag("real_time", "1: no faster than a clock", &real_time_);
    AddFlag("image_side", "pixels of an image beside each observation; 0: none",
            &side_);
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
    return Value(Args{Value(exit_code_), Value(options().num_envs),
                      Value(limit_), Value(real_time_), Value(side_)});
  }
  // (): ends the engine; returns the exit code of the process.
  Value End(const Args&) {
    if (std::exchange(serving_, false)) {
      swapcontext(&outside_, &inside_);  // the end of Loop
      current = nullptr;
    }
    return Value(exit_code_);
  }

  // (timeout_secs): waits for work. nil: none in time; 0: the engine has
  // ended; 1: an RPC, which is answered or was passed to `draw`; [resets],
  // each [env, seed or nil, [contract's field, range] ..., whether the contract
  // begins, its seed]; [nil, envs]: a step.
  Value Next(const Args& args) {
    const tandem::Engine served(engine());
    try {
      work_ = served.Next(args.at(0).Real());
    } catch (const tandem::Error&) {
      return Value(0);  // Serve reports it
    }
    if (work_.kind == TANDEM_WORK_NONE) {
      return served.stopping() ? Value(0) : Value();
    }
    if (work_.kind != TANDEM_WORK_STEP && work_.kind != TANDEM_WORK_RESET) {
      Do(work_);
      return Value(1);
    }
    const tandem::Work work(work_, options());
    Args envs, resets;
    for (const uint32_t env : work.envs()) envs.emplace_back(env);
    if (work_.kind == TANDEM_WORK_STEP)
      return Value(Args{Value(), Value(envs)});
    for (size_t i = 0; i < work.resets().size(); ++i) {
      const tandem_reset& reset = work.resets()[i];
      const tandem_contract* const its = work.contract(i);
      const tandem_contract contract =
          its != nullptr ? *its : tandem_contract{};
      Args ranges;
      for (uint32_t k = 0; k < contract.range_count; ++k) {
        const tandem_range& range = contract.ranges[k];
        ranges.push_back(
            Pair(range.name, std::span(range.values, range.count)));
      }
      resets.emplace_back(Args{
          Value(reset.env), reset.has_seed != 0 ? Value(reset.seed) : Value(),
          Value(ranges), Value(contract.begins), Value(contract.seed)});
    }
    return Value(Args{Value(resets)});
  }
  // (env): [the action of the step, numbers], or of fields [name, numbers] ...
  Value Action(const Args& args) {
    const uint32_t env = args.at(0).Count();
    if (options().act_size > 0) {
      return Value(Args{List(tandem::Work(work_, options()).actions(env))});
    }
    Args fields;
    EachField("action/", env, [&](const std::string& name, auto row) {
      fields.push_back(Pair(name.substr(7), row));
    });
    return Value(fields);
  }
  // (env, observation, reward, terminated, truncated): writes a row of the
  // work. Returns "", or what is wrong with it.
  Value Write(const Args& args) {
    const uint32_t env = args.at(0).Count();
    const tandem::Work work(work_, options());
    if (options().obs_size > 0) {
      Fill("the observation", args.at(1), work.obs(env));
    }
    EachField("obs/", env, [&](const std::string& name, auto row) {
      Fill(name, args.at(1).At(name.c_str() + 4), row);
    });
    if (work_.kind == TANDEM_WORK_STEP) {
      Fill("the reward", Value(Args{args.at(2)}),
           std::span(&work.reward(env), 1));
      work.terminated(env) = args.at(3).Int() != 0 ? 1 : 0;
      work.truncated(env) = args.at(4).Int() != 0 ? 1 : 0;
    }
    return Value("");
  }
  // (failure): ends the reset or step; "": it has not failed.
  Value Done(const Args& args) {
    const std::string failure = args.at(0).Text();
    tandem_engine_done(engine(), failure.empty() ? nullptr : failure.c_str());
    return Value();
  }
  // ([call, env, width, height], rgb): answers a draw. A text refuses it; call
  // nil: writes the image beside the observation.
  Value AnswerDraw(const Args& args) {
    const Args wanted = args.at(0).List();
    const Value& image = args.at(1);
    const auto call = static_cast<uint64_t>(wanted.at(0).Int());
    if (image.type() == Value::kString) {
      tandem_engine_refuse(engine(), call, TANDEM_UNSUPPORTED,
                           image.Text().c_str());
    } else if (wanted[0].type() == Value::kNil) {
      Fill("the image", image,
           tandem::Work(work_, options())
               .row<uint8_t>(Array("images"), wanted.at(1).Count()));
    } else {
      tandem_draw draw = {};
      draw.width = wanted.at(2).Count();
      draw.height = wanted.at(3).Count();
      Drawn(call, draw, image.Bytes());
    }
    return Value();
  }

 private:
  static Value List(auto row) { return Value(Args(row.begin(), row.end())); }
  static Value Pair(const std::string& name, auto row) {
    return Value(Args{Value(name), List(row)});
  }
  // Calls `call` with the name and the row of each field in the work.
  void EachField(const char* prefix, uint32_t env, const auto& call) {
    const tandem::Work work(work_, options());
    for (const tandem_field& field : fields_) {
      const std::string name = field.name;
      const tandem_array array = Array(field.name);
      if (!name.starts_with(prefix)) continue;
      if (field.dtype == TANDEM_UINT8)
        call(name, work.row<uint8_t>(array, env));
      if (field.dtype == TANDEM_INT64)
        call(name, work.row<int64_t>(array, env));
      if (field.dtype == TANDEM_FLOAT32)
        call(name, work.row<float>(array, env));
    }
  }
  template <typename T>
  static void Fill(const std::string& what, const Value& from,
                   std::span<T> to) {
    const auto expect = [&](bool right, const std::string& found) {
      if (right) return;
      throw std::invalid_argument(what + ": expected " +
                                  std::to_string(to.size()) +
                                  " numbers, found " + found);
    };
    if (from.type() == Value::kBytes) {
      const std::vector<uint8_t> bytes = from.Bytes();
      expect(bytes.size() == to.size(), std::to_string(bytes.size()));
      std::ranges::copy(bytes, to.begin());
      return;
    }
    const Args list = from.List();
    expect(from.type() != Value::kNil,
           "null: a script error is in Godot's log above");
    expect(list.size() == to.size(), std::to_string(list.size()));
    std::ranges::transform(list, to.begin(), [&](const Value& each) {
      expect(each.type() != Value::kNil && each.type() <= Value::kReal,
             "other values");
      return std::is_integral_v<T> ? T(each.Int()) : T(each.Real());
    });
  }

  void Prepare(tandem_engine_options* options) override {
    const auto refuse_if = [](bool wrong, const std::string& text) {
      if (wrong) throw std::invalid_argument(text);
    };
    const uint32_t agents = spec_.At("agents").Count();
    refuse_if(agents > 0 && options->num_envs != agents,
              "--num_envs: expected " + std::to_string(agents) +
                  ", the agents of the scene, found " +
                  std::to_string(options->num_envs));
    refuse_if(spec_.At("wrong").type() != Value::kNil,
              spec_.At("wrong").Text());
    const auto whole = [&](const char* flag, double value, double most) {
      refuse_if(!(value >= 0 && value <= most && value == std::floor(value)),
                std::string(flag) + ": expected a whole number from 0 to " +
                    std::to_string(int(most)) + ", found " +
                    std::to_string(value));
      return static_cast<uint32_t>(value);
    };
    const uint32_t limit = whole("--max_episode_steps", limit_, 1 << 24);
    const uint32_t side = whole("--image_side", side_, 8192);
    const std::string no_pictures = spec_.At("no_pictures").Text();
    refuse_if(side > 0 && !no_pictures.empty(),
              "--image_side: expected 0; " + no_pictures);
    const int64_t ticks = spec_.At("ticks_per_step").Int();
    refuse_if(ticks < 1, "ticks_per_step: expected at least 1, found " +
                             std::to_string(ticks));
    texts_ = {spec_.At("task").Text(),
              "{\"max_episode_steps\": " + std::to_string(limit) + ", " +
                  spec_.At("description").Text().substr(1)};
    options->task = texts_[0].c_str();
    options->description = texts_[1].c_str();
    options->image_width = options->image_height = side;
    options->obs_size = spec_.At("observation_size").Count();
    options->act_size = spec_.At("action_size").Count();
    options->step_secs =
        static_cast<double>(ticks) / spec_.At("ticks_per_second").Real();
    for (const std::string prefix : {"obs/", "action/"}) {
      const Value listed =
          spec_.At(prefix == "obs/" ? "observation_fields" : "action_fields");
      for (const std::string& path : listed.Call("keys", {}).Texts()) {
        const Args parts = listed.At(path.c_str()).List();  // type, shape
        const std::string& name = texts_.emplace_back(prefix + path);
        const std::string type = parts.empty() ? "none" : parts[0].Text();
        refuse_if(!kTypes.contains(type),
                  name + ": expected float32, uint8 or int64, found " + type);
        refuse_if(parts.size() > 1 + TANDEM_MAX_DIMENSIONS,
                  name + ": expected at most 4 dimensions");
        tandem_field& field = fields_.emplace_back();
        field.name = name.c_str();
        field.dtype = kTypes.at(type);
        field.dimensions = static_cast<uint32_t>(parts.size() - 1);
        std::transform(parts.begin() + 1, parts.end(), field.shape,
                       [](const Value& each) { return each.Count(); });
      }
    }
    options->fields = fields_.data();
    options->field_count = static_cast<uint32_t>(fields_.size());
    services.joint_names = spec_.At("telemetry").Texts();
    services.contract_fields = spec_.At("contract_fields").Texts();
    for (const std::string& name : spec_.At("own_methods").Texts()) {
      services.own_methods.push_back({name});
    }
    if (no_pictures.empty()) services.cameras = {"main"};
    services.draws_frames = no_pictures.empty();
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
    const Value answer =
        host_.Call("call_own", {Value(method), Value(request)});
    if (answer.type() == Value::kBytes) return answer.Bytes();
    throw std::runtime_error(answer.Text());
  }
  void Clear() override { host_.Call("clear", {}); }

  // The server in tandem_serve, which runs once in a process.
  static inline GodotServer* current = nullptr;

  std::vector<char> stack_ = std::vector<char>(1 << 20);
  ucontext_t outside_ = {}, inside_ = {};
  bool serving_ = false;
  int exit_code_ = 0;
  tandem_work work_ = {};
  Value spec_, host_;
  std::vector<std::string> words_;
  double limit_ = 0, real_time_ = 0, side_ = 0;
  std::deque<std::string> texts_;  // their addresses stay
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
    return Value(error.what()).Release();
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
