// Writes a scene in glTF's binary form: a cart that moves along its track. The
// games of the archive publish it.
//
//   write_cart > cart.glb
#include <iostream>
#include <utility>

#include "engine_adapter/scene/glb_builder.h"
#include "engine_adapter/scene/shapes.h"
#include "engine_adapter/scene_source.h"

int main() {
  tandem::GlbBuilder glb(tandem::kYUp);
  const int box = glb.AddGeometry(tandem::Box(1, 1, 1));
  glb.AddMovingNode({.name = "cart",
                     .scale = {0.1F, 0.05F, 0.08F},
                     .mesh = glb.AddMesh(box, {.rgba = {1, 0.55F, 0, 1}})});
  glb.AddNode(-1, {.name = "track",
                   .position = {0, -0.06F, 0},
                   .scale = {1.1F, 0.01F, 0.03F},
                   .mesh = glb.AddMesh(box, {.rgba = {0.3F, 0.3F, 0.3F, 1}})});
  const tandem::SceneModel model =
      std::move(glb).Take({.extent = 2, .up = {0, 1, 0}, .follow = 0});
  std::cout.write(model.glb.data(), std::ssize(model.glb));
  return std::cout.flush() ? 0 : 1;
}
