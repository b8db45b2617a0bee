// GuardedPage: a page of memory between two pages without access, so that a
// read outside it ends the test.
//
//   GuardedPage page;
//   FrameReader::Attach(page.bytes());

#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <span>

namespace tandem {

class GuardedPage {
 public:
  static constexpr size_t kBytes = 4096;

  GuardedPage() {
    void* base = mmap(nullptr, 3 * kBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = static_cast<std::byte*>(base);
    EXPECT_EQ(mprotect(base_ + kBytes, kBytes, PROT_READ | PROT_WRITE), 0);
  }
  GuardedPage(const GuardedPage&) = delete;
  GuardedPage& operator=(const GuardedPage&) = delete;
  ~GuardedPage() { munmap(base_, 3 * kBytes); }

  std::span<std::byte> bytes() { return {base_ + kBytes, kBytes}; }

 private:
  std::byte* base_;
};

}  // namespace tandem
