#include "slow_lane/store/event_columns.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/error.h"

namespace tandem::slow_lane {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using ::google::protobuf::Timestamp;

struct Table {
  absl::string_view event;
  const char* table;
  const char* view;
};
constexpr std::array<Table, 4> kTables = {
    Table{"RunStep", "step_rows", "steps"},
    {"RunEpisode", "episode_rows", "episodes"},
    {"LifecycleEvent", "lifecycle_rows", "lifecycle"},
    {"MalformedLine", "malformed_rows", "malformed"}};

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
  const auto& table = *std::ranges::find(kTables, event.name(), &Table::event);
  table_ = table.table;
  view_ = table.view;
  seq_id_ = event.FindFieldByName("seq_id");
  worker_id_ = event.FindFieldByName("worker_id");
  std::string names;
  std::string places;
  for (int i = 0; i < event.field_count(); ++i) {
    const FieldDescriptor* const field = event.field(i);
    if (field == seq_id_ || field == worker_id_ || field->name() == "run_id") {
      continue;
    }
    const Column& column = columns_.emplace_back(Column{field, NameOf(*field)});
    absl::StrAppend(&names, ", ", column.name);
    absl::StrAppend(&places, ", ?");
  }
  insert_ = absl::StrCat("INSERT INTO ", table_,
                         " (run, seq_id, source_number, worker_id", names,
                         ") VALUES (?, ?, ?, ?", places, ")");
  select_ = absl::StrCat("SELECT seq_id, worker_id", names, " FROM ", table_,
                         " WHERE run = (SELECT run FROM runs WHERE run_id = ?1)"
                         " AND seq_id > ?2 ORDER BY seq_id LIMIT ?3");
}

void EventColumns::Bind(const Message& event, Statement* insert) const {
  const Reflection& reflection = *event.GetReflection();
  std::string unused;  // of texts that are not a std::string
  int parameter = 5;
  for (const Column& column : columns_) {
    const FieldDescriptor* const field = column.field;
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
  for (const Column& column : columns_) {
    const FieldDescriptor* const field = column.field;
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

absl::Status EventColumns::AddMissing(Database& database) const {
  std::set<std::string, std::less<>> there;
  TANDEM_RETURN_IF_ERROR(database.ForEachRow(
      "SELECT name FROM pragma_table_info(?1)",
      [&](const Statement& row) {
        there.emplace(row.Text(0));
        return true;
      },
      absl::string_view(table_)));
  std::string sql;
  std::string names;
  for (const Column& column : columns_) {
    absl::StrAppend(&names, ", ", column.name);
    if (there.contains(column.name)) continue;
    const FieldDescriptor::CppType type = column.field->cpp_type();
    absl::StrAppend(&sql, "ALTER TABLE ", table_, " ADD COLUMN ", column.name,
                    type == FieldDescriptor::CPPTYPE_STRING   ? " TEXT; "
                    : type == FieldDescriptor::CPPTYPE_DOUBLE ? " REAL; "
                    : type == FieldDescriptor::CPPTYPE_MESSAGE
                        ? " INTEGER; "
                        : " INTEGER NOT NULL DEFAULT 0; ");
  }
  if (sql.empty()) return absl::OkStatus();
  return database.Execute(absl::StrCat(
      "BEGIN IMMEDIATE; ", sql, "DROP VIEW IF EXISTS ", view_, "; CREATE VIEW ",
      view_, " AS SELECT runs.run_id, seq_id, source_number, worker_id", names,
      " FROM runs CROSS JOIN ", table_, " WHERE ", table_,
      ".run = runs.run; COMMIT"));
}

absl::Status AddMissingColumns(Database& database) {
  for (const EventColumns* const columns :
       {&EventColumns::Of<gymgui::trainer::RunStep>(),
        &EventColumns::Of<gymgui::trainer::RunEpisode>(),
        &EventColumns::Of<v1::LifecycleEvent>(),
        &EventColumns::Of<v1::MalformedLine>()}) {
    TANDEM_RETURN_IF_ERROR(columns->AddMissing(database));
  }
  return absl::OkStatus();
}

}  // namespace tandem::slow_lane
