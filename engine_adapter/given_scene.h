// GivenScene: a GLB that an engine's own code or another program made.
//
// Data flow: the bytes of a .glb -> a check of its structure -> SceneModel.
//
//   TANDEM_ASSIGN_OR_RETURN(SceneModel model, GivenScene(bytes));

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine_adapter/scene_source.h"

namespace tandem {

// Counts the nodes that move: those of scenes[0].extras.tandem.moving, or else
// those with a name and a mesh. Reads the JSON alone. kInvalidArgument: no GLB
// of version 2, a moving node that does not exist, or none.
absl::StatusOr<SceneModel> GivenScene(std::string glb);

}  // namespace tandem
