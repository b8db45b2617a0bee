// ExecPointers: strings as exec and posix_spawn take them.
//
// Data flow: strings -> pointers to them, and a null one behind the last.
// Ownership: the strings stay the caller's; while the pointers are used they
// are neither changed nor moved.
//
//   std::vector<std::string> words = {"/bin/true"};
//   execv(words[0].c_str(), ExecPointers(words).data());

#ifndef TANDEM_SLOW_LANE_RUNS_EXEC_POINTERS_H_
#define TANDEM_SLOW_LANE_RUNS_EXEC_POINTERS_H_

#include <string>
#include <vector>

namespace tandem::slow_lane {

inline std::vector<char*> ExecPointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& each : strings) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_EXEC_POINTERS_H_
