#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace tandem {
namespace {

constexpr char kPayloadUrl[] = "tandem/error_code";

struct Row {
  ErrorCode code;
  absl::string_view name;
  absl::StatusCode absl_code;
  absl::string_view meaning;
};

constexpr Row kRows[] = {
#define TANDEM_ROW(number, name, absl_code, python_class, meaning) \
  {ErrorCode::name, #name, absl::StatusCode::absl_code, meaning},
    TANDEM_ERROR_TABLE(TANDEM_ROW)
#undef TANDEM_ROW
};

const Row* FindRow(ErrorCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

}  // namespace

absl::Status MakeError(ErrorCode code, absl::string_view message) {
  // An absl::Status with kOk would lose message and code, and mean success.
  if (code == ErrorCode::kOk) code = ErrorCode::kInvalidArgument;
  const Row* row = FindRow(code);
  absl::Status status(
      row == nullptr ? absl::StatusCode::kUnknown : row->absl_code,
      PrintableLines(message));
  status.SetPayload(kPayloadUrl,
                    absl::Cord(absl::StrCat(static_cast<uint32_t>(code))));
  return status;
}

absl::Status MakeSystemError(absl::string_view call, absl::string_view subject,
                             int errno_value) {
  ErrorCode code = ErrorCode::kSystemCallFailed;
  if (errno_value == EACCES || errno_value == EPERM) {
    code = ErrorCode::kAccessDenied;
  } else if (errno_value == ENOSPC) {
    code = ErrorCode::kOutOfSharedMemory;
  }
  const bool is_full = errno_value == EMFILE || errno_value == ENFILE;
  return MakeError(
      code, absl::StrCat(call, ": ", std::strerror(errno_value),
                         is_full ? "; close some, or raise ulimit -n" : "",
                         " (", Printable(subject), ")"));
}

ErrorCode CodeOf(const absl::Status& status) {
  if (status.ok()) return ErrorCode::kOk;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  uint32_t number = 0;
  if (payload && absl::SimpleAtoi(std::string(*payload), &number) &&
      number != 0) {
    return static_cast<ErrorCode>(number);
  }
  for (const Row& row : kRows) {
    if (row.absl_code == status.code()) return row.code;
  }
  return ErrorCode::kSystemCallFailed;
}

absl::string_view NameOf(ErrorCode code) {
  const Row* row = FindRow(code);
  return row == nullptr ? absl::string_view("Unknown") : row->name.substr(1);
}

absl::string_view MeaningOf(ErrorCode code) {
  const Row* row = FindRow(code);
  return row == nullptr ? absl::string_view("a code unknown to this version")
                        : row->meaning;
}

bool IsKnown(ErrorCode code) { return FindRow(code) != nullptr; }

}  // namespace tandem
