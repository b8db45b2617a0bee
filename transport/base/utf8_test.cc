#include "transport/base/utf8.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

TEST(Utf8, UnicodeIsText) {
  // The first and the last of each length, and those around the surrogates.
  for (const absl::string_view text :
       {absl::string_view(), absl::string_view("\0 \x7f", 3),
        absl::string_view("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf "
                          "\xee\x80\x80 \xef\xbf\xbf \xf0\x90\x80\x80 "
                          "\xf4\x8f\xbf\xbf")}) {
    EXPECT_EQ(Utf8PrefixBytes(text), text.size());
  }
}

TEST(Utf8, WhatOnlyLooksLikeItIsNoneFromWhereItBegins) {
  for (const absl::string_view bad :
       {"\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80"}) {
    EXPECT_EQ(Utf8PrefixBytes(absl::StrCat("ab", bad)), 2u);
  }
}

}  // namespace
}  // namespace tandem
