// The former name of dead_region.h, for the two files that still include it:
// attached_region.cc and client_py/bindings/module.cc.

#ifndef TANDEM_TRANSPORT_MEMORY_STALE_REGION_H_
#define TANDEM_TRANSPORT_MEMORY_STALE_REGION_H_

#include "transport/memory/dead_region.h"  // IWYU pragma: export

#endif  // TANDEM_TRANSPORT_MEMORY_STALE_REGION_H_
