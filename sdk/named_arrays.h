// NamedArrays: a region's arrays by name, with dtype and shape.
//
// Data flow: StepArrays, with the fields of a client -> tandem_array -> the
// program.
// Ownership: an engine or a client has one. Constant, so any thread may read.
//
//   const NamedArrays arrays = NamedArrays::OfEngine(side.arrays());
//   tandem_array obs;
//   absl::Status found = arrays.Find("obs", &obs);

#ifndef TANDEM_SDK_NAMED_ARRAYS_H_
#define TANDEM_SDK_NAMED_ARRAYS_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine_adapter/engine.h"
#include "schema/layout/lrbc.h"
#include "sdk/tandem.h"
#include "transport/exported_arrays.h"
#include "transport/region_spec.h"
#include "transport/step_arrays.h"

namespace tandem {

class NamedArrays {
 public:
  // `images`: those that the engine writes.
  static NamedArrays OfEngine(const StepArrays& arrays,
                              const ImageSize& images);
  // Addresses on the device.
  static NamedArrays OfGpu(const ExportedArrays& arrays, uint32_t num_envs);
  // `plan` has passed CheckHeader.
  static NamedArrays OfClient(const StepArrays& arrays, const LrbcHeader& plan);

  // kInvalidArgument: no array has the name; the text lists the names.
  // kUnsupported: a field of more dimensions than a tandem_array has.
  absl::Status Find(const char* name, tandem_array* array) const;

  // The indices of OfEngine's arrays: those of the region's rows, then of the
  // region's fields in their order.
  static constexpr uint32_t kImages = 6;
  static constexpr uint32_t kFirstField = 7;
  // Writes the memory of a work's arrays, by these indices.
  static void Fill(const ResetIo& io, std::span<void*> data);
  static void Fill(const StepIo& io, std::span<void*> data);

 private:
  struct Item {
    std::string name;
    tandem_array array;  // `dimensions` may exceed its shape, which is then 0
  };
  template <typename T>
  void Add(const char* name, std::span<T> values,
           std::initializer_list<uint64_t> shape);
  void AddField(const FieldArray& field, uint64_t num_envs, std::string name);

  std::vector<Item> items_;
};

}  // namespace tandem

#endif  // TANDEM_SDK_NAMED_ARRAYS_H_
