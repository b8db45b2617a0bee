// One thread drives both sides of a session in turn, so that neither side ever
// waits. instructions_test counts the instructions of an exchange.
//
//   one_thread_session sides|host|attended|c ENVS OBS ACT EXCHANGES
//
// attended: the host, with an attendant that does nothing. c: an engine on the
// other side of the C interface.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "base/clock.h"
#include "engine_adapter/engine_host.h"
#include "schema/layout/error_codes.h"
#include "sdk/tandem.h"
#include "tests/end_to_end/still_engine.h"
#include "transport/attendant_side.h"
#include "transport/client_side.h"
#include "transport/memory/testing/unique_region_name.h"
#include "transport/session/engine_side.h"

namespace tandem {
namespace {

struct Arguments {
  std::string engine;
  uint32_t envs = 0;
  uint32_t obs = 0;
  uint32_t act = 0;
  int exchanges = 0;
};

// Calls `attach` while `serve_once` runs in another thread.
template <typename Attach>
auto Served(const std::function<void()>& serve_once, const Attach& attach) {
  // Writer: this thread; reader: the other.
  std::atomic<bool> attached{false};
  std::thread welcomer([&] {
    // relaxed: the flag carries no other data; join orders the rest.
    while (!attached.load(std::memory_order_relaxed)) serve_once();
  });
  auto side = attach();
  // relaxed: as above.
  attached.store(true, std::memory_order_relaxed);
  welcomer.join();
  return side;
}

absl::StatusOr<ClientSide> AttachTo(const std::string& name,
                                    const std::function<void()>& serve_once) {
  return Served(serve_once,
                [&] { return ClientSide::Attach(name, {.timeout_secs = 60}); });
}

int Failed(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

// `serve_once` serves the exchange that was just sent.
[[gnu::noinline]] int CountedExchanges(
    const Arguments& arguments, ClientSide& client,
    const std::function<void()>& serve_once) {
  const std::vector<float> actions(size_t{arguments.envs} * arguments.act,
                                   1.0F);
  for (int i = 0; i < arguments.exchanges; ++i) {
    ErrorCode code = client.Send(actions);
    if (code == ErrorCode::kOk) {
      serve_once();
      code = client.Recv(Deadline::Now());
    }
    if (code != ErrorCode::kOk) return Failed(client.Explain(code));
  }
  return 0;
}

int ExchangeWithSides(const Arguments& arguments) {
  const std::string name = UniqueRegionName("one-thread");
  absl::StatusOr<EngineSide> engine =
      EngineSide::Create(name,
                         {.num_envs = arguments.envs,
                          .obs_size = arguments.obs,
                          .act_size = arguments.act,
                          .task = "still"},
                         {});
  if (!engine.ok()) return Failed(engine.status());
  if (absl::Status status = engine->Open(); !status.ok()) return Failed(status);
  absl::StatusOr<ClientSide> client = AttachTo(name, [&] {
    if (engine->Poll() != EngineEvent::kClientArrived) return;
    engine->AcknowledgeAttach(absl::OkStatus());
  });
  if (!client.ok()) return Failed(client.status());
  return CountedExchanges(arguments, *client, [&] {
    if (engine->Poll() == EngineEvent::kExchange) engine->Publish();
  });
}

int ExchangeWithHost(const Arguments& arguments, bool attended) {
  StillEngine engine(arguments.envs, arguments.obs, arguments.act);
  EngineHost::Options options;
  options.name = UniqueRegionName("one-thread");
  const std::string name = options.name;
  absl::StatusOr<std::unique_ptr<EngineHost>> host =
      EngineHost::Create(&engine, std::move(options));
  if (!host.ok()) return Failed(host.status());
  const auto serve_once = [&] { (*host)->Poll(); };
  absl::StatusOr<ClientSide> client = AttachTo(name, serve_once);
  if (!client.ok()) return Failed(client.status());
  absl::StatusOr<std::unique_ptr<AttendantSide>> attendant = nullptr;
  if (attended) {
    attendant = Served(serve_once, [&] {
      return AttendantSide::Attach(name, {.timeout_secs = 60});
    });
    if (!attendant.ok()) return Failed(attendant.status());
  }
  return CountedExchanges(arguments, *client, serve_once);
}

int ExchangeWithC(const Arguments& arguments) {
  const std::string name = UniqueRegionName("one-thread");
  tandem_engine_options options = {};
  options.struct_size = sizeof(options);
  options.num_envs = arguments.envs;
  options.obs_size = arguments.obs;
  options.act_size = arguments.act;
  options.name = name.c_str();
  tandem_callbacks callbacks = {};
  callbacks.struct_size = sizeof(callbacks);
  callbacks.work = [](void*, const tandem_work*) { return int32_t{0}; };
  tandem_engine* engine = nullptr;
  if (tandem_engine_create(&options, &callbacks, &engine) != TANDEM_OK) {
    return 1;
  }
  const auto serve_once = [&] { (void)tandem_engine_poll(engine, nullptr); };
  int result = 1;
  {
    absl::StatusOr<ClientSide> client = AttachTo(name, serve_once);
    if (!client.ok()) return Failed(client.status());
    result = CountedExchanges(arguments, *client, serve_once);
  }
  return tandem_engine_destroy(engine) == TANDEM_OK ? result : 1;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (argc == 6) arguments.engine = argv[1];
  if (argc != 6 || !absl::SimpleAtoi(argv[2], &arguments.envs) ||
      !absl::SimpleAtoi(argv[3], &arguments.obs) ||
      !absl::SimpleAtoi(argv[4], &arguments.act) ||
      !absl::SimpleAtoi(argv[5], &arguments.exchanges) ||
      (arguments.engine != "sides" && arguments.engine != "host" &&
       arguments.engine != "attended" && arguments.engine != "c")) {
    std::fprintf(stderr,
                 "Usage: one_thread_session sides|host|attended|c ENVS OBS ACT "
                 "EXCHANGES\n");
    return 64;
  }
  if (arguments.engine == "sides") return ExchangeWithSides(arguments);
  if (arguments.engine == "c") return ExchangeWithC(arguments);
  return ExchangeWithHost(arguments, arguments.engine == "attended");
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
