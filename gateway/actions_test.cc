#include "gateway/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "schema/layout/error_codes.h"

namespace tandem::gateway {
namespace {

using hazel::rpc::ActionGroupEntry;
using hazel::rpc::StepRequest;
using testing::ElementsAre;
using testing::HasSubstr;

ActionGroupEntry Group(const std::string& name,
                       std::initializer_list<float> actions,
                       std::initializer_list<int> indices) {
  ActionGroupEntry group;
  group.set_group_name(name);
  for (const float action : actions) group.add_actions(action);
  for (const int index : indices) group.add_action_indices(index);
  return group;
}

StepRequest Request(std::initializer_list<float> actions) {
  StepRequest request;
  for (const float action : actions) request.add_actions(action);
  return request;
}

TEST(Actions, RequestsGroupsReplaceThoseSetBeforeAndTheActions) {
  StepRequest request = Request({1, 2, 3});
  *request.add_action_groups() = Group("arm", {9}, {1});
  std::vector<float> row(3);
  ASSERT_TRUE(
      ComposeActions(request, {{"leg", Group("leg", {7, 8}, {1, 2})}}, row)
          .ok());
  EXPECT_THAT(row, ElementsAre(1, 9, 8));
}

TEST(Actions, GroupsAloneAreWrittenOverZeros) {
  StepRequest request;
  *request.add_action_groups() = Group("arm", {9}, {1});
  std::vector<float> row = {5, 5, 5};
  ASSERT_TRUE(ComposeActions(request, {}, row).ok());
  EXPECT_THAT(row, ElementsAre(0, 9, 0));
}

TEST(Actions, WrongNumberIsRefusedWithBothNumbers) {
  std::vector<float> row(3);
  for (const StepRequest& request : {Request({}), Request({1, 2, 3, 4})}) {
    const absl::Status status = ComposeActions(request, {}, row);
    EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("expected 3 numbers, the agent's "
                                       "action_size, found ",
                                       request.actions_size())));
  }
}

TEST(Actions, NumbersThatAreNotFiniteAreRefusedWithTheirPlace) {
  std::vector<float> row(3);
  const absl::Status status =
      ComposeActions(Request({1, 2, INFINITY}), {}, row);
  EXPECT_EQ(CodeOf(status), ErrorCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("found inf at 2"));
}

TEST(Actions, InvalidGroupsAreRefused) {
  for (const ActionGroupEntry& group :
       {Group("g", {1, 2}, {0}), Group("g", {1}, {3}), Group("g", {1}, {-1}),
        Group("g", {1, 2}, {0, 0})}) {
    EXPECT_EQ(CodeOf(CheckGroup(group, 3)), ErrorCode::kInvalidArgument);
    StepRequest request = Request({1, 2, 3});
    *request.add_action_groups() = group;
    std::vector<float> row(3);
    EXPECT_FALSE(ComposeActions(request, {}, row).ok());
  }
}

}  // namespace
}  // namespace tandem::gateway
