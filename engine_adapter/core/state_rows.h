// StateRows: the part of saved states that a host keeps: an environment's rows
// in the region, and whether its episode has ended.
//
// Data flow: rows -> Save -> bytes -> Stage -> the environment's next reset ->
// Put -> rows.
// Ownership: ExchangeRunner owns it; the stepping thread calls it.
//
//   rows.Save(/*env=*/3, &state);
//   TANDEM_RETURN_IF_ERROR(rows.Stage(3, state).status());
//   std::optional<bool> has_ended = rows.Put(3, arrays);  // after its reset

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/step_arrays.h"

namespace tandem {

class StateRows {
 public:
  // `arrays` must outlive this object. `has_ended`: whether the next step would
  // reset the environment, or with autoreset disabled would be refused.
  StateRows(const StepArrays* arrays, std::function<bool(uint32_t)> has_ended)
      : arrays_(arrays), has_ended_(std::move(has_ended)) {}

  // The engine writes the observations' images itself: they are rows, too.
  void IncludeImages() { with_images_ = true; }

  // Equal for regions whose rows have the same format.
  std::string Format() const;
  // Appends the environment's rows.
  void Save(uint32_t env, std::string* state) const;
  // Takes the rows at the begin of `state`, and returns the rest, which is the
  // engine's. kInvalidArgument: they are invalid; nothing has changed.
  absl::StatusOr<absl::string_view> Stage(uint32_t env,
                                          absl::string_view state);
  void Discard(uint32_t env) { staged_.erase(env); }
  void DiscardAll() { staged_.clear(); }
  bool any_staged() const { return !staged_.empty(); }
  // Writes the staged rows into `arrays`, once, and returns whether the episode
  // had ended; nullopt: none are staged.
  std::optional<bool> Put(uint32_t env, const StepArrays& arrays);

 private:
  struct Staged {
    bool has_ended = false;
    std::string rows;
  };

  const StepArrays* arrays_;
  std::function<bool(uint32_t)> has_ended_;
  bool with_images_ = false;
  std::map<uint32_t, Staged> staged_;
};

}  // namespace tandem
