#include "client_py/bindings/device_copies.h"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "client_py/bindings/errors.h"
#include "client_py/bindings/numpy_arrays.h"
#include "client_py/bindings/waiting.h"
#include "schema/layout/field.h"

namespace tandem {
namespace py = pybind11;

DeviceCopies::DeviceCopies(NativeClient* client, int device,
                           const py::list& views, bool overlaps)
    : client_(client) {
  const std::shared_ptr<const RegionMapping> mapping = client->side().mapping();
  std::vector<RegionCopies::Source> sources;
  for (const py::handle each : views) {
    const auto view = py::cast<py::array>(each);
    const std::optional<FieldType> type = TypeOfElements(view.ptr());
    const auto* const first = static_cast<const std::byte*>(view.data());
    const size_t bytes = static_cast<size_t>(view.nbytes());
    if (!type || (view.flags() & py::array::c_style) == 0 ||
        first < mapping->base() ||
        first + bytes > mapping->base() + mapping->bytes()) {
      RaiseInvalid("views: expected arrays of the client's region");
    }
    sources.push_back({.address = first, .bytes = bytes});
    places_.push_back({.type = *type,
                       .shape = {view.shape(), view.shape() + view.ndim()},
                       .device = device});
  }
  absl::StatusOr<std::shared_ptr<RegionCopies>> made = WithoutGil(
      [&] { return RegionCopies::Make(device, mapping, sources, overlaps); });
  if (!made.ok()) Raise(made.status(), "");
  copies_ = *std::move(made);
  client->AwaitCopies(copies_);
}

py::list DeviceCopies::Begin() {
  absl::StatusOr<uint64_t> copy;
  client_->Within([&] { copy = WithoutGil([&] { return copies_->Begin(); }); });
  if (!copy.ok()) Raise(copy.status(), "");
  const auto prepare = [copies = copies_,
                        number = *copy](std::optional<CudaStream> stream) {
    const absl::Status status =
        WithoutGil([&] { return copies->WaitOn(number, stream); });
    if (!status.ok()) Raise(status, "");
  };
  py::list arrays;
  for (size_t i = 0; i < places_.size(); ++i) {
    CudaArray::Place place = places_[i];
    place.pointer = copies_->At(*copy, i);
    arrays.append(CudaArray(std::move(place), copies_, prepare));
  }
  return arrays;
}

void DeviceCopies::TakeActions(uint64_t pointer, uint64_t bytes,
                               uintptr_t stream) {
  client_->Within([&] {
    const std::span<float> actions = client_->side().arrays().actions;
    if (bytes != actions.size_bytes()) {
      Raise(MakeError(ErrorCode::kInvalidAction,
                      absl::StrCat("actions: expected ", actions.size_bytes(),
                                   " bytes of float32, found ", bytes)),
            "");
    }
    const absl::Status status = WithoutGil([&] {
      return copies_->CopyBack(actions.data(), pointer, bytes,
                               CudaStreamOfNumber(stream));
    });
    if (!status.ok()) Raise(status, "");
  });
}

}  // namespace tandem
