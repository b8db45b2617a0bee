#include "engine_adapter/scene/shapes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <utility>

namespace tandem {
namespace {

using Point = std::array<float, 3>;

constexpr uint32_t kSegments = 24;  // around an axis
constexpr uint32_t kRings = 12;     // from pole to pole
constexpr float kPi = std::numbers::pi_v<float>;

Point PointAt(const std::vector<float>& numbers, size_t vertex) {
  return {numbers[3 * vertex], numbers[3 * vertex + 1],
          numbers[3 * vertex + 2]};
}

// Two triangles between two rows of `columns` vertices each, which begin at
// `lower` and `upper`, for each pair of columns.
void Stitch(uint32_t lower, uint32_t upper, uint32_t columns, Shape* shape) {
  for (uint32_t i = 0; i + 1 < columns; ++i) {
    for (const uint32_t index : {lower + i, lower + i + 1, upper + i + 1,
                                 lower + i, upper + i + 1, upper + i}) {
      shape->indices.push_back(index);
    }
  }
}

// A ring around z of radius `radius`; `slope`: the normal's z.
uint32_t AddRing(float radius, float z, float slope, float v, Shape* shape) {
  const auto first = static_cast<uint32_t>(shape->vertices());
  const float level = std::sqrt(std::max(0.0F, 1 - slope * slope));
  for (uint32_t i = 0; i <= kSegments; ++i) {
    const float u = static_cast<float>(i) / kSegments;
    const float cos = std::cos(2 * kPi * u);
    const float sin = std::sin(2 * kPi * u);
    shape->Add({radius * cos, radius * sin, z},
               {level * cos, level * sin, slope}, {u, v});
  }
  return first;
}

// Halves of a sphere of this radius, `half_length` apart from the middle.
Shape Rounded(float radius, float half_length) {
  Shape shape;
  uint32_t below = 0;
  for (uint32_t ring = 0; ring <= kRings + 1; ++ring) {
    const bool lower = ring <= kRings / 2;
    const auto step = static_cast<float>(lower ? ring : ring - 1) / kRings;
    const float height = -std::cos(kPi * step);
    const uint32_t now =
        AddRing(radius * std::sin(kPi * step),
                radius * height + (lower ? -half_length : half_length), height,
                1 - step, &shape);
    if (ring > 0) Stitch(below, now, kSegments + 1, &shape);
    below = now;
  }
  return shape;
}

}  // namespace

uint32_t Shape::Add(const Point& position, const Point& normal,
                    const std::array<float, 2>& uv) {
  positions.insert(positions.end(), position.begin(), position.end());
  normals.insert(normals.end(), normal.begin(), normal.end());
  uvs.insert(uvs.end(), uv.begin(), uv.end());
  return static_cast<uint32_t>(vertices() - 1);
}

Shape Sphere() { return Rounded(1, 0); }

Shape Capsule(float radius, float half_length) {
  return Rounded(radius, half_length);
}

Shape Cylinder() {
  Shape shape;
  const uint32_t below = AddRing(1, -1, 0, 1, &shape);
  Stitch(below, AddRing(1, 1, 0, 0, &shape), kSegments + 1, &shape);
  for (const float end : {-1.0F, 1.0F}) {
    const uint32_t middle = shape.Add({0, 0, end}, {0, 0, end}, {0.5F, 0.5F});
    const uint32_t ring = AddRing(1, end, end, 0.5F, &shape);
    for (uint32_t i = 0; i < kSegments; ++i) {
      const uint32_t next = ring + i + 1;
      for (const uint32_t index :
           {middle, end > 0 ? ring + i : next, end > 0 ? next : ring + i}) {
        shape.indices.push_back(index);
      }
    }
  }
  return shape;
}

Shape Box(float half_x, float half_y, float half_z) {
  const Point half = {half_x, half_y, half_z};
  Shape shape;
  for (size_t axis = 0; axis < 3; ++axis) {
    for (const float side : {-1.0F, 1.0F}) {
      Point normal = {0, 0, 0};
      normal[axis] = side;
      const auto corner = [&](float right, float up) {
        Point at;
        at[axis] = side * half[axis];
        at[(axis + 1) % 3] = side * right * half[(axis + 1) % 3];
        at[(axis + 2) % 3] = up * half[(axis + 2) % 3];
        return shape.Add(at, normal, {(1 + right) / 2, (1 - up) / 2});
      };
      const uint32_t lower = corner(-1, -1);
      corner(1, -1);
      const uint32_t upper = corner(-1, 1);
      corner(1, 1);
      Stitch(lower, upper, 2, &shape);
    }
  }
  return shape;
}

Shape Quad(float half_x, float half_y, const std::array<float, 2>& repeats) {
  Shape shape;
  for (const float y : {-1.0F, 1.0F}) {
    for (const float x : {-1.0F, 1.0F}) {
      shape.Add({x * half_x, y * half_y, 0}, {0, 0, 1},
                {x * repeats[0] / 2, y * repeats[1] / 2});
    }
  }
  Stitch(0, 2, 2, &shape);
  return shape;
}

Shape HeightField(std::span<const float> heights, uint32_t rows,
                  uint32_t columns, float half_x, float half_y, float base) {
  Shape shape;
  const auto at = [&](uint32_t row, uint32_t column) -> Point {
    const auto share = [](uint32_t i, uint32_t count) {
      return 2 * static_cast<float>(i) / static_cast<float>(count - 1) - 1;
    };
    return {half_x * share(column, columns), half_y * share(row, rows),
            heights[size_t{row} * columns + column]};
  };
  const auto add = [&shape, half_x, half_y](const Point& point) {
    return shape.Add(
        point, {0, 0, 1},
        {(point[0] / half_x + 1) / 2, (point[1] / half_y + 1) / 2});
  };
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < columns; ++column) add(at(row, column));
    if (row > 0) Stitch((row - 1) * columns, row * columns, columns, &shape);
  }
  // The edge, once around; a wall's vertices are its own, for its normals.
  std::vector<Point> edge;
  for (uint32_t i = 0; i + 1 < columns; ++i) edge.push_back(at(0, i));
  for (uint32_t i = 0; i + 1 < rows; ++i) edge.push_back(at(i, columns - 1));
  for (uint32_t i = columns - 1; i > 0; --i) edge.push_back(at(rows - 1, i));
  for (uint32_t i = rows - 1; i > 0; --i) edge.push_back(at(i, 0));
  for (size_t i = 0; i < edge.size(); ++i) {
    const Point& from = edge[i];
    const Point& to = edge[(i + 1) % edge.size()];
    const uint32_t lower = add({from[0], from[1], -base});
    add({to[0], to[1], -base});
    const uint32_t upper = add(from);
    add(to);
    Stitch(lower, upper, 2, &shape);
  }
  SmoothNormals(&shape);
  return shape;
}

void SmoothNormals(Shape* shape) {
  std::ranges::fill(shape->normals, 0.0F);
  shape->normals.resize(shape->positions.size());
  for (size_t i = 0; i + 2 < shape->indices.size(); i += 3) {
    const Point a = PointAt(shape->positions, shape->indices[i]);
    const Point b = PointAt(shape->positions, shape->indices[i + 1]);
    const Point c = PointAt(shape->positions, shape->indices[i + 2]);
    for (size_t axis = 0; axis < 3; ++axis) {
      const size_t next = (axis + 1) % 3;
      const size_t last = (axis + 2) % 3;
      const float area = (b[next] - a[next]) * (c[last] - a[last]) -
                         (b[last] - a[last]) * (c[next] - a[next]);
      for (size_t corner = i; corner < i + 3; ++corner) {
        shape->normals[3 * shape->indices[corner] + axis] += area;
      }
    }
  }
  for (size_t vertex = 0; vertex < shape->vertices(); ++vertex) {
    const Point sum = PointAt(shape->normals, vertex);
    const float length = std::hypot(sum[0], sum[1], sum[2]);
    for (size_t axis = 0; axis < 3; ++axis) {
      shape->normals[3 * vertex + axis] =
          length > 0 ? sum[axis] / length : (axis == 2 ? 1.0F : 0.0F);
    }
  }
}

Shape CubeMapped(const Shape& shape) {
  Shape mapped;
  std::map<std::pair<uint32_t, float>, uint32_t> seen;  // by vertex and face
  for (size_t i = 0; i + 2 < shape.indices.size(); i += 3) {
    Point middle = {0, 0, 0};
    for (size_t corner = i; corner < i + 3; ++corner) {
      const Point at = PointAt(shape.positions, shape.indices[corner]);
      for (size_t axis = 0; axis < 3; ++axis) middle[axis] += at[axis];
    }
    size_t axis = 0;
    for (const size_t other : {size_t{1}, size_t{2}}) {
      if (std::abs(middle[other]) > std::abs(middle[axis])) axis = other;
    }
    const float side = middle[axis] < 0 ? -1.0F : 1.0F;
    const auto face = static_cast<float>(2 * axis) + (side < 0 ? 1.0F : 0.0F);
    for (size_t corner = i; corner < i + 3; ++corner) {
      const uint32_t vertex = shape.indices[corner];
      const auto [entry, is_new] = seen.emplace(
          std::pair(vertex, face), static_cast<uint32_t>(mapped.vertices()));
      mapped.indices.push_back(entry->second);
      if (!is_new) continue;
      const Point at = PointAt(shape.positions, vertex);
      // OpenGL's axes of a face.
      const float across = axis == 0   ? -side * at[2]
                           : axis == 1 ? at[0]
                                       : side * at[0];
      const float down = axis == 1 ? side * at[2] : -at[1];
      const float depth = std::max(std::abs(at[axis]), 1e-12F);
      const auto share = [depth](float distance) {
        constexpr float kInset = 0.002F;  // so that no neighbouring face shows
        return std::clamp((distance / depth + 1) / 2, kInset, 1 - kInset);
      };
      mapped.Add(at, PointAt(shape.normals, vertex),
                 {share(across), (face + share(down)) / 6});
    }
  }
  return mapped;
}

}  // namespace tandem
