// The two sides that the fault tests kill: an engine that counts, and what a
// client must then see.
//
// Data flow: actions -> CountingServer -> obs = {steps since reset, its
// action}.
//
//   CountingServer("name").Serve();                     // in one process
//   ExpectFreshSession(ClientSide::Attach("name", {})); // in another

#ifndef TANDEM_TESTS_FAULTS_COUNTING_PEERS_H_
#define TANDEM_TESTS_FAULTS_COUNTING_PEERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/session/client_side.h"
#include "transport/session/engine_side.h"

namespace tandem {

// Environment i's observation: {steps since its reset, its first action}.
class CountingServer {
 public:
  static constexpr uint32_t kEnvs = 2;

  // Aborts with the status if the region cannot be made.
  explicit CountingServer(const std::string& name, uint32_t act_size = 1);

  // Serves that many exchanges (for ever if negative) and what comes between.
  void Serve(int exchanges = -1);

 private:
  void Advance();
  void ResetAll();

  EngineSide side_;
  std::vector<float> counts_;
};

// One step with action `action` in every environment, and whether its results
// are the `count`-th step's. Anything else than kOk is passed on.
ErrorCode StepAndCheck(ClientSide& client, float action, float count);

// gtest-asserts that a new client's first three steps count 1, 2, 3.
void ExpectFreshSession(ClientSide& client);

// gtest-asserts that neither link of the region is in /dev/shm.
void ExpectNothingLeft(const std::string& name);

}  // namespace tandem

#endif  // TANDEM_TESTS_FAULTS_COUNTING_PEERS_H_
