#include "client_py/bindings/field_step.h"

#include <optional>

namespace tandem {
namespace py = pybind11;

FieldStep::FieldStep(NativeClient* client, const Options& options)
    : TaskStep(client, {.infos = options.infos,
                        .wide = false,
                        .copy = options.copy,
                        .autoreset = options.autoreset,
                        .choices = std::nullopt,
                        .convert = {}}),
      copy_(options.copy),
      batch_(options.observations.attr("batch")),
      row_(options.final_observations.attr("row")),
      write_(options.actions.attr("write")) {}

// Writes them into the region; PostActions sends what is there.
void FieldStep::TakeActions(py::handle actions) {
  if (MaySend()) write_(actions);  // else Post refuses
}

void FieldStep::PostActions() { client().Post(arrays().actions); }

py::object FieldStep::Observations() { return batch_(py::arg("copy") = copy_); }

py::object FieldStep::FinalObservation(size_t env) const { return row_(env); }

}  // namespace tandem
