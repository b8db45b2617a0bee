#include "engine_adapter/core/state_rows.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine_adapter/core/state_bytes.h"
#include "schema/layout/field.h"

namespace tandem {
namespace {

// One environment's part of an array of all.
template <typename T>
std::span<std::byte> PartOf(std::span<T> all, size_t env, size_t num_envs) {
  const size_t size = all.size() / num_envs;
  return std::as_writable_bytes(all.subspan(env * size, size));
}

// The rows of an environment: what a step or a reset returns, besides reward
// and flags.
std::vector<std::span<std::byte>> RowsOf(const StepArrays& arrays, size_t env,
                                         bool with_images) {
  std::vector<std::span<std::byte>> rows = {
      PartOf(arrays.obs, env, arrays.num_envs),
      PartOf(arrays.infos, env, arrays.num_envs)};
  for (const FieldArray& field : arrays.fields) {
    // Float32 rows are obs.
    const bool is_obs = field.role == FieldRole::kObs && arrays.obs_size == 0;
    if (is_obs || field.role == FieldRole::kStatus) {
      rows.push_back(field.Row(env));
    }
  }
  if (with_images) rows.push_back(PartOf(arrays.images, env, arrays.num_envs));
  return rows;
}

size_t BytesOf(const std::vector<std::span<std::byte>>& rows) {
  size_t bytes = 0;
  for (const std::span<std::byte> row : rows) bytes += row.size();
  return bytes;
}

}  // namespace

std::string StateRows::Format() const {
  std::string text =
      absl::StrCat("rows ", arrays_->obs_size, ", ", arrays_->info_size,
                   ", actions ", arrays_->act_size, ", bytes ",
                   BytesOf(RowsOf(*arrays_, 0, with_images_)));
  for (const FieldArray& field : arrays_->fields) {
    absl::StrAppend(&text, "; ", static_cast<int>(field.role), " ",
                    static_cast<int>(field.type), " ", field.path, " ",
                    field.row_bytes);
  }
  return text;
}

void StateRows::Save(uint32_t env, std::string* state) const {
  StateWriter to(state);
  to.Values(has_ended_(env));
  for (const std::span<std::byte> row : RowsOf(*arrays_, env, with_images_)) {
    to.Row(std::span<const std::byte>(row));
  }
}

absl::StatusOr<absl::string_view> StateRows::Stage(uint32_t env,
                                                   absl::string_view state) {
  StateReader from(state);
  Staged staged;
  staged.rows.resize(BytesOf(RowsOf(*arrays_, env, with_images_)));
  from.Values(staged.has_ended);
  from.Row(std::span(staged.rows));
  const absl::string_view rest = from.TakeRest();
  TANDEM_RETURN_IF_ERROR(from.Finish());
  staged_[env] = std::move(staged);
  return rest;
}

std::optional<bool> StateRows::Put(uint32_t env, const StepArrays& arrays) {
  const auto found = staged_.find(env);
  if (found == staged_.end()) return std::nullopt;
  const Staged staged = std::move(found->second);
  staged_.erase(found);
  const char* from = staged.rows.data();
  for (const std::span<std::byte> row : RowsOf(arrays, env, with_images_)) {
    if (row.empty()) continue;
    std::memcpy(row.data(), from, row.size());
    from += row.size();
  }
  return staged.has_ended;
}

}  // namespace tandem
