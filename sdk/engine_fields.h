// The fields of an engine on the other side of the C interface.
//
// Data flow: tandem_engine_options -> ReadFields -> EngineSchema: its fields,
// and their spaces, unless the description has some.
//
//   TANDEM_RETURN_IF_ERROR(ReadFields(options, &schema));

#ifndef TANDEM_SDK_ENGINE_FIELDS_H_
#define TANDEM_SDK_ENGINE_FIELDS_H_

#include "absl/status/status.h"
#include "engine_adapter/engine.h"
#include "sdk/tandem.h"

namespace tandem {

// Adds the fields of the options to the schema, whose description has been
// read. kInvalidArgument for a wrong name, dtype or shape, or for a size beside
// fields of the same role; the text names the field.
//
// A field's space is a Box of all values of its type. The space of fields is
// their own, or a Dict of them by their paths.
absl::Status ReadFields(const tandem_engine_options& options,
                        EngineSchema* schema);

}  // namespace tandem

#endif  // TANDEM_SDK_ENGINE_FIELDS_H_
