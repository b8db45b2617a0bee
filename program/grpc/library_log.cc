#include "program/grpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace tandem {
namespace {

constexpr double kLogSecs = 60;

// Never destroyed: gRPC's threads may outlive main.
struct Route {
  Route(std::string name, std::string advice)
      : program(std::move(name)), certificate_advice(std::move(advice)) {}
  std::string program;
  std::string certificate_advice;
  Mutex mutex;
  // By file and line.
  std::map<std::pair<std::string, int>, LimitedLog> logs ABSL_GUARDED_BY(mutex);
};
Route* route = nullptr;

void Write(absl::string_view library, const char* file, int line,
           absl::string_view message) {
  std::string text = absl::StrCat(library, ": ", message);
  if (absl::StrContains(message, "certificate verify failed")) {
    absl::StrAppend(&text, route->certificate_advice);
  }
  MutexLock lock(&route->mutex);
  route->logs.try_emplace({file, line}, route->program, kLogSecs)
      .first->second.Write(text);
}

void WriteOfGrpc(gpr_log_func_args* args) {
  Write("gRPC", args->file, args->line, args->message);
}

void WriteOfProtobuf(google::protobuf::LogLevel level, const char* file,
                     int line, const std::string& message) {
  if (level == google::protobuf::LOGLEVEL_FATAL) {
    std::cerr << route->program << ": protobuf: " << message << std::endl;
  } else if (level >= google::protobuf::LOGLEVEL_WARNING) {
    Write("protobuf", file, line, message);
  }
}

}  // namespace

void LimitedLog::Write(absl::string_view text) {
  MutexLock lock(&mutex_);
  const int64_t now_ns = MonotonicNanos();
  if (!next_.PassedAt(now_ns)) {
    ++left_out_;
    return;
  }
  next_ = Deadline::After(secs_, now_ns);
  std::cerr << absl::StrCat(
      program_, ": ", PrintableLines(text),
      left_out_ > 0 ? absl::StrCat(" (and ", left_out_, " such lines before)")
                    : "",
      "\n");
  left_out_ = 0;
}

void RouteLibraryLog(const std::string& program,
                     const std::string& certificate_advice) {
  route = new Route(program, certificate_advice);
  gpr_set_log_function(&WriteOfGrpc);
  google::protobuf::SetLogHandler(&WriteOfProtobuf);
}

}  // namespace tandem
