// The functions of tandem.h for engines: an engine's thread, and a client, an
// attendant or a wrong program.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>

#include "absl/strings/match.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/tandem.h"
#include "sdk/testing/api_fixture.h"
#include "transport/envelope.h"
#include "transport/region.h"

namespace tandem {
namespace {

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

TEST_F(ApiTest, AFailuresTextIsForItsOwnWork) {
  int steps = 0;  // of the engine's thread
  counter_.before = [&](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_STEP) return 0;
    switch (++steps) {
      case 1:
        EXPECT_EQ(tandem_engine_fail(engine_, "wheel lost"), TANDEM_OK);
        return 0;
      case 2:
        return 3;
      default:
        return 0;
    }
  };
  Start(Options());
  tandem_client* const client = Attach();
  const float actions[] = {1, 2};
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_ENGINE_FAILED);
  EXPECT_TRUE(absl::StrContains(LastError(), "returned 3 without a text"))
      << LastError();
  EXPECT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();  // before `steps` ends
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
    EXPECT_EQ(tandem_engine_answer(engine_, work.call, wrong, ~uint64_t{0}),
              TANDEM_MESSAGE_TOO_LARGE);
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
  const uint16_t methods[] = {static_cast<uint16_t>(rpc::MethodId::SetPaused),
                              static_cast<uint16_t>(rpc::MethodId::GetEntity),
                              static_cast<uint16_t>(rpc::MethodId::ResetAgent)};
  tandem_engine_options options = Options();
  options.methods = methods;
  options.method_count = 3;
  EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "found SetPaused, ResetAgent;"))
      << LastError();
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
    EXPECT_TRUE(absl::StrContains(LastError(), "expected 144")) << LastError();
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

TEST_F(ApiTest, OptionsThatAreNoValuesAreNamed) {
  const auto expect = [](const tandem_engine_options& options,
                         const char* field) {
    tandem_engine* engine = nullptr;
    EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine),
              TANDEM_INVALID_ARGUMENT)
        << field;
    EXPECT_TRUE(absl::StrContains(LastError(), field)) << LastError();
  };
  for (const double secs : {-0.1, double{NAN}, double{INFINITY}}) {
    tandem_engine_options options = Options();
    options.step_secs = secs;
    expect(options, "options->step_secs: ");
  }
  tandem_engine_options options = Options();
  options.stream_hz = "camera=2000";
  expect(options, "options->stream_hz: ");
  options = Options();
  options.rpc_ring_kib = 5;
  expect(options, "options->rpc_ring_kib: ");
  options = Options();
  options.image_slot_kib = uint32_t{4} << 20;
  expect(options, "options->image_slot_kib: ");
  options = Options();
  options.description =
      R"({"action_space": {"type": "Box", "low": [2], "high": [1]}})";
  expect(options, "action_space.low[0]: ");
}

TEST_F(ApiTest, OptionsOfVersion1_1TakeEffect) {
  tandem_engine_options options = Options();
  options.stream_hz = "telemetry=5";
  options.rpc_ring_kib = 64;
  Start(options);
  tandem_client* const client = Attach();
  EXPECT_EQ(PeekRegion(name_).value().cmd_ring_size, 64u * 1024);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ApiTest, AcceptsTheShorterStructOfVersion1_0) {
  tandem_engine_options options = Options();
  options.stream_hz = "behind the end";
  options.struct_size = 80;
  EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_), TANDEM_OK)
      << LastError();
}

TEST(Api, ServicesHaveNames) {
  EXPECT_STREQ(tandem_service_name(0), "agent");
  EXPECT_STREQ(tandem_service_name(6), "debug");
  EXPECT_STREQ(tandem_service_name(7), "own");
  EXPECT_EQ(tandem_service_name(8), nullptr);
  EXPECT_EQ(tandem_service_name(~0U), nullptr);
}

// The program could not read the image, and the library would release it.
// A client's call returns the error, with a text that contains `text`.
void ExpectError(tandem_client* client, const rpc::EnvelopeT& call,
                 int32_t code, const char* text) {
  const PackedCall packed(call);
  uint8_t* answer = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(tandem_rpc_call(tandem_client_rpc(client), packed.bytes().data(),
                            packed.bytes().size(), 60, &answer, &size),
            code);
  EXPECT_TRUE(absl::StrContains(LastError(), text)) << LastError();
}

TEST_F(ApiTest, ACallRequestsNoImageInASlot) {
  const uint16_t methods[] = {
      static_cast<uint16_t>(rpc::MethodId::GetCameraFrame)};
  tandem_engine_options options = Options();
  options.methods = methods;
  options.method_count = 1;
  counter_.before = [this](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_CALL) return 0;
    const auto* const request =
        rpc::GetEnvelope(work.envelope)->payload_as_GetCameraFrameRequest();
    EXPECT_TRUE(request != nullptr && !request->to_slot());
    EXPECT_EQ(tandem_engine_refuse(engine_, work.call, TANDEM_UNSUPPORTED,
                                   "no camera"),
              TANDEM_OK);
    return 0;
  };
  Start(options);
  tandem_client* const client = Attach();
  rpc::GetCameraFrameRequestT request;
  request.to_slot = true;
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::GetCameraFrame;
  call.payload.Set(request);
  ExpectError(client, call, TANDEM_UNSUPPORTED, "no camera");
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
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
  ExpectError(client, call, TANDEM_ENGINE_FAILED, "no such scene");
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
  // An answer of another thread: the text says where it belongs.
  EXPECT_EQ(tandem_engine_refuse(engine_, 1, TANDEM_UNSUPPORTED, "late"),
            TANDEM_CONCURRENT_USE);
  EXPECT_TRUE(absl::StrContains(LastError(), "tandem_engine_poll"))
      << LastError();
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
        tandem_engine_stopping(engine_) == 1 &&
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

}  // namespace
}  // namespace tandem
