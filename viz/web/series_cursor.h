// SeriesCursor: sends a SampleHistory piece by piece.
//
// Data flow: a history's buckets -> those that are new or have changed since
// the last call -> JSON; the browser keeps the others.
// Ownership: one view of one browser, for one number.

#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "viz/core/sample_history.h"

namespace tandem {

class SeriesCursor {
 public:
  // `from`: the index of the first sent bucket; the browser drops its own from
  // there on. Times are milliseconds after the first sample, numbers have six
  // digits. null: nothing is new.
  nlohmann::json Next(const SampleHistory& history);

 private:
  int64_t bucket_ns_ = 0;
  size_t buckets_ = 0;  // sent
  uint64_t count_ = 0;  // samples in them
};

}  // namespace tandem
