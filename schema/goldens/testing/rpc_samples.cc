// Length: one sample of each message, with every field set.

#include "schema/goldens/testing/rpc_samples.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flatbuffers/flatbuffers.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {
namespace {

using namespace rpc;  // NOLINT: all names here are theirs

std::unique_ptr<Vec3> NewVec3(float x, float y, float z) {
  return std::make_unique<Vec3>(x, y, z);
}

std::unique_ptr<TransformT> SampleTransform() {
  auto transform = std::make_unique<TransformT>();
  transform->position = NewVec3(1.5F, -2.5F, 3.25F);
  transform->rotation = std::make_unique<Quat>(0.5F, -0.25F, 0.125F, 0.75F);
  transform->scale = NewVec3(2, 4, 8);
  return transform;
}

std::unique_ptr<DebugColorT> NewColor(float r, float g, float b, float a) {
  auto color = std::make_unique<DebugColorT>();
  color->r = r;
  color->g = g;
  color->b = b;
  color->a = a;
  return color;
}

std::unique_ptr<AgentSchemaT> SampleAgentSchema(const std::string& name) {
  auto schema = std::make_unique<AgentSchemaT>();
  schema->agent_name = name;
  schema->observation_names = {"height", "speed", "angle"};
  schema->action_names = {"thigh", "knee"};
  schema->observation_size = 3;
  schema->action_size = 2;
  return schema;
}

std::unique_ptr<SimulationContractT> SampleContract() {
  auto contract = std::make_unique<SimulationContractT>();
  contract->pose_position_noise = {0.125F, 0.25F, 0.375F};
  contract->pose_orientation_noise = 0.5F;
  contract->joint_position_noise = 0.625F;
  contract->joint_velocity_noise = 0.75F;
  contract->friction_range = {0.875F, 1.125F};
  contract->restitution_range = {0.0625F, 0.1875F};
  contract->mass_scale_range = {0.9375F, 1.0625F};
  contract->com_offset_range = {-0.03125F, 0.03125F};
  contract->motor_strength_range = {0.8125F, 1.1875F};
  contract->motor_offset_range = {-0.015625F, 0.015625F};
  contract->push_interval_range = {5.5F, 15.5F};
  contract->push_velocity_range = {1.25F, 1.75F};
  contract->terrain_type = "stairs";
  contract->terrain_difficulty = 0.6875F;
  contract->vel_command_x_range = {-1, 2};
  contract->vel_command_y_range = {-3, 4};
  contract->vel_command_yaw_range = {-5, 6};
  contract->vel_command_resampling_time_range = {7, 8};
  contract->vel_command_standing_probability = 0.3125F;
  return contract;
}

std::unique_ptr<EnvStateT> NewEnvState(std::vector<uint8_t> data) {
  auto state = std::make_unique<EnvStateT>();
  state->data = std::move(data);
  return state;
}

std::unique_ptr<JointStateT> SampleJointState(uint32_t env_id) {
  const float first = static_cast<float>(env_id);
  auto state = std::make_unique<JointStateT>();
  state->positions = {first + 0.5F, -0.25F, 0.125F};
  state->velocities = {first - 0.5F, 10.25F};
  state->nq = 3;
  state->nv = 2;
  state->env_id = env_id;
  return state;
}

std::unique_ptr<EntityInfoT> SampleEntity(uint64_t id) {
  auto entity = std::make_unique<EntityInfoT>();
  entity->id = id;
  entity->name = "torso";
  entity->transform = SampleTransform();
  entity->components = {"body", "geom"};
  return entity;
}

std::unique_ptr<ImageFrameT> SampleImage() {
  auto image = std::make_unique<ImageFrameT>();
  image->name = "front";
  image->data = {0x10, 0x27, 0x20, 0x4E, 0x30, 0x75,   // 2.5 m, 5 m, 7.5 m
                 0x40, 0x9C, 0x50, 0xC3, 0x60, 0xEA};  // 10 m, 12.5 m, 15 m
  image->width = 3;
  image->height = 2;
  image->channels = 1;
  image->format = "gray16";
  image->timestamp_ms = 1'700'000'000'001;
  image->frame_number = 5;
  image->depth_scale = 0.00025F;
  image->env_id = 6;
  image->frame_seq = 7'000'000'000;
  image->slot_seq = 7'000'000'002;
  image->slot_bytes = 4'001;
  image->slot = 1;
  return image;
}

template <class Response>
Response Succeeded(const std::string& message) {
  Response response;
  response.success = true;
  response.message = message;
  return response;
}

// Collects the samples, with correlation ids that need all 64 bits.
class Collection {
 public:
  template <class Message>
  EnvelopeT& Add(MethodId method, Message message) {
    EnvelopeT& envelope = Add("", method);
    envelope.payload.Set(std::move(message));
    samples_.back().name = EnumNamePayload(envelope.payload.type);
    return envelope;
  }

  EnvelopeT& Add(const std::string& name, MethodId method) {
    EnvelopeT& envelope = samples_.emplace_back(RpcSample{name, {}}).envelope;
    envelope.method = method;
    envelope.correlation_id = 0xABCD'0000'0000'0000U + samples_.size();
    return envelope;
  }

  std::vector<RpcSample> Take() && { return std::move(samples_); }

 private:
  std::vector<RpcSample> samples_;
};

void AddEnvelopes(Collection& all) {
  EnvelopeT& error = all.Add("Error", MethodId::GetEntity);
  error.error_message = "expected an entity, found none";
  error.error_code = 12;

  EnvelopeT& end = all.Add("EndOfStream", MethodId::StreamCamera);
  end.dropped = 3;
  end.end_of_stream = true;

  FragmentT fragment;
  fragment.index = 1;
  fragment.count = 3;
  fragment.total_bytes = 5'000'000'000;
  fragment.data = {1, 2, 3, 250, 255};
  all.Add(MethodId::GetCameraFrame, std::move(fragment));
}

void AddAgent(Collection& all) {
  GetAgentSchemaRequestT get;
  get.agent_name = "agent_3";
  get.env_ids = {3, 1};
  all.Add(MethodId::GetAgentSchema, get);

  GetAgentSchemaResponseT schemas;
  schemas.schema = SampleAgentSchema("agent_3");
  schemas.schemas.push_back(SampleAgentSchema("agent_3"));
  schemas.schemas.push_back(SampleAgentSchema("agent_1"));
  all.Add(MethodId::GetAgentSchema, std::move(schemas));

  ResetAgentRequestT reset;
  reset.agent_name = "agent_2";
  reset.simulation_contract = SampleContract();
  reset.env_ids = {2, 5, 4'000'000'000};
  reset.seed = 0xFEDC'BA98'7654'3210;
  reset.at_next_reset = true;
  all.Add(MethodId::ResetAgent, std::move(reset));

  auto done = Succeeded<ResetAgentResponseT>("3 environments");
  done.unused_fields = {"terrain_type", "restitution_range"};
  all.Add(MethodId::ResetAgent, std::move(done));
}

void AddMujoco(Collection& all) {
  GetJointStateRequestT get;
  get.robot_name = "agent_1";
  get.env_ids = {1, 7};
  get.target_fps = 60;
  all.Add(MethodId::StreamJointState, get);

  auto states = Succeeded<GetJointStateResponseT>("2 environments");
  states.state = SampleJointState(1);
  states.states.push_back(SampleJointState(1));
  states.states.push_back(SampleJointState(7));
  EnvelopeT& item = all.Add(MethodId::StreamJointState, std::move(states));
  item.stream_number = 0x1'0000'0002;
  item.dropped = 0x1'0000'0001;

  GetMujocoInfoRequestT info;
  info.robot_name = "agent_4";
  info.env_ids = {4};
  all.Add(MethodId::GetMujocoInfo, info);

  auto sizes = Succeeded<GetMujocoInfoResponseT>("one model for all");
  sizes.nq = 9;
  sizes.nv = 8;
  sizes.nu = 6;
  sizes.joint_names = {"rootx", "", "bthigh"};
  sizes.actuator_names = {"bthigh", "bshin"};
  all.Add(MethodId::GetMujocoInfo, std::move(sizes));

  SendControlRequestT control;
  control.bulk = {0.5F, -0.5F, 0.25F};
  auto indexed = std::make_unique<IndexedControlEntryT>();
  indexed->actuator_index = 2;
  indexed->value = -0.75F;
  control.indexed.push_back(std::move(indexed));
  auto named = std::make_unique<NamedControlEntryT>();
  named->actuator_name = "bshin";
  named->value = 1.25F;
  control.named.push_back(std::move(named));
  control.wait_for_next_step = true;
  control.skip_range_clamp = true;
  control.robot_name = "agent_6";
  control.env_ids = {6, 8};
  all.Add(MethodId::SendControl, std::move(control));

  auto written = Succeeded<SendControlResponseT>("one is taken");
  written.actuators_written = 5;
  written.rejected_actuators = {"bthigh"};
  all.Add(MethodId::SendControl, std::move(written));
}

void AddModel(Collection& all) {
  all.Add(MethodId::GetModelInfo, GetModelInfoRequestT());

  auto model = Succeeded<GetModelInfoResponseT>("a model");
  model.nq = 11;
  model.nv = 10;
  model.nu = 5;
  model.njnt = 4;
  auto joint = std::make_unique<JointDescriptorT>();
  joint->index = 3;
  joint->name = "ankle";
  joint->type = MjJointType::HINGE;
  joint->qpos_adr = 9;
  joint->qvel_adr = 8;
  joint->limited = true;
  joint->range_lo = -0.5F;
  joint->range_hi = 0.75F;
  joint->claimed_by_policy_slot_id = 21;
  joint->claimed_by_rl_agent = true;
  model.joints.push_back(std::move(joint));
  auto actuator = std::make_unique<ActuatorDescriptorT>();
  actuator->index = 2;
  actuator->name = "ankle_motor";
  actuator->ctrl_limited = true;
  actuator->ctrl_range_lo = -1.5F;
  actuator->ctrl_range_hi = 1.25F;
  actuator->target_joint_index = -7;
  actuator->claimed_by_policy_slot_id = 22;
  actuator->claimed_by_rl_agent = true;
  model.actuators.push_back(std::move(actuator));
  all.Add(MethodId::GetModelInfo, std::move(model));

  const auto filter = [] {
    auto made = std::make_unique<StateFilterT>();
    made->include_only_policy_claimed_joints = true;
    made->include_only_unclaimed_joints = true;
    made->filter_by_slot_id = 23;
    return made;
  };
  GetFullStateRequestT get;
  get.include_qpos = true;
  get.include_qvel = true;
  get.include_ctrl = true;
  get.filter = filter();
  get.env_id = 24;
  all.Add(MethodId::GetFullState, std::move(get));

  auto state = Succeeded<GetFullStateResponseT>("a state");
  state.state = std::make_unique<FullStateT>();
  state.state->qpos = {0.5F, -0.25F};
  state.state->qvel = {1.5F};
  state.state->ctrl = {-0.75F};
  state.state->time = 12.0625;
  state.state->frame_number = 9'000'000'001;
  state.included_joint_indices = {1, 2};
  state.included_actuator_indices = {3};
  all.Add(MethodId::GetFullState, std::move(state));

  StreamFullStateRequestT stream;
  stream.target_fps = 25;
  stream.include_qpos = true;
  stream.include_qvel = true;
  stream.include_ctrl = true;
  stream.filter = filter();
  stream.env_id = 26;
  all.Add(MethodId::StreamFullState, std::move(stream));

  SetQposRequestT set;
  set.bulk = {0.125F, -0.5F};
  auto entry = std::make_unique<IndexedQposEntryT>();
  entry->qpos_index = 6;
  entry->value = 2.5F;
  set.indexed.push_back(std::move(entry));
  set.force = true;
  set.skip_policy_reseed = true;
  set.env_id = 27;
  all.Add(MethodId::SetQpos, std::move(set));

  auto positions = Succeeded<SetQposResponseT>("three are written");
  positions.values_written = 3;
  all.Add(MethodId::SetQpos, std::move(positions));

  GetActuatorGainsRequestT gains;
  gains.env_id = 28;
  all.Add(MethodId::GetActuatorGains, gains);

  auto gain = std::make_unique<ActuatorGainInfoT>();
  gain->actuator_index = 4;
  gain->actuator_name = "knee_servo";
  gain->gain_prm_0 = 20.5F;
  gain->bias_prm_0 = -1.75F;
  gain->neutralized = true;
  auto found = Succeeded<GetActuatorGainsResponseT>("one actuator");
  found.actuators.push_back(std::move(gain));
  all.Add(MethodId::GetActuatorGains, std::move(found));
}

void AddTelemetry(Collection& all) {
  all.Add(MethodId::GetTelemetrySchema, GetTelemetrySchemaRequestT());

  GetTelemetrySchemaResponseT schema;
  schema.schema = std::make_unique<TelemetrySchemaT>();
  schema.schema->observation_names = {"slider", "hinge"};
  schema.schema->action_names = {"motor"};
  schema.schema->nq = 2;
  schema.schema->nu = 1;
  all.Add(MethodId::GetTelemetrySchema, std::move(schema));

  StreamTelemetryRequestT stream;
  stream.target_fps = 30;
  stream.env_ids = {0, 9};
  all.Add(MethodId::StreamTelemetry, stream);

  TelemetryFrameT frame;
  frame.timestamp_ms = 1'700'000'000'002;
  frame.frame_number = 11;
  frame.task_index = 12;
  frame.observation_qpos = {0.5F, -1.5F};
  frame.action_ctrl = {2.5F};
  frame.env_id = 13;
  frame.frame_seq = 8'000'000'000;
  all.Add(MethodId::StreamTelemetry, frame).stream_number = 11;
}

void AddScene(Collection& all) {
  GetSceneInfoRequestT info;
  info.env_id = 1;
  all.Add(MethodId::GetSceneInfo, info);

  GetSceneInfoResponseT scene;
  scene.scene_name = "HalfCheetah-v5";
  scene.scene_path = "/models/half_cheetah.xml";
  scene.entity_count = 27;
  all.Add(MethodId::GetSceneInfo, scene);

  ListEntitiesRequestT list;
  list.include_transforms = true;
  list.include_components = true;
  list.env_id = 2;
  all.Add(MethodId::ListEntities, list);

  ListEntitiesResponseT entities;
  entities.entities.push_back(SampleEntity(1));
  entities.entities.push_back(SampleEntity(9'000'000'000));
  all.Add(MethodId::ListEntities, std::move(entities));

  GetEntityRequestT get;
  get.id = 10'000'000'000;
  get.name = "fthigh";
  get.env_id = 3;
  all.Add(MethodId::GetEntity, get);

  GetEntityResponseT entity;
  entity.found = true;
  entity.entity = SampleEntity(4);
  all.Add(MethodId::GetEntity, std::move(entity));

  SetEntityTransformRequestT move;
  move.id = 11'000'000'000;
  move.transform = SampleTransform();
  move.env_id = 5;
  all.Add(MethodId::SetEntityTransform, std::move(move));
  all.Add(MethodId::SetEntityTransform,
          Succeeded<SetEntityTransformResponseT>("moved"));
}

void AddSimulation(Collection& all) {
  SetSimulationModeRequestT mode;
  mode.mode = SimulationMode::FAST;
  mode.realtime_factor = 0.25F;
  all.Add(MethodId::SetSimulationMode, mode);

  auto now = Succeeded<SetSimulationModeResponseT>("from the next exchange on");
  now.current_mode = SimulationMode::DETERMINISTIC;
  now.realtime_factor = 0.5F;
  all.Add(MethodId::SetSimulationMode, now);

  all.Add(MethodId::GetSimulationMode, GetSimulationModeRequestT());

  GetSimulationModeResponseT current;
  current.mode = SimulationMode::FAST;
  current.paused = true;
  current.realtime_factor = 2.5F;
  all.Add(MethodId::GetSimulationMode, current);

  SetPausedRequestT pause;
  pause.paused = true;
  all.Add(MethodId::SetPaused, pause);

  auto paused = Succeeded<SetPausedResponseT>("paused");
  paused.paused = true;
  all.Add(MethodId::SetPaused, paused);

  SingleStepRequestT step;
  step.steps = 4;
  all.Add(MethodId::SingleStep, step);

  auto stepped = Succeeded<SingleStepResponseT>("stepped");
  stepped.steps = 4;
  all.Add(MethodId::SingleStep, stepped);
}

void AddCamera(Collection& all) {
  ListCamerasRequestT list;
  list.env_id = 1;
  all.Add(MethodId::ListCameras, list);

  ListCamerasResponseT cameras;
  cameras.cameras.push_back(std::make_unique<CameraInfoT>());
  cameras.cameras.back()->id = 12'000'000'000;
  cameras.cameras.back()->name = "track";
  all.Add(MethodId::ListCameras, std::move(cameras));

  GetCameraFrameRequestT get;
  get.id = 13'000'000'000;
  get.name = "track";
  get.width = 320;
  get.height = 240;
  get.format = "raw";
  get.kind = CameraStreamKind::DEPTH;
  get.env_id = 2;
  get.to_slot = true;
  all.Add(MethodId::GetCameraFrame, get);

  NamedImageFrameT named;
  named.name = "track";
  named.frame = SampleImage();
  all.Add(MethodId::GetCameraFrame, std::move(named));

  StreamCameraRequestT stream;
  stream.id = 14'000'000'000;
  stream.name = "side";
  stream.target_fps = 25;
  stream.width = 640;
  stream.height = 480;
  stream.format = "jpeg";
  stream.kind = CameraStreamKind::DEPTH;
  stream.env_id = 3;
  stream.to_slot = true;
  all.Add(MethodId::StreamCamera, stream);

  all.Add(MethodId::StreamCamera, std::move(*SampleImage())).stream_number = 5;
}

void AddViewport(Collection& all) {
  GetViewportInfoRequestT info;
  info.env_id = 1;
  all.Add(MethodId::GetViewportInfo, info);

  GetViewportInfoResponseT viewports;
  viewports.available_viewports = {"main", "overview"};
  viewports.current_config = std::make_unique<ViewportStreamConfigT>();
  viewports.current_config->streaming = true;
  viewports.current_config->viewport_name = "overview";
  viewports.current_config->fps = 20;
  viewports.current_config->width = 800;
  viewports.current_config->height = 600;
  all.Add(MethodId::GetViewportInfo, std::move(viewports));

  GetViewportFrameRequestT get;
  get.viewport_name = "main";
  get.width = 160;
  get.height = 120;
  get.format = "png";
  get.kind = CameraStreamKind::DEPTH;
  get.env_id = 2;
  get.to_slot = true;
  all.Add(MethodId::GetViewportFrame, get);

  StartViewportStreamRequestT stream;
  stream.viewport_name = "overview";
  stream.target_fps = 15;
  stream.width = 1024;
  stream.height = 768;
  stream.format = "raw";
  stream.kind = CameraStreamKind::DEPTH;
  stream.env_id = 3;
  stream.to_slot = true;
  all.Add(MethodId::StreamViewport, stream);
}

void AddDebug(Collection& all) {
  DebugDrawRequestT draw;
  auto line = std::make_unique<DebugLineT>();
  line->start = NewVec3(1, 2, 3);
  line->end = NewVec3(4, 5, 6);
  line->color = NewColor(0.125F, 0.25F, 0.5F, 1);
  draw.lines.push_back(std::move(line));
  auto arrow = std::make_unique<DebugArrowT>();
  arrow->origin = NewVec3(7, 8, 9);
  arrow->direction = NewVec3(-1, -2, -3);
  arrow->color = NewColor(0.75F, 0.625F, 0.375F, 0.875F);
  arrow->scale = 1.5F;
  draw.arrows.push_back(std::move(arrow));
  draw.velocity_command = std::make_unique<DebugVelocityCommandT>();
  draw.velocity_command->origin = NewVec3(-4, -5, -6);
  draw.velocity_command->lin_vel_x = 0.5F;
  draw.velocity_command->lin_vel_y = -0.25F;
  draw.velocity_command->ang_vel_z = 0.75F;
  draw.velocity_command->scale = 2.5F;
  draw.clear_previous = true;
  draw.env_id = 1;
  all.Add(MethodId::Draw, std::move(draw));

  DebugDrawResponseT drawn;
  drawn.success = true;
  all.Add(MethodId::Draw, drawn);
}

void AddOwn(Collection& all) {
  CallOwnRequestT call;
  call.name = "set_weather";
  call.data = {0x7B, 0x7D};
  all.Add(MethodId::CallOwn, call);

  CallOwnResponseT answer;
  answer.data = {1, 2, 3};
  all.Add(MethodId::CallOwn, answer);
}

void AddControl(Collection& all) {
  CancelStreamRequestT cancel;
  cancel.correlation_id = 0xABCD'0000'0000'0009U;
  all.Add(MethodId::CancelStream, cancel);

  CancelStreamResponseT cancelled;
  cancelled.success = true;
  all.Add(MethodId::CancelStream, cancelled);

  all.Add(MethodId::GetServices, GetServicesRequestT());

  GetServicesResponseT services;
  services.services.push_back(std::make_unique<ServiceInfoT>());
  services.services.back()->name = "telemetry";
  services.services.back()->enabled = true;
  services.services.back()->methods = {MethodId::GetTelemetrySchema,
                                       MethodId::StreamTelemetry};
  services.services.back()->max_fps = 120;
  services.services.back()->max_hz = 119.5;
  all.Add(MethodId::GetServices, std::move(services));

  SetServiceRequestT service;
  service.name = "camera";
  service.enabled = true;
  all.Add(MethodId::SetService, service);

  SetServiceResponseT switched;
  switched.success = true;
  switched.message = "service camera switched on";
  all.Add(MethodId::SetService, switched);
}

void AddLiveScene(Collection& all) {
  WatchSceneRequestT watch;
  watch.env_ids = {5, 6};
  watch.hz = 12.5F;
  all.Add(MethodId::WatchScene, watch);

  WatchedSceneT scene;
  scene.segment = "tandem.scene.demo";
  scene.generation = 7;
  scene.env_ids = {8, 9};
  all.Add(MethodId::WatchScene, scene).stream_number = 10;
}

void AddStates(Collection& all) {
  SaveStatesRequestT save;
  save.env_ids = {2, 0};
  all.Add(MethodId::SaveStates, std::move(save));

  SaveStatesResponseT saved;
  saved.fingerprint = "HalfCheetah-v5; rows 17, 4";
  saved.states.push_back(NewEnvState({1, 2, 3, 254}));
  saved.states.push_back(NewEnvState({5, 6, 7}));
  all.Add(MethodId::SaveStates, std::move(saved));

  LoadStatesRequestT load;
  load.fingerprint = "HalfCheetah-v5; rows 17, 4";
  load.env_ids = {1, 3};
  load.states.push_back(NewEnvState({1, 2, 3, 254}));
  load.states.push_back(NewEnvState({5, 6, 7}));
  all.Add(MethodId::LoadStates, std::move(load));

  all.Add(MethodId::LoadStates, Succeeded<LoadStatesResponseT>("2 states"));
}

}  // namespace

std::vector<RpcSample> RpcSamples() {
  Collection all;
  AddEnvelopes(all);
  AddAgent(all);
  AddMujoco(all);
  AddTelemetry(all);
  AddScene(all);
  AddSimulation(all);
  AddCamera(all);
  AddViewport(all);
  AddDebug(all);
  AddControl(all);
  AddModel(all);  // the order decides the correlation ids
  AddOwn(all);
  AddLiveScene(all);
  AddStates(all);
  return std::move(all).Take();
}

std::string RpcBytes(const EnvelopeT& envelope) {
  flatbuffers::FlatBufferBuilder builder;
  FinishEnvelopeBuffer(builder, Envelope::Pack(builder, &envelope));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                     builder.GetSize());
}

}  // namespace tandem
