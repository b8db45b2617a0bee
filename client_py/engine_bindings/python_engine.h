// PythonEngine: an engine whose resets and steps are methods of a Python
// object.
//
// Data flow: EngineHost -> Reset, Step -> the GIL -> the object's methods ->
// the region's arrays; the RPC services -> PythonPorts -> the object.
// Ownership: the server or `serve` owns it. The stepping thread calls it,
// without the GIL.

#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "client_py/engine_bindings/engine_arrays.h"
#include "client_py/engine_bindings/python_adaptor.h"
#include "client_py/engine_bindings/python_ports.h"
#include "engine_adapter/engine.h"
#include "engine_adapter/engine_host.h"
#include "engine_adapter/frame_source.h"

namespace tandem {

// States: made, hosted (after SetHost). Reset and Step are legal in hosted.
class PythonEngine final : public Engine {
 public:
  // Reads the schema and the ports of a tandem.serving.adaptor.Adaptor. Needs
  // the GIL. Raises InvalidArgument.
  PythonEngine(const pybind11::object& adaptor, bool keeps_first);
  // Takes the GIL.
  ~PythonEngine() override;

  // Makes the arrays. Takes the GIL. kEngineFailed: the object raised.
  absl::Status SetHost(EngineHost* host);

  PythonAdaptor& adaptor() { return adaptor_; }

  const EngineSchema& schema() const override { return schema_; }
  absl::Status Reset(std::span<const ResetRequest> requests,
                     const ResetIo& io) override;
  absl::Status Step(std::span<const uint32_t> envs, const StepIo& io) override;
  void ClearClientState() override;
  FrameSource* frames() override { return ports_.frames(); }
  SceneSource* scene() override { return ports_.live_scene(); }
  EnginePorts ports() override { return ports_.ports(); }
  double step_secs() const override { return step_secs_; }

 private:
  // References that a step uses; destroyed with the GIL.
  struct Held {
    pybind11::object reset;
    pybind11::object step;
    pybind11::object all;  // slice(None)
    std::optional<EngineArrays> arrays;
  };

  PythonAdaptor adaptor_;
  EngineSchema schema_;
  double step_secs_ = 0;
  PythonPorts ports_;
  std::optional<Held> held_;
};

}  // namespace tandem
