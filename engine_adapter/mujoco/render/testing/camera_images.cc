// Writes MujocoCameras' images of two environments of a model; cameras_test.py
// compares them with MuJoCo's own renderer.
//
//   camera_images MODEL.xml FOLDER STEPS
//
// Environment i is stepped with all actions equal to (i + 1) / 2. Each file in
// the folder is an image with the name ENV_WHAT_FORMAT. WHAT is camera0,
// viewport0 and so on; "marked" images have a line and an arrow, "cleared"
// images are made after they were removed. A gray16 file begins with the
// float32 depth_scale.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_ports.h"
#include "engine_adapter/image.h"
#include "engine_adapter/mujoco/model/mujoco_log.h"
#include "engine_adapter/mujoco/mujoco_tasks.h"
#include "engine_adapter/testing/engine_rig.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

class Album {
 public:
  Album(CameraPort* port, std::string folder)
      : port_(port), folder_(std::move(folder)) {}

  void Add(const ImageRequest& request, const std::string& remark = "") {
    auto drawn = std::make_shared<std::promise<absl::StatusOr<Image>>>();
    const absl::Status status =
        port_->Draw(request, drawn, [drawn](absl::StatusOr<Image> image) {
          drawn->set_value(std::move(image));
        });
    if (!status.ok()) Die(status);
    const absl::StatusOr<Image> image = drawn->get_future().get();
    if (!image.ok()) Die(image.status());
    std::ofstream file(absl::StrCat(folder_, "/", request.env, "_", remark,
                                    request.of_viewport ? "viewport" : "camera",
                                    request.index, "_", NameOf(image->format),
                                    "_", image->width, "x", image->height));
    if (request.depth) {
      file.write(reinterpret_cast<const char*>(&image->depth_scale),
                 sizeof(image->depth_scale));
    }
    file.write(reinterpret_cast<const char*>(image->data.data()),
               static_cast<std::streamsize>(image->data.size()));
  }

 private:
  CameraPort* port_;
  std::string folder_;
};

void DrawMarks(DebugPort* port, bool clear) {
  rpc::DebugDrawRequestT request;
  request.env_id = 1;
  request.clear_previous = clear;
  if (!clear) {
    request.lines.push_back(std::make_unique<rpc::DebugLineT>());
    request.lines[0]->start = std::make_unique<rpc::Vec3>(-1, 0, 1);
    request.lines[0]->end = std::make_unique<rpc::Vec3>(1, 0, 1);
    request.arrows.push_back(std::make_unique<rpc::DebugArrowT>());
    request.arrows[0]->origin = std::make_unique<rpc::Vec3>(0, -0.5F, 0.2F);
    request.arrows[0]->direction = std::make_unique<rpc::Vec3>(0.8F, 0, 0);
  }
  const absl::Status status = port->Draw(request);
  if (!status.ok()) Die(status);
}

void FillAlbum(const EnginePorts& ports, const std::string& folder) {
  Album album(ports.camera, folder);
  const auto cameras = static_cast<uint32_t>(ports.camera->Cameras().size());
  for (const uint32_t env : {0U, 1U}) {
    for (uint32_t camera = 0; camera < cameras; ++camera) {
      album.Add({.env = env, .index = camera});
      album.Add({.env = env, .index = camera, .width = 64, .height = 48});
      album.Add({.env = env, .index = camera, .depth = true});
    }
    for (const uint32_t viewport : {0U, 1U}) {
      album.Add({.env = env,
                 .of_viewport = true,
                 .index = viewport,
                 .width = 64,
                 .height = 48});
    }
  }
  ImageRequest small = {.env = 1, .width = 64, .height = 48};
  for (const ImageFormat format : {ImageFormat::kPng, ImageFormat::kJpeg}) {
    small.format = format;
    album.Add(small);
  }
  small.format = ImageFormat::kRaw;
  DrawMarks(ports.debug, /*clear=*/false);
  album.Add(small, "marked");
  small.depth = true;
  album.Add(small, "marked");
  small.depth = false;
  small.env = 0;
  album.Add(small, "marked");
  small.env = 1;
  small.of_viewport = true;
  small.width = 640;
  small.height = 480;
  album.Add(small, "marked");
  small = {.env = 1, .width = 64, .height = 48};
  DrawMarks(ports.debug, /*clear=*/true);
  album.Add(small, "cleared");
}

int Main(int argc, char** argv) {
  int steps = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &steps)) {
    std::fprintf(stderr, "usage: camera_images MODEL.xml FOLDER STEPS\n");
    return 2;
  }
  InstallMujocoLog(nullptr);
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeModelEngine(argv[1], {.num_envs = 2});
  if (!engine.ok()) Die(engine.status());
  const EnginePorts ports = (*engine)->ports();
  EngineRig rig(*std::move(engine));
  if (absl::Status status = rig.ResetAll(0); !status.ok()) Die(status);
  const size_t act_size = rig.schema().act_size;
  for (size_t i = 0; i < rig.actions.size(); ++i) {
    rig.actions[i] = static_cast<float>(1 + i / act_size) / 2;
  }
  for (int step = 0; step < steps; ++step) {
    if (absl::Status status = rig.Step(); !status.ok()) Die(status);
  }
  FillAlbum(ports, argv[2]);
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) { return tandem::Main(argc, argv); }
