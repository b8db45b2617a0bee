#include "sdk/handle_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

struct opaque_thing;

namespace tandem {
namespace {

std::atomic<int> alive{0};

struct Thing {
  explicit Thing(int number) : value(number) { ++alive; }
  ~Thing() { --alive; }
  std::atomic<int> value;
};
using Table = HandleTable<Thing, opaque_thing>;

opaque_thing* Handle(uintptr_t bits) {
  return reinterpret_cast<opaque_thing*>(bits);
}

TEST(HandleTable, LeadsToItsObjectUntilItIsClosed) {
  Table table;
  opaque_thing* const handle = table.Add(std::make_unique<Thing>(7));
  {
    const Table::Use use = table.Enter(handle);
    ASSERT_TRUE(use);
    EXPECT_EQ(use->value, 7);
    EXPECT_TRUE(table.Close(use));
    EXPECT_FALSE(table.Close(use));
    EXPECT_FALSE(table.Enter(handle));
    EXPECT_EQ(alive, 1);  // while the use lasts
  }
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(table.Enter(handle));
}

TEST(HandleTable, RefusesWhatWasNeverAHandle) {
  Table table;
  const Thing on_stack(1);
  for (const uintptr_t bits :
       {uintptr_t{0}, uintptr_t{1}, uintptr_t{16}, uintptr_t{0x10010},
        uintptr_t{0x20010}, uintptr_t{0xffffffff}, ~uintptr_t{0},
        reinterpret_cast<uintptr_t>(&on_stack), uintptr_t{0x20000000410},
        uintptr_t{1} << 42 | 0x400}) {
    EXPECT_FALSE(table.Enter(Handle(bits))) << bits;
    EXPECT_FALSE(table.EnterAlone(Handle(bits))) << bits;
  }
}

TEST(HandleTable, AnOldHandleDoesNotLeadToTheNextObjectOfItsSlot) {
  Table table;
  std::set<opaque_thing*> seen;
  for (int i = 0; i < 1000; ++i) {
    opaque_thing* const handle = table.Add(std::make_unique<Thing>(i));
    EXPECT_TRUE(seen.insert(handle).second);
    const Table::Use use = table.Enter(handle);
    EXPECT_EQ(use->value, i);
    EXPECT_TRUE(table.Close(use));
  }
  for (opaque_thing* const handle : seen) EXPECT_FALSE(table.Enter(handle));
  EXPECT_EQ(alive, 0);
}

TEST(HandleTable, IsFullAtItsLimitAndFreesSlots) {
  Table table;
  std::vector<opaque_thing*> handles;
  for (size_t i = 0; i < Table::kSlots; ++i) {
    handles.push_back(table.Add(std::make_unique<Thing>(0)));
    ASSERT_NE(handles.back(), nullptr);
  }
  EXPECT_EQ(table.Add(std::make_unique<Thing>(0)), nullptr);
  EXPECT_TRUE(table.Close(table.Enter(handles.front())));
  handles.front() = table.Add(std::make_unique<Thing>(0));
  for (opaque_thing* const handle : handles) {
    EXPECT_TRUE(table.Close(table.Enter(handle)));
  }
}

TEST(HandleTable, ClosesOnlyWithoutOtherUsesIfToldSo) {
  Table table;
  opaque_thing* const handle = table.Add(std::make_unique<Thing>(7));
  const Table::Use use = table.Enter(handle);
  {
    const Table::Use other = table.Enter(handle);
    EXPECT_FALSE(table.CloseIfAlone(use));
  }
  EXPECT_TRUE(table.CloseIfAlone(use));
}

struct Adder {
  HandleTable<Adder, opaque_thing>* table;
  int left;
  ~Adder() {
    if (left == 0) return;
    opaque_thing* const next =
        table->Add(std::unique_ptr<Adder>(new Adder{table, left - 1}));
    EXPECT_TRUE(table->Close(table->Enter(next)));
  }
};

TEST(HandleTable, AnObjectMayUseTheTableInItsDestructor) {
  HandleTable<Adder, opaque_thing> table;
  opaque_thing* const first =
      table.Add(std::unique_ptr<Adder>(new Adder{&table, 3}));
  EXPECT_TRUE(table.Close(table.Enter(first)));
  EXPECT_FALSE(table.Enter(first));
}

TEST(HandleTable, OnlyOneUseIsAlone) {
  Table table;
  opaque_thing* const handle = table.Add(std::make_unique<Thing>(7));
  {
    const Table::Use other = table.Enter(handle);
    const Table::AloneUse alone = table.EnterAlone(handle);
    EXPECT_TRUE(alone);
    EXPECT_FALSE(table.EnterAlone(handle));
    EXPECT_TRUE(table.Enter(handle));
  }
  const Table::AloneUse alone = table.EnterAlone(handle);
  EXPECT_TRUE(alone);
  EXPECT_TRUE(table.Close(table.Enter(handle)));
  EXPECT_FALSE(table.EnterAlone(handle));
}

// With ThreadSanitizer.
TEST(HandleTable, WhatAloneUsesWriteIsInOrder) {
  Table table;
  opaque_thing* const handle = table.Add(std::make_unique<Thing>(0));
  int plain = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int added = 0; added < 1000;) {
        if (const Table::AloneUse use = table.EnterAlone(handle)) {
          ++plain;
          ++added;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain, 4000);
  EXPECT_TRUE(table.Close(table.Enter(handle)));
}

// With ThreadSanitizer.
TEST(HandleTable, CloseAndWaitEndsBesideThreadsThatEnterAgain) {
  Table table;
  opaque_thing* const handle = table.Add(std::make_unique<Thing>(0));
  std::atomic<int> entered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (const Table::Use use = table.Enter(handle)) ++entered;
    });
  }
  while (entered < 100) std::this_thread::yield();
  {
    const Table::Use use = table.Enter(handle);
    Table::CloseAndWait(use);
    const int before = entered;
    EXPECT_FALSE(table.Enter(handle));
    EXPECT_EQ(entered, before);
    EXPECT_EQ(alive, 1);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alive, 0);
}

// With ThreadSanitizer.
TEST(HandleTable, ThreadsEnterAndCloseTogether) {
  Table table;
  for (int round = 0; round < 200; ++round) {
    opaque_thing* const handle = table.Add(std::make_unique<Thing>(0));
    std::atomic<int> closed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        while (const Table::Use use = table.Enter(handle)) {
          if (++use->value > 100 && table.Close(use)) ++closed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(alive, 0);
  }
}

}  // namespace
}  // namespace tandem
