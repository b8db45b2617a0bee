// The texts of an inspection's parts, for the table of its fields. Each
// function of an InspectionAt returns a line without its title, several such
// lines, or a block of lines with their newlines; "": nothing to show.
//
//   {"gpu", meaning, value, nullptr, "GPU", GpuText}   // a row of the table

#ifndef TANDEM_VIZ_INSPECT_INSPECTION_TEXTS_H_
#define TANDEM_VIZ_INSPECT_INSPECTION_TEXTS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "transport/session/step_times.h"
#include "viz/inspect/inspection.h"

namespace tandem {

struct InspectionAt {
  const Inspection& inspection;
  absl::Time now;
  absl::TimeZone zone;
};

// "ok", "look", "broken" or "unreadable".
const char* StateOf(const Inspection& inspection);
// The problems; of a failed inspection, its error.
std::vector<std::string> ProblemsOf(const Inspection& inspection);
// The state with its problems and remarks, on one line.
std::string StateText(const Inspection& inspection);
// Lines with name, state and problems, and an empty one.
std::string HeadText(const Inspection& inspection);

absl::Time BirthOf(const RegionReport& region);
std::optional<double> BusyShareOf(const Inspection& inspection, size_t worker);
std::string PeerText(const PeerReport& peer);
std::string PeerText(const WorkerReport& worker);
std::string QuantilesText(const StepTimesSnapshot& times);

std::string FileText(const InspectionAt& at);
std::string TaskText(const InspectionAt& at);
std::string BirthText(const InspectionAt& at);
std::string EngineText(const InspectionAt& at);
std::string ClientText(const InspectionAt& at);
std::string GpuText(const InspectionAt& at);
std::string ExchangesText(const InspectionAt& at);
std::string SpeedText(const InspectionAt& at);
std::string TimesBlock(const InspectionAt& at);
std::string AttendantsText(const InspectionAt& at);
std::string RingsText(const InspectionAt& at);
std::string ServicesText(const InspectionAt& at);
std::string DroppedText(const InspectionAt& at);
std::string FramesText(const InspectionAt& at);
std::string ImagesText(const InspectionAt& at);
std::string DoorbellsText(const InspectionAt& at);
std::string LastErrorText(const InspectionAt& at);
std::string WorkersBlock(const InspectionAt& at);
std::string FieldsBlock(const InspectionAt& at);
std::string SectionsBlock(const InspectionAt& at);
std::string WriterText(const InspectionAt& at);   // of a segment
std::string MetricsText(const InspectionAt& at);  // of a segment

}  // namespace tandem

#endif  // TANDEM_VIZ_INSPECT_INSPECTION_TEXTS_H_
