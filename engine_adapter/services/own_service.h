// OwnService: calls of the methods that an engine defines itself.
//
// Data flow: request -> OwnMethodPort, by the method's name -> response.
// Ownership: the host owns it; the stepping thread calls it between exchanges.
// It does not depend on the RPC rings.

#pragma once

#include <vector>

#include "engine_adapter/engine_ports.h"
#include "engine_adapter/ports/simulation_port.h"
#include "engine_adapter/rpc/rpc_answer.h"
#include "engine_adapter/task_description.h"
#include "schema/messages/hazel_rpc_generated.h"

namespace tandem {

class OwnService {
 public:
  // All three must outlive this object.
  OwnService(OwnMethodPort* port, const std::vector<OwnMethod>& methods,
             SimulationPort* simulation)
      : port_(port), methods_(methods), simulation_(simulation) {}

  // The engine answers, now or later. kInvalidArgument: no method has the name;
  // the text lists the names.
  void CallOwn(const rpc::CallOwnRequestT& request,
               RpcAnswer<rpc::CallOwnResponseT> answer);

 private:
  OwnMethodPort* port_;
  const std::vector<OwnMethod>& methods_;
  SimulationPort* simulation_;
};

}  // namespace tandem
