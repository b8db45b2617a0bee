// What an engine of tandem.h has besides steps: fields, images, contracts, the
// services, drawn images, methods of its own, and arrays on a GPU.
//
// Length: a program's functions and a caller's requests for each service.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "schema/messages/hazel_rpc_generated.h"
#include "sdk/tandem.h"
#include "sdk/testing/api_fixture.h"
#include "transport/attached_frames.h"
#include "transport/attached_scene.h"
#include "transport/envelope.h"
#include "transport/frame_reader.h"
#include "transport/pose_snapshot.h"

namespace tandem {
namespace {

// The services of the fixture's Counter, with functions of the test's own.
struct Served {
  std::function<int32_t(uint32_t, uint32_t, tandem_transform*)> transform;
  std::function<int32_t(uint32_t, uint32_t, const tandem_transform&)> move;
  std::function<int32_t(uint32_t, float*, float*)> joints;
  std::function<int32_t(uint32_t, uint32_t, float)> set_control;
  std::vector<tandem_mark> marks;
};

class ServicesApiTest : public ApiTest {
 protected:
  ServicesApiTest() {
    services_.user = &served_;
    services_.entities = kEntities.data();
    services_.entity_count = kEntities.size();
    services_.transform = [](void* user, uint32_t env, uint32_t entity,
                             tandem_transform* transform) {
      return static_cast<Served*>(user)->transform(env, entity, transform);
    };
    services_.move = [](void* user, uint32_t env, uint32_t entity,
                        const tandem_transform* transform) {
      return static_cast<Served*>(user)->move(env, entity, *transform);
    };
    services_.joint_names = kJoints.data();
    services_.joint_count = services_.position_count = kJoints.size();
    services_.velocity_count = 1;
    services_.actuators = kActuators.data();
    services_.actuator_count = kActuators.size();
    services_.joints = [](void* user, uint32_t env, float* positions,
                          float* velocities) {
      return static_cast<Served*>(user)->joints(env, positions, velocities);
    };
    services_.set_control = [](void* user, uint32_t env, uint32_t actuator,
                               float value) {
      return static_cast<Served*>(user)->set_control(env, actuator, value);
    };
    services_.show_marks = [](void* user, uint32_t, const tandem_mark* marks,
                              uint32_t count) {
      static_cast<Served*>(user)->marks.assign(marks, marks + count);
      return 0;
    };
    services_.cameras = kCameras.data();
    services_.camera_count = kCameras.size();
    services_.image_width = 4;
    services_.image_height = 2;
    services_.draws_frames = 1;
    services_.contract_fields = kContractFields.data();
    services_.contract_field_count = kContractFields.size();
    services_.own_methods = kOwnMethods.data();
    services_.own_method_count = kOwnMethods.size();
  }

  tandem_engine_options WithServices() {
    tandem_engine_options options = Options();
    options.services = &services_;
    return options;
  }
  // Answers a draw with 4x2 pixels of this grey.
  tandem_code DrawnGrey(uint64_t call, uint8_t grey) {
    const std::vector<uint8_t> rgb(24, grey);
    auto image = Sized<tandem_image>();
    image.format = TANDEM_RGB8;
    image.width = 4;
    image.height = 2;
    image.data = rgb.data();
    return tandem_engine_drawn(engine_, call, &image);
  }
  Answer CallOwn(tandem_client* client, const char* name,
                 const std::string& request, std::string* text) {
    uint8_t* bytes = nullptr;
    uint64_t size = 0;
    Answer answer;
    answer.code =
        tandem_rpc_call_own(tandem_client_rpc(client), name, request.data(),
                            request.size(), 60, &bytes, &size);
    if (answer.code != TANDEM_OK) answer.error = LastError();
    text->assign(reinterpret_cast<const char*>(bytes), size);
    tandem_free(bytes);
    return answer;
  }

  static constexpr std::array<tandem_entity, 2> kEntities = {
      {{.name = "track", .components = "body"},
       {.name = "front", .components = "camera,body"}}};
  static constexpr std::array<const char*, 2> kJoints = {"x", "wheel"};
  static constexpr std::array<tandem_actuator, 1> kActuators = {
      {{.name = "motor", .low = -1, .high = 1}}};
  static constexpr std::array<const char*, 2> kCameras = {"front", "rear"};
  static constexpr std::array<const char*, 2> kContractFields = {
      "friction_range", "terrain_type"};
  static constexpr std::array<tandem_method, 3> kOwnMethods = {
      {{.name = "echo", .content_type = nullptr, .help = "returns it"},
       {.name = "fails", .content_type = "text/plain", .help = nullptr},
       {.name = "grows", .content_type = nullptr, .help = nullptr}}};

  Served served_;
  tandem_services services_ = Sized<tandem_services>();
};

std::array<float, 3> VecOf(const rpc::Vec3& vec) {
  return {vec.x(), vec.y(), vec.z()};
}

TEST_F(ApiTest, FieldsAreArraysOfTheirOwnTypes) {
  const std::array<tandem_field, 3> fields = {{{.name = "obs/image",
                                                .dtype = TANDEM_UINT8,
                                                .dimensions = 3,
                                                .shape = {2, 3, 3}},
                                               {.name = "obs/speed",
                                                .dtype = TANDEM_FLOAT64,
                                                .dimensions = 0,
                                                .shape = {}},
                                               {.name = "action/",
                                                .dtype = TANDEM_INT64,
                                                .dimensions = 0,
                                                .shape = {}}}};
  tandem_engine_options options = Options();
  options.obs_size = options.act_size = 0;
  options.fields = fields.data();
  options.field_count = fields.size();
  std::array<tandem_array, 3> arrays = {};
  counter_.before = [&](const tandem_work& work) {
    if (work.data == nullptr) return 1;  // not the counter's own work
    for (size_t i = 0; i < arrays.size(); ++i) {
      arrays[i] = Sized<tandem_array>();
      EXPECT_EQ(tandem_engine_array(engine_, fields[i].name, &arrays[i]),
                TANDEM_OK)
          << LastError();
    }
    auto* const image = static_cast<uint8_t*>(work.data[arrays[0].index]);
    auto* const speed = static_cast<double*>(work.data[arrays[1].index]);
    const auto* const action =
        static_cast<const int64_t*>(work.data[arrays[2].index]);
    for (uint32_t i = 0; i < work.count; ++i) {
      const bool steps = work.kind == TANDEM_WORK_STEP;
      const uint32_t env = steps ? work.envs[i] : work.resets[i].env;
      EXPECT_EQ(action != nullptr, steps);  // no part of a reset
      std::memset(image + 18 * env, steps ? 200 + static_cast<int>(env) : 7,
                  18);
      speed[env] = steps ? static_cast<double>(action[env]) / 3 : 0;
      if (steps) static_cast<float*>(work.data[2])[env] = 1;
    }
    return -1;
  };
  // Work that `before` has done is done.
  const auto call = [](void* user, const tandem_work* work) {
    const int32_t code = static_cast<Counter*>(user)->before(*work);
    return code == -1 ? 0 : code;
  };
  auto callbacks = Callbacks();
  callbacks.work = call;
  ASSERT_EQ(tandem_engine_create(&options, &callbacks, &engine_), TANDEM_OK)
      << LastError();
  thread_ = std::thread([this] { ran_ = tandem_engine_run(engine_); });
  tandem_client* const client = Attach();
  const tandem_array image = Array(client, "obs/image");
  EXPECT_EQ(image.dtype, uint32_t{TANDEM_UINT8});
  EXPECT_EQ(image.dimensions, 4u);
  EXPECT_EQ(image.bytes, 36u);
  EXPECT_EQ(static_cast<uint8_t*>(image.data)[20], 7);
  auto* const actions = static_cast<int64_t*>(Array(client, "action/").data);
  actions[0] = 30;
  actions[1] = int64_t{1} << 40;
  ASSERT_EQ(tandem_client_step(client, nullptr, 0, 60), TANDEM_OK)
      << LastError();
  EXPECT_EQ(static_cast<uint8_t*>(image.data)[0], 200);
  EXPECT_EQ(static_cast<uint8_t*>(image.data)[35], 201);
  EXPECT_EQ(static_cast<double*>(Array(client, "obs/speed").data)[0], 10);
  EXPECT_EQ(static_cast<double*>(Array(client, "obs/speed").data)[1],
            static_cast<double>(int64_t{1} << 40) / 3);
  // Gymnasium's spaces follow from the fields.
  std::string description(tandem_client_description(client, nullptr, 0), '\0');
  tandem_client_description(client, description.data(), description.size() + 1);
  for (const char* const part :
       {R"("dtype":"uint8","high":[255],"low":[0],"shape":[2,3,3])",
        R"("dtype":"float64","high":["inf"],"low":["-inf"],"shape":[])",
        R"("low":[-9223372036854775808])"}) {
    EXPECT_TRUE(absl::StrContains(description, part)) << description;
  }
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ApiTest, WrongFieldsAreRefusedByName) {
  struct Case {
    tandem_field field;
    const char* said;
  };
  const std::array<Case, 5> cases = {
      {{{.name = "image", .dtype = TANDEM_UINT8, .dimensions = 0, .shape = {}},
        "begins with obs/ or action/"},
       {{.name = "obs/a", .dtype = 99, .dimensions = 0, .shape = {}}, "99"},
       {{.name = "obs/a", .dtype = TANDEM_UINT8, .dimensions = 4, .shape = {}},
        "at most 3 dimensions, found 4"},
       {{.name = "obs/a", .dtype = TANDEM_UINT8, .dimensions = 1, .shape = {0}},
        "sides of 1 to"},
       {{.name = "action/",
         .dtype = TANDEM_UINT8,
         .dimensions = 0,
         .shape = {}},
        "act_size 0 beside it, found 1"}}};
  for (const Case& each : cases) {
    tandem_engine_options options = Options();
    options.obs_size = 0;
    options.fields = &each.field;
    options.field_count = 1;
    EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_),
              TANDEM_INVALID_ARGUMENT);
    EXPECT_TRUE(absl::StrContains(LastError(), each.said)) << LastError();
  }
  // Spaces of a description are those of the fields.
  const tandem_field x = {
      .name = "obs/x", .dtype = TANDEM_FLOAT32, .dimensions = 1, .shape = {2}};
  for (const auto& [space, said] : std::map<std::string, const char*>{
           {R"({"type": "Discrete", "n": 3})", "space, found none"},
           {R"({"type": "Dict", "spaces": []})", "space, found none"},
           {R"({"type": "Dict", "spaces": [["x", {"type": "Box", "low": [0],
                "high": [1], "shape": [3], "dtype": "float32"}]]})",
            R"("shape":[3],"type":"Box"}, found)"},
           {R"({"type": "Dict", "spaces": [["x", {"type": "Box",
                "low": [0, 0, 0], "high": [1], "shape": [2],
                "dtype": "float32"}]]})",
            R"("low":[0,0,0])"},
           {R"({"type": "Dict", "spaces": [["x", {"type": "Discrete",
                "n": 3}]]})",
            R"({"n":3,"type":"Discrete"}, found)"},
           {R"({"type": "Dict", "spaces": [["x", {"type": "MultiDiscrete",
                "shape": [3], "nvec": [3]}]]})",
            R"("nvec":[3])"},
           {R"({"type": "Dict", "spaces": [["x", {"type": "Box", "low": [0],
                "high": [1], "shape": [2], "dtype": "float32"}],
                ["y", {"type": "Discrete", "n": 2}]]})",
            "'/y' of obs without a field"},
           {R"({"type": "Dict", "spaces": [7]})", "options->description"}}) {
    const std::string text = R"({"observation_space": )" + space + "}";
    tandem_engine_options options = Options();
    options.obs_size = 0;
    options.fields = &x;
    options.field_count = 1;
    options.description = text.c_str();
    EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_),
              TANDEM_INVALID_ARGUMENT)
        << space;
    EXPECT_TRUE(absl::StrContains(LastError(), said)) << LastError();
  }
  // An array cannot be a Dict, too.
  const std::array<tandem_field, 2> both = {
      {{.name = "obs/a", .dtype = TANDEM_UINT8, .dimensions = 0, .shape = {}},
       {.name = "obs/a/b",
        .dtype = TANDEM_UINT8,
        .dimensions = 0,
        .shape = {}}}};
  tandem_engine_options options = Options();
  options.obs_size = 0;
  options.fields = both.data();
  options.field_count = both.size();
  EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "'/a/b' beside it"))
      << LastError();
}

TEST_F(ApiTest, TheEngineWritesTheImagesOfItsObservations) {
  tandem_engine_options options = Options();
  options.image_width = 3;
  options.image_height = 2;
  std::atomic<uint32_t> index{0};
  counter_.before = [&](const tandem_work& work) {
    if (work.data == nullptr) return 0;
    auto images = Sized<tandem_array>();
    EXPECT_EQ(tandem_engine_array(engine_, "images", &images), TANDEM_OK);
    index = images.index;
    auto* const pixels = static_cast<uint8_t*>(work.data[images.index]);
    for (uint32_t i = 0; i < work.count; ++i) {
      const bool steps = work.kind == TANDEM_WORK_STEP;
      const uint32_t env = steps ? work.envs[i] : work.resets[i].env;
      std::memset(pixels + 18 * env, steps ? 90 + static_cast<int>(env) : 5,
                  18);
    }
    return 0;
  };
  Start(options);
  tandem_client* const client = Attach();
  const tandem_array images = Array(client, "images");
  EXPECT_EQ(images.shape[1], 2u);
  EXPECT_EQ(images.shape[2], 3u);
  EXPECT_EQ(static_cast<uint8_t*>(images.data)[0], 5);
  const float actions[] = {1, 2};
  ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  EXPECT_EQ(static_cast<uint8_t*>(images.data)[17], 90);
  EXPECT_EQ(static_cast<uint8_t*>(images.data)[18], 91);
  EXPECT_EQ(index, 6u);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ServicesApiTest, ARESETHasTheContractOfItsEnvironment) {
  struct Seen {
    uint32_t env;
    bool begins;
    uint64_t seed;
    std::vector<float> friction;
    std::string terrain;
  };
  std::vector<Seen> seen;  // of the engine's thread
  counter_.before = [&](const tandem_work& work) {
    for (uint32_t i = 0; work.contracts != nullptr && i < work.count; ++i) {
      const tandem_contract* const contract = work.contracts[i];
      if (contract == nullptr) continue;
      Seen& each = seen.emplace_back(Seen{
          work.resets[i].env, contract->begins != 0, contract->seed, {}, {}});
      for (uint32_t k = 0; k < contract->range_count; ++k) {
        const tandem_range& range = contract->ranges[k];
        if (std::string(range.name) == "friction_range") {
          each.friction.assign(range.values, range.values + range.count);
        } else {
          each.terrain = range.text;
        }
      }
    }
    return 0;
  };
  Start(WithServices());
  tandem_client* client = Attach();
  rpc::ResetAgentRequestT request;
  request.env_ids = {1};
  request.seed = 40;
  request.at_next_reset = true;
  request.simulation_contract = std::make_unique<rpc::SimulationContractT>();
  request.simulation_contract->friction_range = {0.5F, 1.5F};
  request.simulation_contract->terrain_type = "ice";
  request.simulation_contract->mass_scale_range = {1, 2};
  const Answer answer = Call(client, rpc::MethodId::ResetAgent, request);
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  EXPECT_EQ(answer.envelope.payload.AsResetAgentResponse()->unused_fields,
            std::vector<std::string>{"mass_scale_range"});
  const std::array<tandem_reset, 2> resets = {{{0, 0, 0}, {1, 0, 0}}};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(tandem_client_send_reset(client, resets.data(), 2), TANDEM_OK);
    ASSERT_EQ(tandem_client_recv(client, 60), TANDEM_OK) << LastError();
  }
  request.simulation_contract->friction_range = {2, 1};
  const Answer refused = Call(client, rpc::MethodId::ResetAgent, request);
  EXPECT_EQ(refused.code, TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(refused.error, "friction_range"))
      << refused.error;
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  client = Attach();  // a later client has no contract
  ASSERT_EQ(tandem_client_send_reset(client, resets.data(), 2), TANDEM_OK);
  ASSERT_EQ(tandem_client_recv(client, 60), TANDEM_OK);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
  ASSERT_EQ(seen.size(), 2u);
  for (const Seen& each : seen) {
    EXPECT_EQ(each.env, 1u);
    EXPECT_EQ(each.seed, 41u);
    EXPECT_EQ(each.friction, (std::vector<float>{0.5F, 1.5F}));
    EXPECT_EQ(each.terrain, "ice");
  }
  EXPECT_TRUE(seen[0].begins);
  EXPECT_FALSE(seen[1].begins);
}

TEST_F(ServicesApiTest, EntitiesHavePlacesAndMove) {
  std::array<float, 3> at = {1, 2, 3};  // of entity 2 in environment 1
  served_.transform = [&](uint32_t env, uint32_t entity,
                          tandem_transform* transform) {
    if (env == 0) {
      tandem_engine_fail(engine_, "no world");
      return 1;
    }
    if (entity == 0) return 0;
    transform->has_position = 1;
    std::memcpy(transform->position, at.data(), sizeof(at));
    return 0;
  };
  served_.move = [&](uint32_t env, uint32_t entity,
                     const tandem_transform& transform) {
    EXPECT_EQ(env, 1u);
    EXPECT_EQ(entity, 1u);
    EXPECT_EQ(transform.has_rotation, 1u);
    EXPECT_EQ(transform.rotation[3], 0.5F);
    std::memcpy(at.data(), transform.position, sizeof(at));
    return 0;
  };
  Start(WithServices());
  tandem_client* const client = Attach();
  rpc::SetEntityTransformRequestT move;
  move.id = 2;
  move.env_id = 1;
  move.transform = std::make_unique<rpc::TransformT>();
  move.transform->position = std::make_unique<rpc::Vec3>(4.F, 5.F, 6.F);
  move.transform->rotation = std::make_unique<rpc::Quat>(0.F, 0.F, 0.F, 0.5F);
  const Answer moved = Call(client, rpc::MethodId::SetEntityTransform, move);
  ASSERT_EQ(moved.code, TANDEM_OK) << moved.error;
  rpc::ListEntitiesRequestT list;
  list.env_id = 1;
  list.include_transforms = list.include_components = true;
  Answer listed = Call(client, rpc::MethodId::ListEntities, list);
  ASSERT_EQ(listed.code, TANDEM_OK) << listed.error;
  const auto& entities =
      listed.envelope.payload.AsListEntitiesResponse()->entities;
  ASSERT_EQ(entities.size(), 2u);
  EXPECT_EQ(entities[0]->name, "track");
  EXPECT_EQ(entities[0]->transform->position, nullptr);
  EXPECT_EQ(entities[1]->id, 2u);
  EXPECT_EQ(entities[1]->components,
            (std::vector<std::string>{"camera", "body"}));
  EXPECT_EQ(VecOf(*entities[1]->transform->position),
            (std::array<float, 3>{4, 5, 6}));
  list.env_id = 0;  // the engine fails there
  listed = Call(client, rpc::MethodId::ListEntities, list);
  EXPECT_EQ(listed.code, TANDEM_ENGINE_FAILED);
  EXPECT_TRUE(absl::StrContains(listed.error, "no world")) << listed.error;
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ServicesApiTest, JointsControlsAndMarksReachTheEngine) {
  std::atomic<float> control{0};
  served_.joints = [](uint32_t env, float* positions, float* velocities) {
    positions[0] = 1;
    positions[1] = static_cast<float>(env);
    velocities[0] = 0.25F;
    return 0;
  };
  served_.set_control = [&](uint32_t, uint32_t actuator, float value) {
    EXPECT_EQ(actuator, 0u);
    control = value;
    return 0;
  };
  Start(WithServices());
  tandem_client* client = Attach();
  rpc::GetJointStateRequestT joints;
  joints.env_ids = {1};
  Answer answer = Call(client, rpc::MethodId::GetJointState, joints);
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  const rpc::JointStateT& state =
      *answer.envelope.payload.AsGetJointStateResponse()->state;
  EXPECT_EQ(state.positions, (std::vector<float>{1, 1}));
  EXPECT_EQ(state.velocities, (std::vector<float>{0.25F}));
  answer = Call(client, rpc::MethodId::GetTelemetrySchema,
                rpc::GetTelemetrySchemaRequestT());
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  EXPECT_EQ(answer.envelope.payload.AsGetTelemetrySchemaResponse()
                ->schema->observation_names,
            (std::vector<std::string>{"x", "wheel"}));
  rpc::SendControlRequestT send;
  send.bulk = {7};  // clipped to the actuator's range
  answer = Call(client, rpc::MethodId::SendControl, send);
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  EXPECT_EQ(control, 1);
  rpc::DebugDrawRequestT draw;
  draw.lines.push_back(std::make_unique<rpc::DebugLineT>());
  draw.lines[0]->start = std::make_unique<rpc::Vec3>(0.F, 0.F, 0.F);
  draw.lines[0]->end = std::make_unique<rpc::Vec3>(1.F, 2.F, 3.F);
  answer = Call(client, rpc::MethodId::Draw, draw);
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  client = Attach();  // begins without the first one's marks
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
  EXPECT_TRUE(served_.marks.empty());
}

TEST_F(ServicesApiTest, WhatAnEngineCannotDoIsUnsupported) {
  services_.set_control = nullptr;
  services_.move = nullptr;
  Start(WithServices());
  tandem_client* const client = Attach();
  rpc::SendControlRequestT send;
  send.bulk = {0.5F};
  Answer answer = Call(client, rpc::MethodId::SendControl, send);
  EXPECT_EQ(answer.code, TANDEM_UNSUPPORTED);
  EXPECT_TRUE(absl::StrContains(answer.error, "cannot set its actuators"))
      << answer.error;
  rpc::SetEntityTransformRequestT move;
  move.id = 1;
  move.transform = std::make_unique<rpc::TransformT>();
  move.transform->position = std::make_unique<rpc::Vec3>(1.F, 2.F, 3.F);
  answer = Call(client, rpc::MethodId::SetEntityTransform, std::move(move));
  EXPECT_EQ(answer.code, TANDEM_UNSUPPORTED) << answer.error;
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

// A file of one moving node, as another program may have made it.
std::string SceneOf(const std::string& node) {
  std::string json = R"({"asset": {"version": "2.0"}, "scenes": [{}],
      "nodes": [{"name": ")" +
                     node + R"(", "mesh": 0}]})";
  json.resize((json.size() + 3) / 4 * 4, ' ');
  const auto word = [](size_t number) {
    const auto small = static_cast<uint32_t>(number);
    return std::string(reinterpret_cast<const char*>(&small), sizeof(small));
  };
  return "glTF" + word(2) + word(20 + json.size()) + word(json.size()) +
         "JSON" + json;
}

TEST_F(ServicesApiTest, ViewersGetTheSceneAndItsPoses) {
  struct Scene {
    std::string glb = SceneOf("cart");
    int described = 0;
    int fails = 0;
  } scene;
  services_ = Sized<tandem_services>();
  services_.user = &scene;
  services_.scene = [](void* user, const uint8_t** glb, uint64_t* bytes) {
    auto* const its = static_cast<Scene*>(user);
    ++its->described;
    *glb = reinterpret_cast<const uint8_t*>(its->glb.data());
    *bytes = its->glb.size();
    return 0;
  };
  tandem_engine_options options = WithServices();
  EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(LastError(), "services->poses"));
  services_.poses = [](void* user, uint32_t env, float* poses, uint32_t nodes) {
    EXPECT_EQ(nodes, 1u);
    poses[0] = static_cast<float>(env);
    poses[6] = 1;
    return static_cast<Scene*>(user)->fails;
  };
  Start(WithServices());
  EXPECT_EQ(scene.described, 0);  // nothing is made before a viewer watches

  tandem_client* const client = Attach();
  rpc::EnvelopeT call;
  call.method = rpc::MethodId::WatchScene;
  call.payload.Set(rpc::WatchSceneRequestT());
  const PackedCall packed(call);
  uint64_t stream = 0;
  ASSERT_EQ(tandem_rpc_open(tandem_client_rpc(client), packed.bytes().data(),
                            packed.bytes().size(), &stream),
            TANDEM_OK);
  const auto step = [&] {
    const float actions[] = {0, 0};
    return tandem_client_step(client, actions, 2, 60);
  };
  const auto watch = [&](uint32_t generation) {
    for (;;) {
      EXPECT_EQ(step(), TANDEM_OK);
      auto attached = AttachedScene::Open(name_);
      if (!attached.ok()) continue;
      if (attached->reader().header().generation != generation) continue;
      PoseSnapshot snapshot;
      if (attached->reader().Next(&snapshot) != FrameReader::Found::kFrame) {
        continue;
      }
      EXPECT_EQ(snapshot.rows(), 2u);
      EXPECT_EQ(snapshot.poses(1)[0], 1);
      const auto glb = attached->reader().glb();
      return std::string(reinterpret_cast<const char*>(glb.data()), glb.size());
    }
  };
  EXPECT_EQ(watch(1), SceneOf("cart"));
  scene.glb = SceneOf("truck");
  EXPECT_EQ(tandem_engine_scene_changed(engine_), TANDEM_OK);
  EXPECT_EQ(watch(2), SceneOf("truck"));
  scene.fails = 1;  // the training goes on
  for (int i = 0; i < 100; ++i) EXPECT_EQ(step(), TANDEM_OK);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

TEST_F(ServicesApiTest, DrawsThatNoCallerWaitsForAreDropped) {
  std::atomic<bool> draws{false};
  counter_.before = [&](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_DRAW || !draws) return 0;
    EXPECT_EQ(DrawnGrey(work.call, 9), TANDEM_OK);
    return 0;
  };
  Start(WithServices());
  rpc::GetCameraFrameRequestT request;
  request.name = "front";
  rpc::EnvelopeT envelope;
  envelope.method = rpc::MethodId::GetCameraFrame;
  envelope.payload.Set(request);
  const PackedCall call(envelope);
  const auto call_by = [&](tandem_client* client, double timeout_secs) {
    uint8_t* answer = nullptr;
    uint64_t size = 0;
    const tandem_code code =
        tandem_rpc_call(tandem_client_rpc(client), call.bytes().data(),
                        call.bytes().size(), timeout_secs, &answer, &size);
    tandem_free(answer);
    return code;
  };
  tandem_client* const client = Attach();
  for (int i = 0; i < 200; ++i) {  // more than may be unanswered
    ASSERT_EQ(call_by(client, 0.001), TANDEM_STEP_TIMEOUT) << LastError();
  }
  draws = true;
  EXPECT_EQ(call_by(client, 60), TANDEM_OK) << LastError();
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ServicesApiTest, ACamerasImageIsDrawnByAnyThread) {
  std::thread drawing;
  counter_.before = [&](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_DRAW) return 0;
    const tandem_draw draw = *work.draw;
    EXPECT_EQ(draw.purpose, uint32_t{TANDEM_DRAW_CAMERA});
    EXPECT_EQ(draw.env, 1u);
    EXPECT_EQ(draw.camera, 1u);
    EXPECT_EQ(draw.width, 4u);
    EXPECT_EQ(draw.height, 2u);
    drawing = std::thread([this, draw, call = work.call] {
      // Bottom up, with alpha: red at the top, blue below it.
      std::array<uint8_t, 4 * 4 * 2> bgra = {};
      for (size_t x = 0; x < 4; ++x) {
        bgra[4 * x] = 255;           // the lower row's blue
        bgra[16 + 4 * x + 2] = 254;  // the upper row's red
      }
      auto image = Sized<tandem_image>();
      image.format = TANDEM_BGRA8;
      image.width = draw.width;
      image.height = draw.height + 1;
      image.data = bgra.data() + 16;
      image.stride = -16;
      EXPECT_EQ(tandem_engine_drawn(engine_, call, &image),
                TANDEM_INVALID_ARGUMENT);
      EXPECT_TRUE(absl::StrContains(LastError(), "expected 4x2"))
          << LastError();
      image.height = draw.height;
      image.format = TANDEM_DEPTH32F;
      EXPECT_EQ(tandem_engine_drawn(engine_, call, &image),
                TANDEM_INVALID_ARGUMENT);
      image.format = TANDEM_BGRA8;
      EXPECT_EQ(tandem_engine_drawn(engine_, call, &image), TANDEM_OK)
          << LastError();
      EXPECT_EQ(tandem_engine_drawn(engine_, call, &image),
                TANDEM_NO_STEP_PENDING);
    });
    return 0;
  };
  Start(WithServices());
  tandem_client* const client = Attach();
  rpc::GetCameraFrameRequestT request;
  request.name = "rear";
  request.env_id = 1;
  const Answer answer = Call(client, rpc::MethodId::GetCameraFrame, request);
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  const rpc::ImageFrameT& frame =
      *answer.envelope.payload.AsNamedImageFrame()->frame;
  ASSERT_EQ(frame.data.size(), 24u);
  EXPECT_EQ(frame.data[0], 254);
  EXPECT_EQ(frame.data[2], 0);
  EXPECT_EQ(frame.data[12], 0);
  EXPECT_EQ(frame.data[14], 255);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
  drawing.join();
}

TEST_F(ServicesApiTest, DepthAndRefusalsReachTheCaller) {
  counter_.before = [this](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_DRAW) return 0;
    if (work.draw->depth == 0) {
      EXPECT_EQ(tandem_engine_refuse(engine_, work.call, TANDEM_UNSUPPORTED,
                                     "no colours here"),
                TANDEM_OK);
      return 0;
    }
    const std::array<float, 8> metres = {
        1, 2, 4, std::numeric_limits<float>::infinity(), -1, 0, 3, 2};
    auto image = Sized<tandem_image>();
    image.format = TANDEM_DEPTH32F;
    image.width = 4;
    image.height = 2;
    image.data = metres.data();
    EXPECT_EQ(tandem_engine_drawn(engine_, work.call, &image), TANDEM_OK)
        << LastError();
    return 0;
  };
  Start(WithServices());
  tandem_client* const client = Attach();
  rpc::GetCameraFrameRequestT request;
  request.name = "front";
  Answer answer = Call(client, rpc::MethodId::GetCameraFrame, request);
  EXPECT_EQ(answer.code, TANDEM_UNSUPPORTED);
  EXPECT_TRUE(absl::StrContains(answer.error, "no colours here"));
  request.kind = rpc::CameraStreamKind::DEPTH;
  answer = Call(client, rpc::MethodId::GetCameraFrame, request);
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  const rpc::ImageFrameT& frame =
      *answer.envelope.payload.AsNamedImageFrame()->frame;
  EXPECT_EQ(frame.format, "gray16");
  const auto metres = [&](size_t pixel) {
    return frame.depth_scale *
           static_cast<float>(frame.data[2 * pixel] +
                              256 * frame.data[2 * pixel + 1]);
  };
  EXPECT_NEAR(metres(0), 1, 1e-3);
  EXPECT_NEAR(metres(2), 4, 1e-3);
  EXPECT_NEAR(metres(3), 4, 1e-3);  // nothing there: the farthest
  EXPECT_EQ(metres(4), 0);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ServicesApiTest, FramesAreDrawnWhileSomeoneWatches) {
  auto frames = Sized<tandem_frames>();
  frames.width = 4;
  frames.height = 2;
  frames.hz = 200;
  tandem_engine_options options = WithServices();
  options.frames = &frames;
  std::atomic<int> draws{0};
  counter_.before = [&](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_DRAW) return 0;
    EXPECT_EQ(work.draw->purpose, uint32_t{TANDEM_DRAW_FRAME});
    EXPECT_GT(work.draw->patience_secs, 0);
    ++draws;
    EXPECT_EQ(DrawnGrey(work.call, static_cast<uint8_t>(100 + work.draw->env)),
              TANDEM_OK)
        << LastError();
    return 0;
  };
  Start(options);
  tandem_client* const client = Attach();
  const float actions[] = {1, 2};
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  }
  EXPECT_EQ(draws, 0);
  absl::StatusOr<AttachedFrames> viewer = AttachedFrames::OpenRegion(name_);
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  Frame frame;
  while (viewer->reader().Next(&frame) != FrameReader::Found::kFrame) {
    ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  }
  EXPECT_FALSE(absl::StrContains(frame.metadata, "error")) << frame.metadata;
  // Two tiles beside each other or below each other.
  EXPECT_EQ(frame.pixels[0], std::byte{100});
  EXPECT_EQ(frame.pixels[2 * 4 * 2 * 3 - 1], std::byte{101});
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ServicesApiTest, AnEngineThatDrawsNothingGivesBlackFramesAndEnds) {
  auto frames = Sized<tandem_frames>();
  frames.width = 4;
  frames.height = 2;
  tandem_engine_options options = WithServices();
  options.frames = &frames;
  Start(options);
  tandem_client* const client = Attach();
  absl::StatusOr<AttachedFrames> viewer = AttachedFrames::OpenRegion(name_);
  ASSERT_TRUE(viewer.ok()) << viewer.status();
  const float actions[] = {1, 2};
  Frame frame;
  while (viewer->reader().Next(&frame) != FrameReader::Found::kFrame) {
    ASSERT_EQ(tandem_client_step(client, actions, 2, 60), TANDEM_OK);
  }
  EXPECT_TRUE(absl::StrContains(frame.metadata, "has not drawn"))
      << frame.metadata;
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ServicesApiTest, OwnMethodsTakeAndReturnBytes) {
  counter_.before = [this](const tandem_work& work) {
    if (work.kind != TANDEM_WORK_CALL) return 0;
    if (std::string(work.name) == "fails") {
      for (const int code : {0, -1, 31}) {
        EXPECT_EQ(tandem_engine_refuse(engine_, work.call,
                                       static_cast<tandem_code>(code), "no"),
                  TANDEM_INVALID_ARGUMENT);
      }
      EXPECT_EQ(
          tandem_engine_refuse(engine_, work.call, TANDEM_UNSUPPORTED, nullptr),
          TANDEM_INVALID_ARGUMENT);
      EXPECT_EQ(tandem_engine_fail(engine_, "no weather"), TANDEM_OK);
      return 5;
    }
    // Bytes that are not read: more than FlatBuffers can hold.
    const bool grows = std::string(work.name) == "grows";
    EXPECT_EQ(
        tandem_engine_answer(engine_, work.call, work.envelope,
                             grows ? uint64_t{3} << 30 : work.envelope_size),
        TANDEM_OK)
        << LastError();
    return 0;
  };
  Start(WithServices());
  tandem_client* const client = Attach();
  std::string text;
  const std::string all("\0{\"rain\": 1}\xFF", 13);
  EXPECT_EQ(CallOwn(client, "echo", all, &text).code, TANDEM_OK) << LastError();
  EXPECT_EQ(text, all);
  EXPECT_EQ(CallOwn(client, "echo", "", &text).code, TANDEM_OK) << LastError();
  EXPECT_EQ(text, "");
  const std::string large(size_t{3} << 20, 'x');  // in pieces
  EXPECT_EQ(CallOwn(client, "echo", large, &text).code, TANDEM_OK);
  EXPECT_EQ(text, large);
  EXPECT_EQ(CallOwn(client, "grows", "", &text).code, TANDEM_MESSAGE_TOO_LARGE);
  uint8_t* none = nullptr;
  uint64_t none_size = 0;
  for (const uint64_t size : {(uint64_t{64} << 20) + 1, uint64_t{1} << 31}) {
    EXPECT_EQ(tandem_rpc_call_own(tandem_client_rpc(client), "echo",
                                  large.data(), size, 60, &none, &none_size),
              TANDEM_MESSAGE_TOO_LARGE);
  }
  Answer answer = CallOwn(client, "fails", "", &text);
  EXPECT_EQ(answer.code, TANDEM_ENGINE_FAILED);
  EXPECT_TRUE(absl::StrContains(answer.error, "no weather")) << answer.error;
  answer = CallOwn(client, "snow", "", &text);
  EXPECT_EQ(answer.code, TANDEM_INVALID_ARGUMENT);
  EXPECT_TRUE(
      absl::StrContains(answer.error, "echo, fails, grows; found 'snow'"))
      << answer.error;
  std::string description(tandem_client_description(client, nullptr, 0), '\0');
  tandem_client_description(client, description.data(), description.size() + 1);
  EXPECT_TRUE(absl::StrContains(
      description, R"("content_type":"text/plain","help":"","name":"fails")"))
      << description;
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  Stop();
}

TEST_F(ServicesApiTest, ATickedEngineGetsCallsAndDrawsAsWork) {
  tandem_engine_options options = WithServices();
  ASSERT_EQ(tandem_engine_create(&options, nullptr, &engine_), TANDEM_OK)
      << LastError();
  std::atomic<bool> over{false};
  std::thread loop([&] {
    auto work = Sized<tandem_work>();
    while (!over) {
      ASSERT_EQ(tandem_engine_next(engine_, 0.01, &work), TANDEM_OK);
      counter_.Do(work);
      if (work.kind == TANDEM_WORK_RESET || work.kind == TANDEM_WORK_STEP) {
        ASSERT_EQ(tandem_engine_done(engine_, nullptr), TANDEM_OK);
      }
      if (work.kind == TANDEM_WORK_CALL) {
        ASSERT_EQ(tandem_engine_answer(engine_, work.call, work.envelope,
                                       work.envelope_size),
                  TANDEM_OK);
      }
      if (work.kind == TANDEM_WORK_DRAW) {
        ASSERT_EQ(DrawnGrey(work.call, 9), TANDEM_OK);
      }
    }
  });
  tandem_client* const client = Attach();
  std::string text;
  EXPECT_EQ(CallOwn(client, "echo", "hi", &text).code, TANDEM_OK);
  EXPECT_EQ(text, "hi");
  rpc::GetCameraFrameRequestT request;
  request.name = "front";
  const Answer answer = Call(client, rpc::MethodId::GetCameraFrame, request);
  ASSERT_EQ(answer.code, TANDEM_OK) << answer.error;
  EXPECT_EQ(answer.envelope.payload.AsNamedImageFrame()->frame->data,
            std::vector<uint8_t>(24, 9));
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
  over = true;
  loop.join();
}

TEST_F(ServicesApiTest, WrongServicesAreRefusedByName) {
  const auto refused = [this](const char* said) {
    tandem_engine_options options = WithServices();
    EXPECT_EQ(tandem_engine_create(&options, nullptr, &engine_),
              TANDEM_INVALID_ARGUMENT);
    EXPECT_TRUE(absl::StrContains(LastError(), said)) << LastError();
  };
  const tandem_services good = services_;
  services_.transform = nullptr;
  refused("services->transform");
  services_ = good;
  services_.joint_count = 1;
  refused("services->position_names");
  services_ = good;
  const tandem_actuator upside_down = {.name = "motor", .low = 1, .high = -1};
  services_.actuators = &upside_down;
  refused("services->actuators");
  services_ = good;
  const char* const unknown = "gravity_range";
  services_.contract_fields = &unknown;
  services_.contract_field_count = 1;
  refused("found 'gravity_range'");
  services_ = good;
  const std::array<tandem_method, 2> twice = {
      {{"echo", nullptr, nullptr}, {"echo", nullptr, nullptr}}};
  services_.own_methods = twice.data();
  services_.own_method_count = twice.size();
  refused("found 'echo'");
  services_ = good;
  services_.load_state = [](void*, uint32_t, const uint8_t*, uint64_t) {
    return 0;
  };
  refused("services->save_state");
  services_ = good;
  services_.struct_size = 8;
  refused("services->struct_size");
}

TEST_F(ApiTest, AnEngineWithoutServicesHasNone) {
  Start(Options());
  EXPECT_EQ(tandem_engine_enable(engine_, "camera", 1), TANDEM_UNSUPPORTED);
  EXPECT_EQ(tandem_engine_enable(engine_, "own", 1), TANDEM_UNSUPPORTED);
  auto array = Sized<tandem_array>();
  EXPECT_EQ(tandem_engine_array(engine_, "images", &array),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_engine_gpu_array(engine_, "obs", &array),
            TANDEM_UNSUPPORTED);
  EXPECT_TRUE(absl::StrContains(LastError(), "options->gpu")) << LastError();
  auto image = Sized<tandem_image>();
  EXPECT_EQ(tandem_engine_drawn(engine_, 1, &image), TANDEM_NO_STEP_PENDING);
  tandem_client* const client = Attach();
  uint8_t* answer = nullptr;
  uint64_t size = 0;
  EXPECT_EQ(tandem_rpc_call_own(tandem_client_rpc(client), "echo", nullptr, 0,
                                60, &answer, &size),
            TANDEM_UNSUPPORTED);
  EXPECT_EQ(tandem_rpc_call_own(tandem_client_rpc(client), "echo", nullptr, 1,
                                60, &answer, &size),
            TANDEM_INVALID_ARGUMENT);
  EXPECT_EQ(tandem_client_close(client), TANDEM_OK);
}

}  // namespace
}  // namespace tandem
