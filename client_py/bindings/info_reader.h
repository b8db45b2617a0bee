// InfoReader: the infos of a vector environment, from its workers' info areas.
//
// Data flow: the areas of all workers -> the dict that Gymnasium's
// SyncVectorEnv returns: arrays of num_envs values, a mask for each, in the
// same order of keys.
// Ownership: tandem.workers.infos.VectorInfos holds one; the areas' arrays
// outlive it. All calls need the GIL. Only the trainer process makes one: it
// unpickles what the workers have written, and so trusts them.

#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client_py/bindings/info_area_view.h"
#include "schema/layout/info_area.h"

namespace tandem {

// The calls read the areas of one exchange, which has ended. `chosen` has the
// indices of the areas to read, or is None for all: a worker that took no part
// in an exchange still has its earlier infos. The calls raise BrokenPeer if an
// area's bytes are invalid, and ConcurrentUse inside another call.
class InfoReader {
 public:
  // `areas`: rows of (first environment, number of environments, uint8 array).
  // `final_obs(env)` returns the last observation of an episode that ended with
  // SAME_STEP. Raises InvalidArgument.
  InfoReader(uint32_t num_envs, const pybind11::sequence& areas,
             pybind11::function final_obs);
  InfoReader(const InfoReader&) = delete;
  InfoReader& operator=(const InfoReader&) = delete;

  // Returns the dict; or None if only Gymnasium's own code can merge the infos,
  // such as those of one key with values of two types. Raises what unpickling
  // and final_obs raise.
  pybind11::object Merged(const pybind11::object& chosen);

  // Returns the infos of each environment that has some, in order: (env, final
  // info or None, info or None).
  pybind11::list Rows(const pybind11::object& chosen);

 private:
  // The array that Gymnasium makes of a key's first value.
  struct Kind {
    enum Form { kDict, kObjects, kNumbers } form;
    FieldType type = FieldType{};
    std::vector<ptrdiff_t> shape = {};  // of one environment's value
    bool operator==(const Kind&) const = default;
  };
  // A key of the dict, or of a dict in it.
  struct Node {
    int parent;  // -1: the dict itself
    pybind11::str key;
    pybind11::str mask_key;
    bool unusual;  // Gymnasium's mask of it has another key's name, or so
    // The last exchange that has the key, and its objects there. The dict owns
    // them.
    uint64_t exchange = 0;
    uint32_t kind = 0;
    PyObject* object = nullptr;
    PyObject* mask = nullptr;
  };
  // A column's node and kind.
  struct Target {
    int node;
    uint32_t kind;
  };
  struct Area {
    uint32_t first_env;
    InfoAreaView view;
    pybind11::object keeper;
    uint64_t logs = 0;
    std::vector<Target> targets = {};  // of the view's columns
  };

  std::vector<Area*> Read(const pybind11::object& chosen);
  int NodeOf(int parent, const std::string& key);
  uint32_t KindOf(Kind kind);
  void UpdateTargets(Area* area);
  bool MergeArea(Area* area);
  bool MergeRows(const Area& area, uint32_t word, uint32_t begin, uint32_t end,
                 size_t* pickle);
  // Makes the node's objects for this exchange. Returns false if it has others.
  bool Ensure(int node, uint32_t kind);
  pybind11::list Unpickled(const Area& area, size_t pickle, size_t values);
  pybind11::object Info(const Area& area, InfoPart part, uint32_t row,
                        size_t* pickle);

  const uint32_t num_envs_;
  pybind11::function final_obs_;
  pybind11::object loads_;
  std::vector<Area> areas_;
  std::vector<Node> nodes_;
  std::map<std::pair<int, std::string>, int> node_numbers_;
  std::vector<Kind> kinds_;
  int final_obs_node_;
  int final_info_node_;
  uint64_t exchange_ = 0;
  pybind11::object merged_;  // the dict in work
  bool busy_ = false;
};

}  // namespace tandem
