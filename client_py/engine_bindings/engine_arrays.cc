#include "client_py/engine_bindings/engine_arrays.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client_py/bindings/cuda_array.h"
#include "client_py/bindings/region_views.h"
#include "schema/layout/field.h"
#include "transport/cuda.h"
#include "transport/step_arrays.h"

namespace tandem {
namespace py = pybind11;
namespace {

using Shape = std::vector<py::ssize_t>;

template <typename T>
py::array_t<T> Zeros(const Shape& shape) {
  py::array_t<T> array(shape);
  std::fill_n(array.mutable_data(), array.size(), T{0});
  return array;
}

// Returns a pair for Adaptor.arrays: (role, path) -> CudaArray, and a function
// that takes the number of the stream on which the engine writes; None: none.
// Both keep the memory.
py::object CudaArraysOf(const std::shared_ptr<ExportedArrays>& gpu,
                        uint32_t num_envs) {
  if (gpu == nullptr) return py::none();
  py::dict arrays;
  for (const FieldRecord& record : gpu->spec().arrays) {
    if (record.role == FieldRole::kFinalObs) continue;  // the host writes it
    arrays[py::make_tuple(NameOf(record.role), std::string(PathOf(record)))] =
        CudaArray(CudaArray::PlaceOf(record, num_envs, gpu->At(record),
                                     gpu->device()),
                  gpu, [](std::optional<CudaStream>) {});
  }
  return py::make_tuple(arrays, py::cpp_function([gpu](uintptr_t stream) {
                          gpu->WriteOn(CudaStreamOfNumber(stream));
                        }));
}

template <typename T, typename Array>
void CopyIn(std::span<T> from, Array* to) {
  std::ranges::copy(from, to->mutable_data());
}

template <typename T, typename Array>
void CopyOut(const Array& from, std::span<T> to) {
  std::copy_n(from.data(), to.size(), to.begin());
}

}  // namespace

EngineArrays::EngineArrays(const EngineHost& host, py::object make)
    : num_envs_(host.arrays().num_envs),
      obs_size_(host.arrays().obs_size),
      act_size_(host.arrays().act_size),
      info_size_(host.arrays().info_size),
      region_obs_(host.arrays().obs.data()),
      make_(std::move(make)),
      cuda_(CudaArraysOf(host.gpu(), num_envs_)) {
  const StepArrays& arrays = host.arrays();
  const py::capsule keeper = KeeperOf(host.mapping());
  region_ = {.obs = View(arrays.obs, {num_envs_, obs_size_}, keeper),
             .actions = View(arrays.actions, {num_envs_, act_size_}, keeper),
             .rewards = View(arrays.rewards, {num_envs_}, keeper),
             .terminateds = View(arrays.terminateds, {num_envs_}, keeper),
             .truncateds = View(arrays.truncateds, {num_envs_}, keeper),
             .infos = View(arrays.infos, {num_envs_, info_size_}, keeper),
             .object = {}};
  const auto pixels =
      static_cast<py::ssize_t>(arrays.images.size() / num_envs_);
  Finish(&region_, FieldViews(arrays, host.mapping()),
         View(arrays.images, {num_envs_, pixels}, keeper));
}

void EngineArrays::Finish(Set* set, const py::dict& fields,
                          const py::array_t<uint8_t>& images) const {
  set->object = make_(set->obs, set->actions, set->rewards, set->terminateds,
                      set->truncateds, set->infos, fields, images, cuda_);
}

// Work without an exchange: the host has no fields then.
EngineArrays::Set& EngineArrays::Copies() {
  if (!copies_) {
    Set made = {.obs = Zeros<float>({num_envs_, obs_size_}),
                .actions = Zeros<float>({num_envs_, act_size_}),
                .rewards = Zeros<float>({num_envs_}),
                .terminateds = Zeros<uint8_t>({num_envs_}),
                .truncateds = Zeros<uint8_t>({num_envs_}),
                .infos = Zeros<double>({num_envs_, info_size_}),
                .object = {}};
    Finish(&made, {}, Zeros<uint8_t>({num_envs_, 0}));
    copies_ = std::move(made);
  }
  return *copies_;
}

PyObject* EngineArrays::Begin(const StepIo& io) {
  if (IsRegion(io.obs.data())) return region_.object.ptr();
  Set& set = Copies();
  CopyIn(io.actions, &set.actions);
  CopyIn(io.obs, &set.obs);
  CopyIn(io.rewards, &set.rewards);
  CopyIn(io.terminateds, &set.terminateds);
  CopyIn(io.truncateds, &set.truncateds);
  CopyIn(io.infos, &set.infos);
  return set.object.ptr();
}

PyObject* EngineArrays::Begin(const ResetIo& io) {
  if (IsRegion(io.obs.data())) return region_.object.ptr();
  Set& set = Copies();
  CopyIn(io.obs, &set.obs);
  CopyIn(io.infos, &set.infos);
  return set.object.ptr();
}

void EngineArrays::End(const StepIo& io) {
  if (IsRegion(io.obs.data())) return;
  CopyOut(copies_->obs, io.obs);
  CopyOut(copies_->rewards, io.rewards);
  CopyOut(copies_->terminateds, io.terminateds);
  CopyOut(copies_->truncateds, io.truncateds);
  CopyOut(copies_->infos, io.infos);
}

void EngineArrays::End(const ResetIo& io) {
  if (IsRegion(io.obs.data())) return;
  CopyOut(copies_->obs, io.obs);
  CopyOut(copies_->infos, io.infos);
}

}  // namespace tandem
