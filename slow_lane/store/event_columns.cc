#include "slow_lane/store/event_columns.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <array>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem::slow_lane {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using ::google::protobuf::Timestamp;

struct Table {
  absl::string_view event;
  absl::string_view name;
};
constexpr std::array<Table, 4> kTables = {Table{"RunStep", "step_rows"},
                                          {"RunEpisode", "episode_rows"},
                                          {"LifecycleEvent", "lifecycle_rows"},
                                          {"MalformedLine", "malformed_rows"}};

// Two words of SQL.
constexpr std::pair<absl::string_view, absl::string_view> kRenamed[] = {
    {"offset", "byte_offset"}, {"length", "bytes"}};

std::string NameOf(const FieldDescriptor& field) {
  for (const auto& [name, column] : kRenamed) {
    if (field.name() == name) return std::string(column);
  }
  return absl::StrCat(field.name(),
                      field.message_type() != nullptr ? "_ns" : "");
}

size_t ReadText(const Statement& row, int column, const Reflection& reflection,
                const FieldDescriptor* field, Message* event) {
  const absl::string_view text = row.Text(column);
  if (!text.empty()) {
    reflection.SetString(event, field, std::string(text));
  }
  return text.size();
}

void SetNumber(int64_t number, const Reflection& reflection,
               const FieldDescriptor* field, Message* event) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(event, field, true);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(event, field, static_cast<uint32_t>(number));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(event, field, static_cast<uint64_t>(number));
    default:
      std::abort();  // no event has such a field
  }
}

}  // namespace

int64_t NanosOf(const Timestamp& time) {
  constexpr int64_t kPerSecond = 1'000'000'000;
  int64_t nanos;
  if (__builtin_mul_overflow(time.seconds(), kPerSecond, &nanos) ||
      __builtin_add_overflow(nanos, int64_t{time.nanos()}, &nanos)) {
    return time.seconds() < 0 ? std::numeric_limits<int64_t>::min()
                              : std::numeric_limits<int64_t>::max();
  }
  return nanos;
}

EventColumns::EventColumns(const Descriptor& event) {
  const absl::string_view table =
      std::ranges::find(kTables, event.name(), &Table::event)->name;
  seq_id_ = event.FindFieldByName("seq_id");
  worker_id_ = event.FindFieldByName("worker_id");
  std::string names;
  std::string places;
  for (int i = 0; i < event.field_count(); ++i) {
    const FieldDescriptor* const field = event.field(i);
    if (field == seq_id_ || field == worker_id_ || field->name() == "run_id") {
      continue;
    }
    columns_.push_back(field);
    absl::StrAppend(&names, ", ", NameOf(*field));
    absl::StrAppend(&places, ", ?");
  }
  insert_ = absl::StrCat("INSERT INTO ", table,
                         " (run, seq_id, source_number, worker_id", names,
                         ") VALUES (?, ?, ?, ?", places, ")");
  select_ = absl::StrCat("SELECT seq_id, worker_id", names, " FROM ", table,
                         " WHERE run = (SELECT run FROM runs WHERE run_id = ?1)"
                         " AND seq_id > ?2 ORDER BY seq_id LIMIT ?3");
}

void EventColumns::Bind(const Message& event, Statement* insert) const {
  const Reflection& reflection = *event.GetReflection();
  std::string unused;  // of texts that are not a std::string
  int parameter = 5;
  for (const FieldDescriptor* const field : columns_) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        insert->BindTextOrNull(
            parameter, reflection.GetStringReference(event, field, &unused));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        insert->Bind(parameter, reflection.GetDouble(event, field));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        insert->Bind(parameter, reflection.GetBool(event, field));
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        insert->Bind(parameter, reflection.GetUInt32(event, field));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        insert->Bind(parameter, reflection.GetUInt64(event, field));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (reflection.HasField(event, field)) {
          insert->Bind(parameter, NanosOf(static_cast<const Timestamp&>(
                                      reflection.GetMessage(event, field))));
        } else {
          insert->Bind(parameter, nullptr);
        }
        break;
      default:
        std::abort();  // no event has such a field
    }
    ++parameter;
  }
}

size_t EventColumns::Read(const Statement& row, Message* event) const {
  const Reflection& reflection = *event->GetReflection();
  size_t text_bytes = 0;
  reflection.SetUInt64(event, seq_id_, static_cast<uint64_t>(row.Int(0)));
  if (worker_id_ != nullptr) {
    text_bytes += ReadText(row, 1, reflection, worker_id_, event);
  }
  int index = 2;
  for (const FieldDescriptor* const field : columns_) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        text_bytes += ReadText(row, index, reflection, field, event);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(event, field, row.Real(index));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (row.IsNull(index)) break;
        static_cast<Timestamp&>(*reflection.MutableMessage(event, field)) =
            google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
                row.Int(index));
        break;
      default:
        // A new event has zeros.
        if (const int64_t number = row.Int(index); number != 0) {
          SetNumber(number, reflection, field, event);
        }
    }
    ++index;
  }
  return text_bytes;
}

}  // namespace tandem::slow_lane
