// ExportOutput: where an export goes, standard output or a file.
//
// Data flow: text -> a new file beside the one that is meant -> rename(2).
// Ownership: one command, one of them at a time: a signal that ends the process
// (Ctrl-C, SIGTERM ...) removes the new file of the one that is open.
//
//   absl::StatusOr<ExportOutput> output = ExportOutput::Open("steps.csv");
//   absl::Status status = output->Write(text);
//   if (status.ok()) status = output->Close();

#ifndef TANDEM_SLOW_LANE_CTL_EXPORT_OUTPUT_H_
#define TANDEM_SLOW_LANE_CTL_EXPORT_OUTPUT_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {

// Legal calls: Write any number of times, then Close, or neither.
class ExportOutput {
 public:
  // Empty `path`: standard output. Of a symbolic link its final target is
  // meant, which need not be there yet. kInvalidArgument: it is something else
  // than a file; a system call's status: nothing can be written there.
  static absl::StatusOr<ExportOutput> Open(const std::string& path);
  ExportOutput(ExportOutput&& other) noexcept;
  ExportOutput& operator=(ExportOutput&&) = delete;
  // What was not closed is as it was before Open.
  ~ExportOutput();

  // A system call's status: the rest is in vain.
  absl::Status Write(absl::string_view text);

  // It is whole: a file is on the disk, and in the place of the one before it,
  // whose mode it has.
  absl::Status Close();

 private:
  ExportOutput(std::FILE* file, const std::string& target,
               const std::string& part)
      : file_(file), target_(target), part_(part) {}

  std::FILE* file_;
  std::string target_;
  std::string part_;  // the name of `file_`
};

}  // namespace tandem::slow_lane

#endif  // TANDEM_SLOW_LANE_CTL_EXPORT_OUTPUT_H_
