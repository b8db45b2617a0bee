// What NumPy's SeedSequence makes of a seed: words that a generator starts
// from.
//
// Data flow: seed -> a pool of hashed words -> starting state.
// Pure functions: nothing is owned, nothing blocks or allocates.
//
//   Pcg64 bits(SeedWords(seed));

#ifndef TANDEM_ENGINE_ADAPTER_CORE_SEED_SEQUENCE_H_
#define TANDEM_ENGINE_ADAPTER_CORE_SEED_SEQUENCE_H_

#include <array>
#include <cstdint>

namespace tandem {

// Equals numpy.random.SeedSequence(seed).generate_state(4, numpy.uint64). The
// method is O'Neill's alternative to std::seed_seq: seeds that differ in a
// single bit give words that have nothing in common.
std::array<uint64_t, 4> SeedWords(uint64_t seed);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_CORE_SEED_SEQUENCE_H_
