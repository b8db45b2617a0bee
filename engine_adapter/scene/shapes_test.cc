#include "engine_adapter/scene/shapes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <set>
#include <vector>

namespace tandem {
namespace {

using Point = std::array<double, 3>;

Point At(const std::vector<float>& numbers, size_t i) {
  return {double{numbers[3 * i]}, double{numbers[3 * i + 1]},
          double{numbers[3 * i + 2]}};
}

double Dot(const Point& a, const Point& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Point Cross(const Point& a, const Point& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2],
          a[0] * b[1] - a[1] * b[0]};
}

Point Minus(const Point& a, const Point& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}

// The volume inside the triangles: positive if their fronts are outside.
double Volume(const Shape& shape) {
  double volume = 0;
  for (size_t i = 0; i < shape.indices.size(); i += 3) {
    volume += Dot(At(shape.positions, shape.indices[i]),
                  Cross(At(shape.positions, shape.indices[i + 1]),
                        At(shape.positions, shape.indices[i + 2]))) /
              6;
  }
  return volume;
}

// Whether normals have length 1 and point to the front of their triangles.
void ExpectNormalsOutward(const Shape& shape) {
  ASSERT_EQ(shape.normals.size(), shape.positions.size());
  ASSERT_EQ(shape.uvs.size() / 2, shape.vertices());
  for (size_t i = 0; i < shape.indices.size(); i += 3) {
    const Point a = At(shape.positions, shape.indices[i]);
    const Point front =
        Cross(Minus(At(shape.positions, shape.indices[i + 1]), a),
              Minus(At(shape.positions, shape.indices[i + 2]), a));
    for (size_t corner = i; corner < i + 3; ++corner) {
      const Point normal = At(shape.normals, shape.indices[corner]);
      EXPECT_NEAR(Dot(normal, normal), 1, 1e-4);
      EXPECT_GE(Dot(normal, front), -1e-6);
    }
  }
}

TEST(Shapes, AreClosedAndOfTheRightVolume) {
  constexpr double kPi = std::numbers::pi;
  EXPECT_NEAR(Volume(Box(1, 2, 3)), 48, 1e-3);
  EXPECT_NEAR(Volume(Sphere()), 4 * kPi / 3, 0.15);
  EXPECT_NEAR(Volume(Cylinder()), 2 * kPi, 0.1);
  EXPECT_NEAR(Volume(Capsule(0.5F, 2)), kPi * (4.0 / 3 / 8 + 1), 0.1);
  const std::vector<float> heights = {1, 2, 3, 1, 2, 3};
  Shape field = HeightField(heights, 2, 3, 2, 1, 0.5F);
  // The bottom is open: what lies under it down to z = 0 is missing.
  for (const Shape& shape : {Box(1, 2, 3), Sphere(), Cylinder(),
                             Capsule(0.5F, 2), Quad(2, 3, {4, 4})}) {
    ExpectNormalsOutward(shape);
  }
  EXPECT_EQ(field.indices.size(), 3 * (2 * 2 + 2 * 6));
}

TEST(Shapes, AHeightFieldsTopShowsUpAndItsWallsOutward) {
  const std::vector<float> heights(20, 1.0F);
  const Shape field = HeightField(heights, 4, 5, 2, 3, 0.5F);
  for (size_t i = 0; i < field.vertices(); ++i) {
    const Point at = At(field.positions, i);
    const Point normal = At(field.normals, i);
    if (i < 20) {
      EXPECT_NEAR(normal[2], 1, 1e-6);
    } else {
      EXPECT_NEAR(normal[2], 0, 1e-6);
      EXPECT_GT(Dot(normal, {at[0], at[1], 0}), 0);
    }
  }
}

TEST(Shapes, ACubeMapsTrianglesStayInTheirFace) {
  const Shape mapped = CubeMapped(Box(1, 1, 1));
  std::set<int> faces;
  for (size_t i = 0; i < mapped.indices.size(); i += 3) {
    const int face =
        static_cast<int>(mapped.uvs[2 * mapped.indices[i] + 1] * 6);
    const Point normal = At(mapped.normals, mapped.indices[i]);
    const int axis = face / 2;
    EXPECT_NEAR(normal[static_cast<size_t>(axis)], face % 2 == 0 ? 1 : -1,
                1e-6);
    for (size_t corner = i; corner < i + 3; ++corner) {
      const float v = mapped.uvs[2 * mapped.indices[corner] + 1] * 6;
      EXPECT_GT(v, static_cast<float>(face));
      EXPECT_LT(v, static_cast<float>(face + 1));
    }
    faces.insert(face);
  }
  EXPECT_EQ(faces.size(), 6u);
}

}  // namespace
}  // namespace tandem
