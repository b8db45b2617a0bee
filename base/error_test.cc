#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "schema/layout/error_codes.h"

namespace tandem {
namespace {

struct Row {
  uint32_t number;
  ErrorCode code;
  std::string name;
  absl::StatusCode absl_code;
  std::string python_class;
  std::string meaning;
};

std::vector<Row> Table() {
#define TANDEM_ROW(number, name, absl_code, python_class, meaning)     \
  {number,        ErrorCode::name, #name, absl::StatusCode::absl_code, \
   #python_class, meaning},
  return {TANDEM_ERROR_TABLE(TANDEM_ROW)};
#undef TANDEM_ROW
}

TEST(Error, EscapesControlCharactersOfQuotedText) {
  const absl::Status status = MakeError(
      ErrorCode::kNotReady, "found \x1b[31m and \u202e\nNext: \u00fcben");
  EXPECT_EQ(status.message(),
            "found \\x1b[31m and \\xe2\\x80\\xae\nNext: \u00fcben");
  EXPECT_EQ(MakeSystemError("open", "a\nb", ENOENT).message(),
            "open: No such file or directory (a\\x0ab)");
}

TEST(MakeSystemError, AdvisesOnDescriptorLimit) {
  EXPECT_EQ(MakeSystemError("open", "a", EMFILE).message(),
            "open: Too many open files; close some, or raise ulimit -n (a)");
}

TEST(ErrorTable, NumbersItsRowsFromZeroWithoutGaps) {
  uint32_t next = 0;
  for (const Row& row : Table()) {
    EXPECT_EQ(row.number, next++) << row.name;
    EXPECT_EQ(static_cast<uint32_t>(row.code), row.number) << row.name;
  }
}

TEST(ErrorTable, NamesEachRowAndEachPythonClassOnce) {
  std::set<std::string> names;
  for (const Row& row : Table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.name.substr(0, 1), "k");
    if (row.code == ErrorCode::kOk) {
      EXPECT_EQ(row.python_class, "None");
    } else {
      EXPECT_TRUE(names.insert(row.python_class).second) << row.python_class;
    }
    EXPECT_FALSE(row.meaning.empty()) << row.name;
  }
}

TEST(ErrorTable, OnlyOkIsOk) {
  for (const Row& row : Table()) {
    EXPECT_EQ(row.absl_code == absl::StatusCode::kOk,
              row.code == ErrorCode::kOk)
        << row.name;
  }
}

TEST(MakeError, CarriesCodeAbslCodeAndMessageOfEachRow) {
  for (const Row& row : Table()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(IsKnown(row.code));
    EXPECT_EQ(NameOf(row.code), row.name.substr(1));
    EXPECT_EQ(MeaningOf(row.code), row.meaning);
    if (row.code == ErrorCode::kOk) continue;
    const absl::Status status = MakeError(row.code, "expected 1, found 2");
    EXPECT_EQ(status.code(), row.absl_code);
    EXPECT_EQ(status.message(), "expected 1, found 2");
    EXPECT_EQ(CodeOf(status), row.code);
  }
}

TEST(MakeError, KeepsANumberThatTheTableLacks) {
  const auto code = static_cast<ErrorCode>(4'000'000'000);
  EXPECT_FALSE(IsKnown(code));
  EXPECT_EQ(NameOf(code), "Unknown");
  EXPECT_FALSE(MeaningOf(code).empty());
  const absl::Status status = MakeError(code, "from the region");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(CodeOf(status), code);
}

TEST(MakeError, ReturnsAnErrorForOk) {
  EXPECT_FALSE(MakeError(ErrorCode::kOk, "a caller's mistake").ok());
}

TEST(CodeOf, OkIsOk) { EXPECT_EQ(CodeOf(absl::OkStatus()), ErrorCode::kOk); }

TEST(CodeOf, StatusWithoutPayloadMapsToFirstRowOfItsAbslCode) {
  EXPECT_EQ(CodeOf(absl::UnavailableError("")), ErrorCode::kNotReady);
  EXPECT_EQ(CodeOf(absl::AbortedError("")), ErrorCode::kPeerGone);
  EXPECT_EQ(CodeOf(absl::DeadlineExceededError("")), ErrorCode::kStepTimeout);
  EXPECT_EQ(CodeOf(absl::UnimplementedError("")), ErrorCode::kUnsupported);
  // The table has no row with this code.
  EXPECT_EQ(CodeOf(absl::OutOfRangeError("")), ErrorCode::kSystemCallFailed);
}

TEST(CodeOf, IgnoresPayloadThatIsNotANumber) {
  absl::Status status = MakeError(ErrorCode::kPeerGone, "");
  std::string url;
  status.ForEachPayload([&url](absl::string_view type_url, const absl::Cord&) {
    url = std::string(type_url);
  });
  for (const char* payload : {"", "0", "x", "-1", "99999999999"}) {
    status.SetPayload(url, absl::Cord(payload));
    EXPECT_EQ(CodeOf(status), ErrorCode::kPeerGone) << payload;
  }
}

TEST(MakeSystemError, PicksTheCodeByWhatTheCallerShouldDoNext) {
  const struct {
    int errno_value;
    ErrorCode code;
  } cases[] = {
      {EACCES, ErrorCode::kAccessDenied},
      {EPERM, ErrorCode::kAccessDenied},
      {ENOSPC, ErrorCode::kOutOfSharedMemory},
      {ENOENT, ErrorCode::kSystemCallFailed},
      {EINVAL, ErrorCode::kSystemCallFailed},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CodeOf(MakeSystemError("open", "a file", c.errno_value)), c.code)
        << c.errno_value;
  }
}

TEST(MakeSystemError, NamesCallObjectAndReason) {
  const absl::Status status = MakeSystemError("ftruncate", "demo", ENOENT);
  for (const char* fact : {"ftruncate", "demo", "No such file"}) {
    EXPECT_TRUE(absl::StrContains(status.message(), fact)) << fact;
  }
}

}  // namespace
}  // namespace tandem
