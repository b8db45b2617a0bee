#include "base/os/available_memory.h"

#include <mach/mach.h>
#include <unistd.h>

#include <limits>

namespace tandem {

std::optional<MemoryLimit> TightestMemoryLimit(const ControlGroupPaths&) {
  return std::nullopt;
}

// Free pages, and those that the system frees first.
uint64_t FreeMachineBytes() {
  vm_statistics64 pages;
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64,
                        reinterpret_cast<host_info64_t>(&pages),
                        &count) != KERN_SUCCESS) {
    return std::numeric_limits<uint64_t>::max();
  }
  return (uint64_t{pages.free_count} + pages.inactive_count) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t ResidentMemoryBytes() {
  mach_task_basic_info_data_t task;
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  return task_info(mach_task_self(), MACH_TASK_BASIC_INFO,
                   reinterpret_cast<task_info_t>(&task), &count) == KERN_SUCCESS
             ? task.resident_size
             : 0;
}

}  // namespace tandem
