// ScenePort: the entities of an engine's environments.
//
// Data flow: service scene <-> ScenePort <-> the engine's state.
// Ownership: the engine's; the thread that steps calls, between exchanges.
//
//   for (const rpc::EntityInfoT& entity : port->Entities(env, {})) ...

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_SCENE_PORT_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_SCENE_PORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Plain structs of schema/messages/hazel_rpc.fbs.
namespace tandem::rpc {
struct EntityInfoT;
struct TransformT;
}  // namespace tandem::rpc

namespace tandem {

// Ids count from 1, are the same in every environment, and don't change.
class ScenePort {
 public:
  struct Wanted {
    bool transforms = false;
    bool components = false;
  };

  virtual ~ScenePort() = default;

  virtual std::string scene_name() const = 0;
  virtual std::string scene_path() const = 0;  // empty: there is no file
  virtual uint32_t entity_count() const = 0;

  // Ordered by id. Transforms are in the world, as the last step or reset left
  // them.
  virtual std::vector<rpc::EntityInfoT> Entities(uint32_t env,
                                                 Wanted wanted) const = 0;

  // With all there is; nothing: no such entity.
  virtual std::optional<rpc::EntityInfoT> Entity(uint32_t env,
                                                 uint64_t id) const = 0;
  // The first of that name; nothing: there is none.
  virtual std::optional<uint64_t> IdOf(absl::string_view name) const = 0;

  // Moves an entity that exists, in this environment only, at once: what reads
  // transforms afterwards sees it there. Parts that are absent stay as they
  // are. kUnsupported for what cannot be moved so, or scaled;
  // kInvalidArgument for numbers that are no place or rotation.
  virtual absl::Status SetTransform(uint32_t env, uint64_t id,
                                    const rpc::TransformT& transform) = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_SCENE_PORT_H_
