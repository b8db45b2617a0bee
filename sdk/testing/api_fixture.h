// What the tests of the C interface share: an engine that counts, and a fixture
// with both sides in one process.
//
// Data flow: Start makes an engine and its thread; Attach makes a client.
//
//   TEST_F(ApiTest, Steps) {
//     Start(Options());
//     tandem_client* const client = Attach();
//     ...
//   }

#ifndef TANDEM_SDK_TESTING_API_FIXTURE_H_
#define TANDEM_SDK_TESTING_API_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/tandem.h"
#include "transport/envelope.h"
#include "transport/memory/testing/unique_region_name.h"

namespace tandem {

inline std::string LastError() {
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

// An answer of an RPC, unpacked.
struct Answer {
  tandem_code code = TANDEM_OK;
  std::string error;
  rpc::EnvelopeT envelope;
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
  // Calls the engine by RPC.
  template <typename Request>
  Answer Call(tandem_client* client, rpc::MethodId method, Request request) {
    rpc::EnvelopeT call;
    call.method = method;
    call.payload.Set(std::move(request));
    const PackedCall packed(call);
    uint8_t* bytes = nullptr;
    uint64_t size = 0;
    Answer answer;
    answer.code =
        tandem_rpc_call(tandem_client_rpc(client), packed.bytes().data(),
                        packed.bytes().size(), 60, &bytes, &size);
    if (answer.code != TANDEM_OK) {
      answer.error = LastError();
    } else {
      rpc::GetEnvelope(bytes)->UnPackTo(&answer.envelope);
    }
    tandem_free(bytes);
    return answer;
  }

  const std::string name_ = UniqueRegionName("sdk");
  Counter counter_;
  tandem_engine* engine_ = nullptr;
  tandem_code ran_ = TANDEM_OK;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SDK_TESTING_API_FIXTURE_H_
