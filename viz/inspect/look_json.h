// A look as one JSON object. viz/README.md lists the keys.
//
//   std::cout << JsonOf(look) << "\n";

#ifndef TANDEM_VIZ_INSPECT_LOOK_JSON_H_
#define TANDEM_VIZ_INSPECT_LOOK_JSON_H_

#include <string>
#include <vector>

#include "viz/inspect/look.h"

namespace tandem {

// One line, without a newline. What cannot be told is null.
std::string JsonOf(const Look& look);

// {"entries": [...]}: each as JsonOf has it.
std::string ListJsonOf(const std::vector<Look>& looks);

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_LOOK_JSON_H_
