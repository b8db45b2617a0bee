// Shapes: triangles of simple bodies, for GlbBuilder.
//
// Data flow: a body's measures -> positions, normals, texture coordinates,
// triangles.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

// Triangles show their front if their corners turn left.
struct Shape {
  std::vector<float> positions;   // [vertices, 3]
  std::vector<float> normals;     // [vertices, 3], unit vectors
  std::vector<float> uvs;         // [vertices, 2]; empty: none
  std::vector<uint32_t> indices;  // [triangles, 3]
  // Of skins: [vertices, 4], numbers of joints and their weights.
  std::vector<uint16_t> joints = {};
  std::vector<float> weights = {};

  size_t vertices() const { return positions.size() / 3; }
  // Returns the new vertex's number.
  uint32_t Add(const std::array<float, 3>& position,
               const std::array<float, 3>& normal,
               const std::array<float, 2>& uv);
};

// Centred at the origin; the axis of round shapes is z.
Shape Box(float half_x, float half_y, float half_z);
Shape Sphere();                                  // of radius 1
Shape Cylinder();                                // of radius 1, from z -1 to 1
Shape Capsule(float radius, float half_length);  // without the caps
// In the plane z = 0, seen from above. Texture coordinates go from minus half
// of `repeats` to plus half.
Shape Quad(float half_x, float half_y, const std::array<float, 2>& repeats);

// float[rows, columns] of heights from 0, over a rectangle, with walls down to
// -base.
Shape HeightField(std::span<const float> heights, uint32_t rows,
                  uint32_t columns, float half_x, float half_y, float base);

// Sets the normals to the mean of the faces around each vertex.
void SmoothNormals(Shape* shape);

// Returns the shape with the texture coordinates of a cube map whose six faces
// (+x, -x, +y, -y, +z, -z) are one above the other in a texture. Each triangle
// is in the face to which its middle points from the origin.
Shape CubeMapped(const Shape& shape);

}  // namespace tandem
