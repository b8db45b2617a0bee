// TreeQuery and TreeMember: which run's processes are meant, and one of them.
//
//   const TreeQuery query = QueryOf(plan.token, worker, proxy);

#ifndef TANDEM_SLOW_LANE_RUNS_TREE_QUERY_H_
#define TANDEM_SLOW_LANE_RUNS_TREE_QUERY_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "slow_lane/runs/process_identity.h"

namespace tandem::slow_lane {

struct TreeQuery {
  std::string token;  // empty: nobody belongs by a token
  // Belong while they exist; others with their numbers do not.
  std::vector<ProcessIdentity> roots;
  // Left alone, and so are the caller and process 1 at any rate. The children
  // of an excluded process belong if it is a root.
  std::vector<pid_t> excluded;
};

// Of a run: all of its processes but the proxy, as far as these are known. Who
// lost its parents is the proxy's child.
inline TreeQuery QueryOf(const std::string& token,
                         const std::optional<ProcessIdentity>& worker,
                         const std::optional<ProcessIdentity>& proxy) {
  TreeQuery query;
  query.token = token;
  if (worker.has_value()) query.roots.push_back(*worker);
  if (proxy.has_value()) {
    query.roots.push_back(*proxy);
    query.excluded.push_back(proxy->pid);
  }
  return query;
}

struct TreeMember {
  ProcessIdentity identity;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::string name;  // the program's, 15 bytes at most
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_RUNS_TREE_QUERY_H_
