#include "client_py/bindings/region_views.h"

#include "schema/layout/field.h"

namespace tandem {
namespace py = pybind11;
namespace {

py::object ImagesView(std::span<uint8_t> images, const LrbcHeader& plan,
                      const py::capsule& keeper) {
  if (images.empty()) return py::none();
  return View(
      images,
      {plan.num_envs, plan.image_height, plan.image_width, plan.image_channels},
      keeper);
}

}  // namespace

py::capsule KeeperOf(const SharedMapping& mapping) {
  return py::capsule(new SharedMapping(mapping), [](void* shared) {
    delete static_cast<SharedMapping*>(shared);
  });
}

py::dict FieldViews(const StepArrays& arrays, const SharedMapping& mapping) {
  const py::capsule keeper = KeeperOf(mapping);
  py::dict views;
  for (const FieldArray& field : arrays.fields) {
    std::vector<py::ssize_t> shape = {arrays.num_envs};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    const py::tuple key =
        py::make_tuple(py::str(NameOf(field.role)), py::str(field.path));
    views[key] = py::array(py::dtype(NameOf(field.type)), std::move(shape),
                           field.data.data(), keeper);
  }
  return views;
}

py::dict ArrayViews(const StepArrays& arrays, const SharedMapping& mapping) {
  const py::capsule keeper = KeeperOf(mapping);
  const py::ssize_t envs = arrays.num_envs;
  py::dict views;
  views["rewards"] = View(arrays.rewards, {envs}, keeper);
  views["terminateds"] = View(arrays.terminateds, {envs}, keeper);
  views["truncateds"] = View(arrays.truncateds, {envs}, keeper);
  views["dones"] = View(arrays.dones, {envs}, keeper);
  views["resets"] = View(arrays.resets, {envs}, keeper);
  views["reset_seeds"] = View(arrays.reset_seeds, {envs}, keeper);
  return views;
}

RegionViews RegionViews::Of(const ClientSide& client) {
  const StepArrays& arrays = client.arrays();
  const LrbcHeader& plan = client.plan();
  const SharedMapping& mapping = client.mapping();
  const py::capsule keeper = KeeperOf(mapping);
  const py::ssize_t envs = plan.num_envs;
  const std::vector<py::ssize_t> of_obs = {envs, plan.obs_size};
  const std::vector<py::ssize_t> of_actions = {envs, plan.act_size};
  const std::vector<py::ssize_t> of_infos = {envs, plan.info_size};
  const InfosPlan infos = InfosOf(plan);
  RegionViews views = {
      .obs = View(arrays.obs, of_obs, keeper),
      .actions = View(arrays.actions, of_actions, keeper),
      .rewards = View(arrays.rewards, {envs}, keeper),
      .dones = View(arrays.dones, {envs}, keeper),
      .truncateds = View(arrays.truncateds, {envs}, keeper),
      .terminateds = View(arrays.terminateds, {envs}, keeper),
      .resets = View(arrays.resets, {envs}, keeper),
      .final_obs = View(arrays.final_obs, of_obs, keeper),
      .infos = View(arrays.infos, of_infos, keeper),
      .final_infos = View(arrays.final_infos, of_infos, keeper),
      .images = ImagesView(arrays.images, plan, keeper),
      .final_images = ImagesView(arrays.final_images, plan, keeper),
      .fields = FieldViews(arrays, mapping),
      .num_envs = plan.num_envs,
      .obs_size = plan.obs_size,
      .act_size = plan.act_size,
      .task = TaskOf(plan),
      .description = py::bytes(mapping->At<char>(infos.description),
                               infos.description_bytes),
      // relaxed: a private copy, for display only.
      .engine_pid = plan.server_pid.load(std::memory_order_relaxed),
      .address = reinterpret_cast<uintptr_t>(mapping->base()),
      .offsets = {}};
  views.offsets["obs"] = plan.obs_offset;
  views.offsets["actions"] = plan.act_offset;
  views.offsets["rewards"] = plan.rewards_offset;
  views.offsets["dones"] = plan.dones_offset;
  views.offsets["truncateds"] = plan.truncateds_offset;
  views.offsets["terminateds"] = plan.terminateds_offset;
  views.offsets["resets"] = plan.resets_offset;
  views.offsets["final_obs"] = plan.final_obs_offset;
  views.offsets["reset_seeds"] = plan.reset_seeds_offset;
  views.offsets["infos"] = infos.infos;
  views.offsets["final_infos"] = infos.final_infos;
  if (plan.image_offset != 0) views.offsets["images"] = plan.image_offset;
  if (!arrays.final_images.empty()) {
    views.offsets["final_images"] = ImagesOf(plan).final_images;
  }
  return views;
}

}  // namespace tandem
