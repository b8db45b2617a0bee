// EventColumns: the columns of an event's table, which follow from the fields
// of its message. Scalars have tables of another form (BatchWriter).
//
// Data flow: an event -> insert(), BindEvent -> a row -> select(), ReadEvent ->
// the event.
// Ownership: constants of the process, made at their first use. The functions
// use the caller's statements.
//
//   const EventColumns& columns = EventColumns::Of<RunStep>();
//   Statement& insert = **database.Cached(columns.insert());
//   insert.Bind(1, run);  // then seq_id, source_number, worker_id
//   columns.Bind(step, &insert);
//   Statement& select = **database.Cached(columns.select());
//   columns.Read(select, batch.add_steps());  // at a row
//
// Each table has run, seq_id, source_number and worker_id, then a column for
// each field, except run_id: of the field's name, apart from two in kRenamed.
// A Timestamp is an integer, `timestamp_ns`.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"
#include "schema/protos/slow_lane.pb.h"
#include "slow_lane/store/database.h"
#include "slow_lane/store/stream.h"

namespace tandem::slow_lane {

class EventColumns {
 public:
  // Of one of the four events.
  template <typename Event>
  static const EventColumns& Of() {
    static const EventColumns columns(*Event::descriptor());
    return columns;
  }

  // Its first parameters are run, seq_id, source_number and worker_id.
  const std::string& insert() const { return insert_; }
  // Rows of the run ?1 (a run_id) above the number ?2, at most ?3, in order.
  // The statement itself finds the run, so all rows belong to one snapshot: for
  // a run that is removed at this time, all or none.
  const std::string& select() const { return select_; }

  // Binds all parameters of insert() except the first four. The event's texts
  // are not copied: they must outlive the statement's use.
  void Bind(const google::protobuf::Message& event, Statement* insert) const;
  // Reads a row of select() into a new event; returns the bytes of its texts.
  size_t Read(const Statement& row, google::protobuf::Message* event) const;

 private:
  explicit EventColumns(const google::protobuf::Descriptor& event);

  // Without worker_id.
  std::vector<const google::protobuf::FieldDescriptor*> columns_;
  const google::protobuf::FieldDescriptor* seq_id_;
  const google::protobuf::FieldDescriptor* worker_id_;  // nullptr: none
  std::string insert_;
  std::string select_;
};

// Converts times from 1677 to 2262; another time becomes the nearest limit.
int64_t NanosOf(const google::protobuf::Timestamp& time);

// Reads the row's first five columns, in the streams' order; NULL is 0.
inline Numbers ReadNumbers(const Statement& row) {
  Numbers numbers;
  for (const Stream stream : kAllStreams) {
    numbers[stream] = static_cast<uint64_t>(row.Int(static_cast<int>(stream)));
  }
  return numbers;
}

// Calls `visit` with the batch's events of a stream, a RepeatedPtrField, and
// returns its result.
template <typename Visit>
auto VisitEvents(Stream stream, v1::EventBatch& batch, Visit visit) {
  switch (stream) {
    case Stream::kSteps:
      return visit(*batch.mutable_steps());
    case Stream::kEpisodes:
      return visit(*batch.mutable_episodes());
    case Stream::kLifecycle:
      return visit(*batch.mutable_lifecycle());
    case Stream::kMalformed:
      return visit(*batch.mutable_malformed());
    case Stream::kScalars:
      return visit(*batch.mutable_scalars());
  }
  std::abort();
}
template <typename Visit>
auto VisitEvents(Stream stream, const v1::EventBatch& batch, Visit visit) {
  // The lambda passes the lists to `visit` as const.
  return VisitEvents(stream, const_cast<v1::EventBatch&>(batch),
                     [&](const auto& events) { return visit(events); });
}

}  // namespace tandem::slow_lane
