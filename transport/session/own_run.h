// StoreOwnRun and LoadOwnRun: the statistics of the rewards that a client
// computes itself, in the region's header.
//
// Data flow: the client -> StoreOwnRun -> own_seq and the words after it ->
// LoadOwnRun -> the engine's frames; observers read copies.
// Ownership: one writer at a time: the attached client, or the engine before it
// acknowledges the next one. Any number of readers, which never delay it.
//
//   word           writer          readers            publishes      initially
//   own_seq        client, engine  engine, observers  own_present..  0
//   own_present..  client, engine  engine, observers  no data        0
//
// own_seq does not wrap in the lifetime of a machine.
//
//   StoreOwnRun(header, run);  // the client
//   std::optional<RunSnapshot> run;
//   (void)LoadOwnRun(*header, &run);  // the engine

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "schema/layout/lrbc.h"
#include "transport/run_snapshot.h"

namespace tandem {

// Writes the statistics; nullopt: the rewards are the engine's. For a region
// with kFeatureOwnRun. Neither blocks nor allocates.
inline void StoreOwnRun(LrbcHeader* header,
                        const std::optional<RunSnapshot>& run) {
  const auto store = [](auto* word, auto value) {
    // relaxed: own_seq publishes it.
    word->store(value, std::memory_order_relaxed);
  };
  // A client that died during a write has left an odd number.
  // relaxed: only this side writes it now.
  const uint64_t writing =
      header->own_seq.load(std::memory_order_relaxed) | uint64_t{1};
  store(&header->own_seq, writing);
  // SYNC(own.overwrite): fence; the odd number before the words.
  std::atomic_thread_fence(std::memory_order_release);
  store(&header->own_present, uint64_t{run ? 1U : 0U});
  if (run) {
    store(&header->own_episodes, run->episodes);
    store(&header->own_last_reward, run->last_reward);
    store(&header->own_rolling_return, run->rolling_return);
    store(&header->own_episode_length, run->episode_length);
  }
  // SYNC(own.commit): release; the words before the number.
  header->own_seq.store(writing + 1, std::memory_order_release);
}

// Reads what was written last; nullopt: the rewards are the engine's. Returns
// false, and leaves `run` as it is, during a write. The values are untrusted.
// Neither blocks nor allocates.
[[nodiscard]] inline bool LoadOwnRun(const LrbcHeader& header,
                                     std::optional<RunSnapshot>* run) {
  const auto load = [](const auto& word) {
    // relaxed: own_seq shows whether it was overwritten.
    return word.load(std::memory_order_relaxed);
  };
  // SYNC(own.commit): acquire; the number, then the words.
  const uint64_t seq = header.own_seq.load(std::memory_order_acquire);
  if (seq % 2 != 0) return false;
  const bool present = load(header.own_present) != 0;
  const RunSnapshot found = {.last_reward = load(header.own_last_reward),
                             .rolling_return = load(header.own_rolling_return),
                             .episodes = load(header.own_episodes),
                             .episode_length = load(header.own_episode_length)};
  // SYNC(own.overwrite): fence; the words before the number's second load.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (load(header.own_seq) != seq) return false;
  *run = present ? std::optional(found) : std::nullopt;
  return true;
}

}  // namespace tandem
