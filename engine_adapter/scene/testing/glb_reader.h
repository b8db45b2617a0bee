// GlbReader: an engine's scene, read by a library that others wrote (tinygltf).
//
// Data flow: a GLB -> its nodes; poses of a snapshot -> world matrices.
//
//   GlbReader glb(model.glb);
//   glb.Pose(snapshot.poses(0));
//   glb.World(glb.Find("torso"));  // in glTF's axes

#pragma once

#include <tiny_gltf.h>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// In columns: element (row, column) is at 4 * column + row.
using Matrix = std::array<double, 16>;

Matrix operator*(const Matrix& a, const Matrix& b);
// `turn`: x, y, z, w.
Matrix Placed(const std::array<double, 3>& position,
              const std::array<double, 4>& turn,
              const std::array<double, 3>& scale = {1, 1, 1});

class GlbReader {
 public:
  // Fails the test unless tinygltf reads the file without an error or warning.
  explicit GlbReader(const std::string& glb);

  const tinygltf::Model& model() const { return model_; }
  // The nodes that move, in the order of the poses.
  const std::vector<int>& moving() const { return moving_; }
  // extras.tandem of the scene, or of a node; an empty object: none.
  const tinygltf::Value& Extras() const;
  const tinygltf::Value& Extras(int node) const;
  // The node of this name; fails the test if there is none.
  int Find(const std::string& name) const;

  // Sets the moving nodes' poses: float32[moving, 7].
  void Pose(std::span<const float> poses);
  // With the node's scale, or without.
  Matrix World(int node, bool scaled = true) const;
  // The numbers of an accessor: [count, width].
  std::vector<double> Numbers(int accessor) const;

 private:
  Matrix Local(int node, bool scaled) const;

  tinygltf::Model model_;
  std::vector<int> moving_;
  std::vector<int> parents_;
};

}  // namespace tandem
