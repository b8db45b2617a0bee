// The C interface, with both sides in one process: an engine's thread, and a
// client, an attendant or a wrong program.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "schema/layout/error_codes.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/call_result.h"
#include "sdk/tandem.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/rpc/packed_call.h"

namespace tandem {
namespace {

std::string LastError() {
  std::string text(tandem_last_error(nullptr, 0), '\0');
  tandem_last_error(text.data(), text.size() + 1);
  return text;
}

template <typename Struct>
Struct Sized() {
  Struct made = {};
  made.struct_size = sizeof(made);
  return made;
}

// Counts: obs = {steps, seed or -1}, reward = the action.
struct Counter {
  std::vector<float> steps = std::vector<float>(2);
  std::vector<int> kinds;  // of all work
  std::function<int32_t(const tandem_work&)> before;
  tandem_engine* engine = nullptr;

  int32_t Do(const tandem_work& work) {
    kinds.push_back(static_cast<int>(work.kind));
    if (before) {
      if (const int32_t code = before(work); code != 0) return code;
    }
    // The indices of the names, in their documented order.
    auto* const obs = static_cast<float*>(work.data ? work.data[0] : nullptr);
    if (work.kind == TANDEM_WORK_RESET) {
      for (uint32_t i = 0; i < work.count; ++i) {
        const tandem_reset& reset = work.resets[i];
        steps[reset.env] = 0;
        obs[2 * reset.env] = 0;
        obs[2 * reset.env + 1] =
            reset.has_seed != 0 ? static_cast<float>(reset.seed) : -1;
      }
    }
    if (work.kind == TANDEM_WORK_STEP) {
      const auto* const actions = static_cast<const float*>(work.data[1]);
      for (uint32_t i = 0; i < work.count; ++i) {
        const uint32_t env = work.envs[i];
        obs[2 * env] = ++steps[env];
        static_cast<float*>(work.data[2])[env] = actions[env];
        static_cast<uint8_t*>(work.data[3])[env] = actions[env] > 99;
        static_cast<uint8_t*>(work.data[4])[env] = 0;
      }
    }
    return 0;
  }
  static int32_t Call(void* user, const tandem_work* work) {
    return static_cast<Counter*>(user)->Do(*work);
  }
};

class ApiTest : public testing::Test {
 protected:
  void SetUp() override { alarm(100); }
  void TearDown() override {
    Stop();
    if (engine_ != nullptr) {
      EXPECT_EQ(tandem_engine_destroy(engine_), TANDEM_OK) << LastError();
    }
    alarm(0);
  }
  tandem_engine_options Options() const {
    auto options = Sized<tandem_engine_options>();
    options.num_envs = 2;
    options.obs_size = 2;
    options.act_size = 1;
    options.name = name_.c_str();
    return options;
  }
  tandem_callbacks Callbacks() {
    auto callbacks = Sized<tandem_callbacks>();
    callbacks.user = &counter_;
    callbacks.work = Counter::Call;
    return callbacks;
  }
  void Start(tandem_engine_options options) {
    const tandem_callbacks callbacks = Callbacks();
    ASSERT_EQ(tandem_engine_create(&options, &callbacks, &engine_), TANDEM_OK)
        << LastError();
    counter_.engine = engine_;
    thread_ = std::thread([this] { ran_ = tandem_engine_run(engine_); });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(tandem_engine_stop(engine_), TANDEM_OK);
    thread_.join();
    EXPECT_EQ(ran_, TANDEM_OK);
  }
  tandem_client* Attach() {
    auto options = Sized<tandem_client_options>();
    options.name = name_.c_str();
    tandem_client* client = nullptr;
    EXPECT_EQ(tandem_client_attach(&options, &client), TANDEM_OK)
        << LastError();
    return client;
  }
  static tandem_array Array(tandem_client* client, const char* name) {
    auto array = Sized<tandem_array>();
    EXPECT_EQ(tandem_client_array(client, name, &array), TANDEM_OK)
        << LastError();
    return array;
  }

  const std::string name_ = UniqueRegionName("sdk");
  Counter counter_;
  tandem_engine* engine_ = nullptr;
  tandem_code ran_ = TANDEM_OK;
  std::thread thread_;
};

TEST(Api, CodesAreThoseOfTheTable) {
#define TANDEM_CHECK(number, name, absl_code, python_class, meaning) \
  EXPECT_STREQ(tandem_code_name(number), &#name[1]);
  TANDEM_ERROR_TABLE(TANDEM_CHECK)
#undef TANDEM_CHECK
  EXPECT_STREQ(tandem_code_name(-1), "unknown");
  EXPECT_STREQ(tandem_code_name(TANDEM_SYSTEM_CALL_FAILED), "SystemCallFailed");
  EXPECT_STREQ(tandem_code_name(TANDEM_SYSTEM_CALL_FAILED + 1), "unknown");
  EXPECT_STREQ(tandem_code_name(TANDEM_STEP_PENDING), "StepPending");
  EXPECT_EQ(tandem_abi_version(), TANDEM_ABI_MAJOR << 16 | TANDEM_ABI_MINOR);
}

TEST(Api, StructsHaveTheSizesOfVersion1) {
  EXPECT_EQ(sizeof(tandem_array), kFirstBytes<tandem_array>);
  EXPECT_EQ(sizeof(tandem_work), kFirstBytes<tandem_work>);
  EXPECT_EQ(sizeof(tandem_callbacks), kFirstBytes<tandem_callbacks>);
  EXPECT_EQ(sizeof(tandem_engine_options), kFirstBytes<tandem_engine_options>);
  EXPECT_EQ(sizeof(tandem_status), kFirstBytes<tandem_status>);
  EXPECT_EQ(sizeof(tandem_server), kFirstBytes<tandem_server>);
  EXPECT_EQ(sizeof(tandem_client_options), kFirstBytes<tandem_client_options>);
  EXPECT_EQ(sizeof(tandem_attendant_options),
            kFirstBytes<tandem_attendant_options>);
}

TEST_F(ApiTest, StepsAndResets) {
  Start(Options());
  tandem_client* const client = Attach();
  const tandem_array obs = Array(client, "obs");
  EXPECT_EQ(obs.dtype, TANDEM_FLOAT32);
  EXPECT_EQ(obs.dimensions, 2u);
  EXPECT_EQ(obs.shape[0], 2u);
  EXPECT_EQ(obs.shape[1], 2u);
  EXPECT_EQ(obs.bytes, 16u);
  const auto* const seen = static_cast<const float*>(obs.data);
  const tandem_reset resets[] = {{.env = 1, .has_seed = 1, .seed = 42}};
  ASSERT_EQ(tandem_client_send_reset(client, resets, 1), TANDEM_OK);
  ASSERT_EQ(tandem_client_recv(client, 60), TANDEM_OK) << LastError();
  EXPECT_EQ(seen[3], 42);
  const float actions[] = {0.5, 100};
  ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(seen[0], 1);
  EXPECT_EQ(seen[2], 0);  // ended, and was reset
  EXPECT_EQ(static_cast<float*>(Array(client, "final_obs").data)[2], 1);
  EXPECT_EQ(static_cast<float*>(Array(client, "rewards").data)[0], 0.5F);
  EXPECT_EQ(static_cast<uint8_t*>(Array(client, "terminateds").data)[1], 1);
  // NULL: the actions in the array.
  static_cast<float*>(Array(client, "actions").data)[0] = 3;
  ASSERT_EQ(tandem_client_send(client, nullptr, 0), TANDEM_OK);
  EXPECT_EQ(tandem_client_send(client, nullptr, 0), TANDEM_STEP_PENDING);
  ASSERT_EQ(tandem_client_recv(client, 60), TANDEM_OK);
  EXPECT_EQ(static_cast<float*>(Array(client, "rewards").data)[0], 3);
  const float nan[] = {NAN, 0};
  EXPECT_EQ(tandem_client_step(client, nan, 2, 60), TANDEM_INVALID_ACTION);
  EXPECT_EQ(tandem_client_step(client, nan, 1, 60), TANDEM_INVALID_ACTION);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  EXPECT_EQ(tandem_client_recv(client, 60), TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_client_close(client), TANDEM_CLIENT_CLOSED);
}

TEST_F(ApiTest, AnEngineWithATickTakesItsWork) {
  tandem_engine_options options = Options();
  ASSERT_EQ(tandem_engine_create(&options, nullptr, &engine_), TANDEM_OK)
      << LastError();
  EXPECT_EQ(tandem_engine_poll(engine_, nullptr), TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_engine_run(engine_), TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_engine_done(engine_, nullptr), TANDEM_INVALID_ARGUMENT);
  auto work = Sized<tandem_work>();
  ASSERT_EQ(tandem_engine_next(engine_, 60, &work), TANDEM_OK);
  ASSERT_EQ(work.kind, TANDEM_WORK_RESET);
  EXPECT_EQ(work.count, 2u);
  counter_.Do(work);
  ASSERT_EQ(tandem_engine_done(engine_, nullptr), TANDEM_OK);
  EXPECT_EQ(tandem_engine_done(engine_, nullptr), TANDEM_INVALID_ARGUMENT);
  std::atomic<bool> over{false};
  std::thread trainer([&] {
    tandem_client* const client = Attach();
    const float actions[] = {1, 2};
    for (int i = 0; i < 1000; ++i) {
      ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
    }
    // A failure has its text; the next step succeeds.
    const float failing[] = {-1, 0};
    EXPECT_EQ(tandem_client_step(client, failing, 2, 60), TANDEM_ENGINE_FAILED);
    EXPECT_TRUE(absl::StrContains(LastError(), "wheel lost")) << LastError();
    EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
    EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
    over = true;
  });
  int steps = 0;
  while (!over) {
    ASSERT_EQ(tandem_engine_next(engine_, 0.01, &work), TANDEM_OK);
    if (work.kind == TANDEM_WORK_STEP) {
      ++steps;
      auto again = Sized<tandem_work>();
      ASSERT_EQ(tandem_engine_next(engine_, 0, &again), TANDEM_OK);
      EXPECT_EQ(again.kind, TANDEM_WORK_NONE);
    }
    counter_.Do(work);
    if (work.kind == TANDEM_WORK_STEP || work.kind == TANDEM_WORK_RESET) {
      const bool fails = work.kind == TANDEM_WORK_STEP &&
                         static_cast<const float*>(work.data[1])[0] < 0;
      ASSERT_EQ(tandem_engine_done(engine_, fails ? "wheel lost" : nullptr),
                TANDEM_OK);
    }
  }
  trainer.join();
  EXPECT_EQ(steps, 1002);
}

TEST_F(ApiTest, ACallbacksFailureReachesTheClient) {
  counter_.before = [this](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_STEP) return 0;
    EXPECT_EQ(tandem_engine_poll(engine_, nullptr), TANDEM_CONCURRENT_USE);
    EXPECT_EQ(tandem_engine_destroy(engine_), TANDEM_CONCURRENT_USE);
    EXPECT_EQ(tandem_engine_fail(engine_, "wheel lost"), TANDEM_OK);
    return 3;
  };
  Start(Options());
  tandem_client* const client = Attach();
  const float actions[] = {1, 2};
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_ENGINE_FAILED);
  EXPECT_TRUE(absl::StrContains(LastError(), "wheel lost")) << LastError();
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ApiTest, CallsOfItsMethodsReachTheEngine) {
  const uint16_t methods[] = {
      static_cast<uint16_t>(rpc::MethodId::GetSceneInfo)};
  tandem_engine_options options = Options();
  options.methods = methods;
  options.method_count = 1;
  counter_.before = [this](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_CALL) return 0;
    EXPECT_EQ(work.method, static_cast<uint32_t>(rpc::MethodId::GetSceneInfo));
    const uint8_t wrong[] = {1, 2, 3};
    EXPECT_EQ(tandem_engine_answer(engine_, work.call, wrong, 3),
              TANDEM_INVALID_ARGUMENT);
    EXPECT_EQ(tandem_engine_answer(engine_, work.call, work.envelope,
                                   work.envelope_size),
              TANDEM_INVALID_ARGUMENT);
    rpc::EnvelopeT answer;
    answer.method = rpc::MethodId::GetSceneInfo;
    rpc::GetSceneInfoResponseT info;
    info.scene_name = "from C";
    answer.payload.Set(info);
    const PackedCall packed(answer);
    EXPECT_EQ(tandem_engine_answer(engine_, work.call, packed.bytes().data(),
                                   packed.bytes().size()),
              TANDEM_OK)
        << LastError();
    EXPECT_EQ(tandem_engine_refuse(engine_, work.call, TANDEM_UNSUPPORTED, ""),
              TANDEM_NO_STEP_PENDING);
    return 0;
  };
  Start(options);
  auto attach = Sized<tandem_attendant_options>();
  attach.name = name_.c_str();
  tandem_attendant* panel = nullptr;
  ASSERT_EQ(tandem_attendant_attach(&attach, &panel), TANDEM_OK) << LastError();
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetSceneInfo;
  call.payload.Set(rpc::GetSceneInfoRequestT());
  const PackedCall packed(call);
  uint8_t* answer = nullptr;
  uint64_t size = 0;
  ASSERT_EQ(tandem_rpc_call(tandem_attendant_rpc(panel), packed.bytes().data(),
                            packed.bytes().size(), 60, &answer, &size),
            TANDEM_OK)
      << LastError();
  EXPECT_EQ(rpc::GetEnvelope(answer)
                ->payload_as_GetSceneInfoResponse()
                ->scene_name()
                ->str(),
            "from C");
  tandem_free(answer);
  auto status = Sized<tandem_status>();
  ASSERT_EQ(tandem_engine_status(engine_, &status), TANDEM_OK);
  EXPECT_EQ(status.attendants, 1u);
  EXPECT_EQ(status.has_client, 0u);
  EXPECT_EQ(status.region, name_);
  EXPECT_NE(status.enabled_services & 1, 0u);
  ASSERT_EQ(tandem_engine_enable(engine_, "scene", 0), TANDEM_OK);
  do {  // the engine's thread switches it
    ASSERT_EQ(tandem_engine_status(engine_, &status), TANDEM_OK);
  } while ((status.enabled_services & 8) != 0);
  EXPECT_EQ(tandem_rpc_call(tandem_attendant_rpc(panel), packed.bytes().data(),
                            packed.bytes().size(), 60, &answer, &size),
            TANDEM_UNSUPPORTED);
  EXPECT_EQ(tandem_engine_enable(engine_, "camera", 1), TANDEM_UNSUPPORTED);
  EXPECT_EQ(tandem_engine_enable(engine_, "wheels", 1),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_attendant_close(panel), TANDEM_OK);
  EXPECT_EQ(tandem_rpc_call(tandem_attendant_rpc(panel), packed.bytes().data(),
                            packed.bytes().size(), 60, &answer, &size),
            TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_attendant_close(panel), TANDEM_CLIENT_CLOSED);
}

TEST_F(ApiTest, RefusesMethodsThatTheHostAnswers) {
  const uint16_t methods[] = {static_cast<uint16_t>(rpc::MethodId::SetPaused)};
  tandem_engine_options options = Options();
  options.methods = methods;
  options.method_count = 1;
  EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "SetPaused")) << LastError();
  EXPECT_EQ(engine_, nullptr);
}

TEST_F(ApiTest, RefusesInvalidArguments) {
  tandem_engine_options options = Options();
  tandem_callbacks callbacks = Callbacks();
  const auto create = [&] {
    tandem_engine* engine = nullptr;
    const tandem_code code =
        tandem_engine_create(&options, &callbacks, &engine);
    EXPECT_EQ(engine, nullptr);
    return code;
  };
  EXPECT_EQ(tandem_engine_create(&options, &callbacks, nullptr),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_engine_create(nullptr, &callbacks, &engine_),
            TANDEM_INVALID_ARGUMENT);
  callbacks.work = nullptr;
  EXPECT_EQ(create(), TANDEM_INVALID_ARGUMENT);
  callbacks.work = Counter::Call;
  for (const uint32_t size : {0U, 8U, 79U, 1U << 20}) {
    options.struct_size = size;
    EXPECT_EQ(create(), TANDEM_INVALID_ARGUMENT) << size;
    EXPECT_TRUE(absl::StrContains(LastError(), "expected 80")) << LastError();
  }
  options = Options();
  options.obs_size = 0;
  EXPECT_EQ(create(), TANDEM_INVALID_ARGUMENT);
  options = Options();
  options.name = "a/b";
  EXPECT_EQ(create(), TANDEM_INVALID_ARGUMENT);
  options = Options();
  options.description = R"({"infos": 3})";
  EXPECT_EQ(create(), TANDEM_INVALID_ARGUMENT);
  options.description = nullptr;
  options.method_count = 1;
  EXPECT_EQ(create(), TANDEM_INVALID_ARGUMENT);
}

TEST_F(ApiTest, AcceptsALongerStructWhoseUnknownFieldsAreZero) {
  struct Longer {
    tandem_engine_options options;
    uint64_t later = 0;
  } longer;
  longer.options = Options();
  longer.options.struct_size = sizeof(longer);
  EXPECT_EQ(tandem_engine_create(&longer.options, nullptr, &engine_), TANDEM_OK)
      << LastError();
  longer.later = 1;
  tandem_engine* other = nullptr;
  EXPECT_EQ(tandem_engine_create(&longer.options, nullptr, &other),
            TANDEM_UNSUPPORTED);
}

TEST_F(ApiTest, ACallbackThatFailsRefusesTheCall) {
  const uint16_t methods[] = {
      static_cast<uint16_t>(rpc::MethodId::GetSceneInfo)};
  tandem_engine_options options = Options();
  options.methods = methods;
  options.method_count = 1;
  counter_.before = [this](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_CALL) return 0;
    EXPECT_EQ(tandem_engine_fail(engine_, "no such scene"), TANDEM_OK);
    return 1;
  };
  Start(options);
  tandem_client* const client = Attach();
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetSceneInfo;
  call.payload.Set(rpc::GetSceneInfoRequestT());
  const PackedCall packed(call);
  uint8_t* answer = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(tandem_rpc_call(tandem_client_rpc(client), packed.bytes().data(),
                            packed.bytes().size(), 60, &answer, &size),
            TANDEM_ENGINE_FAILED);
  EXPECT_TRUE(absl::StrContains(LastError(), "no such scene")) << LastError();
  for (const uint64_t wrong : {~uint64_t{0}, uint64_t{1} << 63}) {
    EXPECT_EQ(tandem_rpc_call(tandem_client_rpc(client), packed.bytes().data(),
                              wrong, 60, &answer, &size),
              TANDEM_INVALID_ARGUMENT);
  }
  EXPECT_EQ(tandem_client_recv(client, NAN), TANDEM_INVALID_ARGUMENT);
  const tandem_reset reset = {};
  EXPECT_EQ(tandem_client_send_reset(client, &reset, 3),
            TANDEM_INVALID_ARGUMENT);
  auto array = Sized<tandem_array>();
  EXPECT_EQ(tandem_engine_array(reinterpret_cast<tandem_engine*>(client), "obs",
                                &array),
            TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ApiTest, AFailedFirstResetIsPermanent) {
  counter_.before = [](const tandem_work&) { return 1; };
  const tandem_engine_options options = Options();
  const tandem_callbacks callbacks = Callbacks();
  ASSERT_EQ(tandem_engine_create(&options, &callbacks, &engine_), TANDEM_OK);
  EXPECT_EQ(tandem_engine_poll(engine_, nullptr), TANDEM_ENGINE_FAILED);
  EXPECT_EQ(tandem_engine_poll(engine_, nullptr), TANDEM_ENGINE_FAILED);
  EXPECT_EQ(tandem_engine_run(engine_), TANDEM_ENGINE_FAILED);
}

TEST_F(ApiTest, APolledEngineServes) {
  const tandem_engine_options options = Options();
  const tandem_callbacks callbacks = Callbacks();
  ASSERT_EQ(tandem_engine_create(&options, &callbacks, &engine_), TANDEM_OK);
  int32_t served = 0;
  ASSERT_EQ(tandem_engine_poll(engine_, &served), TANDEM_OK);
  EXPECT_EQ(served, 1);
  std::atomic<bool> over{false};
  std::thread trainer([&] {
    tandem_client* const client = Attach();
    const float actions[] = {1, 2};
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
    }
    EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
    over = true;
  });
  while (!over) ASSERT_EQ(tandem_engine_poll(engine_, nullptr), TANDEM_OK);
  trainer.join();
}

TEST_F(ApiTest, NullAndInvalidHandlesAreErrors) {
  auto work = Sized<tandem_work>();
  auto array = Sized<tandem_array>();
  EXPECT_EQ(tandem_engine_next(nullptr, 0, &work), TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_client_array(nullptr, "obs", &array),
            TANDEM_INVALID_ARGUMENT);
  auto* const never = reinterpret_cast<tandem_engine*>(&work);
  EXPECT_EQ(tandem_engine_next(never, 0, &work), TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_engine_stop(never), TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_engine_stopping(never), 1);
  EXPECT_EQ(tandem_engine_destroy(nullptr), TANDEM_OK);
  EXPECT_EQ(tandem_client_close(nullptr), TANDEM_OK);
  EXPECT_EQ(tandem_attendant_close(nullptr), TANDEM_OK);
  tandem_free(nullptr);
  tandem_engine_options options = Options();
  ASSERT_EQ(tandem_engine_create(&options, nullptr, &engine_), TANDEM_OK);
  EXPECT_EQ(tandem_engine_next(engine_, 0, nullptr), TANDEM_INVALID_ARGUMENT);
  work.struct_size = 1;
  EXPECT_EQ(tandem_engine_next(engine_, 0, &work), TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_engine_array(engine_, "obz", &array),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "obs, actions")) << LastError();
  EXPECT_EQ(tandem_engine_array(engine_, nullptr, &array),
            TANDEM_INVALID_ARGUMENT);
  tandem_engine* const old = engine_;
  EXPECT_EQ(tandem_engine_destroy(engine_), TANDEM_OK);
  engine_ = nullptr;
  EXPECT_EQ(tandem_engine_next(old, 0, &work), TANDEM_CLIENT_CLOSED);
  EXPECT_EQ(tandem_engine_destroy(old), TANDEM_CLIENT_CLOSED);
}

TEST_F(ApiTest, ASecondThreadInACallIsRefused) {
  Start(Options());
  tandem_client* const client = Attach();  // the engine's thread serves
  EXPECT_EQ(tandem_engine_run(engine_), TANDEM_CONCURRENT_USE);
  EXPECT_EQ(tandem_engine_destroy(engine_), TANDEM_CONCURRENT_USE);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ApiTest, AForkedChildIsRefused) {
  Start(Options());
  tandem_client* const client = Attach();
  const pid_t child = fork();
  if (child == 0) {
    const float actions[] = {1, 2};
    const bool refused =
        tandem_client_step(client, actions, 2, 60) == TANDEM_FORKED_CHILD &&
        tandem_client_array(client, "obs", nullptr) == TANDEM_FORKED_CHILD &&
        tandem_engine_poll(engine_, nullptr) == TANDEM_FORKED_CHILD &&
        tandem_engine_destroy(engine_) == TANDEM_FORKED_CHILD;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const float actions[] = {1, 2};
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ApiTest, AClientOfAnEndedEngineReconnectsToTheNext) {
  Start(Options());
  tandem_client* const client = Attach();
  const float actions[] = {1, 2};
  ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  Stop();
  ASSERT_EQ(tandem_engine_destroy(engine_), TANDEM_OK);
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_PEER_GONE);
  Start(Options());
  ASSERT_EQ(tandem_client_reconnect(client, 60), TANDEM_OK) << LastError();
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

}  // namespace
}  // namespace tandem
