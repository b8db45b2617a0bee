// The two sides that the fault tests kill: an engine that counts, and the
// checks of the results at the client.
//
// Data flow: actions -> CountingServer -> obs = {steps since reset, its
// action}.
//
//   CountingServer("name").Serve();                     // in one process
//   ExpectFreshSession(ClientSide::Attach("name", {})); // in another

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/client_side.h"
#include "transport/session/engine_side.h"

namespace tandem {

// Environment i's observation: {steps since its reset, its first action}.
class CountingServer {
 public:
  static constexpr uint32_t kEnvs = 2;

  // Aborts with the status if it cannot create the region.
  explicit CountingServer(const std::string& name, uint32_t act_size = 1);

  // Serves `exchanges` exchanges (without limit if negative), and resets and
  // attaches between them.
  void Serve(int exchanges = -1);

 private:
  void Advance();
  void ResetAll();

  EngineSide side_;
  std::vector<float> counts_;
};

// Steps once with action `action` in every environment, and checks that the
// results are those of step number `count`. Returns any code other than kOk.
ErrorCode StepAndCheck(ClientSide& client, float action, float count);

// Asserts by gtest that a new client's first three steps count 1, 2, 3.
void ExpectFreshSession(ClientSide& client);

// Asserts by gtest that neither link of the region is in /dev/shm.
void ExpectNothingLeft(const std::string& name);

}  // namespace tandem
