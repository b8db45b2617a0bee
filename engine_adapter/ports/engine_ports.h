// EnginePorts: what of an engine the services stand on.
//
// Data flow: Engine::ports() -> EngineHost -> the services.
// Ownership: the engine's, for as long as it lives.
//
//   EnginePorts MyEngine::ports() { return {.scene = &scene_}; }

#ifndef TANDEM_ENGINE_ADAPTER_PORTS_ENGINE_PORTS_H_
#define TANDEM_ENGINE_ADAPTER_PORTS_ENGINE_PORTS_H_

namespace tandem {

class CameraPort;
class DebugPort;
class MujocoPort;
class RandomizationPort;
class ScenePort;

// nullptr: the engine has none, and says so to who asks.
struct EnginePorts {
  RandomizationPort* randomization = nullptr;
  MujocoPort* mujoco = nullptr;
  ScenePort* scene = nullptr;
  CameraPort* camera = nullptr;
  DebugPort* debug = nullptr;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ADAPTER_PORTS_ENGINE_PORTS_H_
