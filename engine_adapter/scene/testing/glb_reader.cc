#include "engine_adapter/scene/testing/glb_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tandem {

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix product = {};
  for (size_t column = 0; column < 4; ++column) {
    for (size_t row = 0; row < 4; ++row) {
      for (size_t i = 0; i < 4; ++i) {
        product[4 * column + row] += a[4 * i + row] * b[4 * column + i];
      }
    }
  }
  return product;
}

Matrix Placed(const std::array<double, 3>& position,
              const std::array<double, 4>& turn,
              const std::array<double, 3>& scale) {
  const auto [x, y, z, w] = turn;
  const Matrix turned = {1 - 2 * (y * y + z * z),
                         2 * (x * y + z * w),
                         2 * (x * z - y * w),
                         0,
                         2 * (x * y - z * w),
                         1 - 2 * (x * x + z * z),
                         2 * (y * z + x * w),
                         0,
                         2 * (x * z + y * w),
                         2 * (y * z - x * w),
                         1 - 2 * (x * x + y * y),
                         0,
                         position[0],
                         position[1],
                         position[2],
                         1};
  Matrix placed = turned;
  for (size_t column = 0; column < 3; ++column) {
    for (size_t row = 0; row < 3; ++row) {
      placed[4 * column + row] *= scale[column];
    }
  }
  return placed;
}

GlbReader::GlbReader(const std::string& glb) {
  std::string error;
  std::string warning;
  tinygltf::TinyGLTF reader;
  EXPECT_TRUE(reader.LoadBinaryFromMemory(
      &model_, &error, &warning,
      reinterpret_cast<const unsigned char*>(glb.data()),
      static_cast<unsigned int>(glb.size())));
  EXPECT_EQ(error + warning, "");
  const tinygltf::Value& moving = Extras().Get("moving");
  for (int i = 0; i < static_cast<int>(moving.ArrayLen()); ++i) {
    moving_.push_back(moving.Get(i).GetNumberAsInt());
  }
  parents_.resize(model_.nodes.size(), -1);
  for (size_t node = 0; node < model_.nodes.size(); ++node) {
    for (const int child : model_.nodes[node].children) {
      parents_[static_cast<size_t>(child)] = static_cast<int>(node);
    }
  }
}

const tinygltf::Value& GlbReader::Extras() const {
  return model_.scenes[0].extras.Get("tandem");
}

const tinygltf::Value& GlbReader::Extras(int node) const {
  static const tinygltf::Value kNone{tinygltf::Value::Object()};
  const tinygltf::Value& extras =
      model_.nodes[static_cast<size_t>(node)].extras;
  return extras.Has("tandem") ? extras.Get("tandem") : kNone;
}

int GlbReader::Find(const std::string& name) const {
  const auto found = std::ranges::find(
      model_.nodes, name, [](const auto& node) { return node.name; });
  EXPECT_NE(found, model_.nodes.end()) << name;
  return static_cast<int>(found - model_.nodes.begin());
}

void GlbReader::Pose(std::span<const float> poses) {
  ASSERT_EQ(poses.size(), 7 * moving_.size());
  for (size_t i = 0; i < moving_.size(); ++i) {
    tinygltf::Node& node = model_.nodes[static_cast<size_t>(moving_[i])];
    node.translation.assign(&poses[7 * i], &poses[7 * i] + 3);
    node.rotation.assign(&poses[7 * i + 3], &poses[7 * i + 3] + 4);
  }
}

Matrix GlbReader::Local(int node, bool scaled) const {
  const tinygltf::Node& found = model_.nodes[static_cast<size_t>(node)];
  std::array<double, 3> position = {0, 0, 0};
  std::array<double, 4> turn = {0, 0, 0, 1};
  std::array<double, 3> scale = {1, 1, 1};
  std::ranges::copy(found.translation, position.begin());
  std::ranges::copy(found.rotation, turn.begin());
  if (scaled) std::ranges::copy(found.scale, scale.begin());
  return Placed(position, turn, scale);
}

Matrix GlbReader::World(int node, bool scaled) const {
  Matrix world = Local(node, scaled);
  for (int up = parents_[static_cast<size_t>(node)]; up >= 0;
       up = parents_[static_cast<size_t>(up)]) {
    world = Local(up, scaled) * world;
  }
  return world;
}

std::vector<double> GlbReader::Numbers(int accessor) const {
  const tinygltf::Accessor& found =
      model_.accessors[static_cast<size_t>(accessor)];
  const tinygltf::BufferView& view =
      model_.bufferViews[static_cast<size_t>(found.bufferView)];
  const auto width = static_cast<size_t>(
      tinygltf::GetNumComponentsInType(static_cast<uint32_t>(found.type)));
  const auto bytes = static_cast<size_t>(tinygltf::GetComponentSizeInBytes(
      static_cast<uint32_t>(found.componentType)));
  EXPECT_EQ(found.count * width * bytes, view.byteLength);
  std::vector<double> numbers;
  for (size_t i = 0; i < found.count * width; ++i) {
    const unsigned char* const at =
        &model_.buffers[0].data[view.byteOffset + i * bytes];
    float real = 0;
    uint32_t whole = 0;
    if (found.componentType == TINYGLTF_COMPONENT_TYPE_FLOAT) {
      std::memcpy(&real, at, sizeof(real));
    } else {
      std::memcpy(&whole, at, bytes);
      real = static_cast<float>(whole);
    }
    numbers.push_back(static_cast<double>(real));
  }
  return numbers;
}

}  // namespace tandem
