#include "client_py/bindings/native_frames.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/error.h"
#include "client_py/bindings/errors.h"

namespace tandem {
namespace py = pybind11;
namespace {

constexpr int64_t kFirstLookNs = 1'000'000'000;

// A view of a Python object's memory, as contiguous bytes.
class Buffer {
 public:
  // Raises InvalidArgument for an object without a buffer.
  Buffer(py::handle object, absl::string_view what, const std::string& run_id) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FULL_RO) != 0) {
      PyErr_Clear();
      RaiseInvalid(absl::StrCat(what,
                                ": expected bytes, a memoryview or a NumPy "
                                "array of uint8, found ",
                                Py_TYPE(object.ptr())->tp_name),
                   run_id);
    }
    const absl::string_view format = view_.format ? view_.format : "B";
    if (view_.itemsize != 1 ||
        (format != "B" && format != "b" && format != "c" && format != "?")) {
      const std::string found(format);
      PyBuffer_Release(&view_);
      RaiseInvalid(absl::StrCat(what, ": expected uint8, found elements of '",
                                found, "'; convert them first"),
                   run_id);
    }
    bytes_ = {static_cast<const std::byte*>(view_.buf),
              static_cast<size_t>(view_.len)};
    if (PyBuffer_IsContiguous(&view_, 'C') != 0) return;
    copy_.resize(bytes_.size());
    PyBuffer_ToContiguous(copy_.data(), &view_, view_.len, 'C');
    bytes_ = copy_;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<const Py_ssize_t> shape() const {
    return {view_.shape, static_cast<size_t>(view_.ndim)};
  }

 private:
  Py_buffer view_;
  std::vector<std::byte> copy_;  // used if the buffer is not contiguous
  std::span<const std::byte> bytes_;
};

// The elements of an array of T. Converts other arrays and lists.
template <typename T>
class Elements {
 public:
  Elements(py::handle object, size_t count) {
    if (IsSuch(object)) {
      array_ = py::reinterpret_borrow<py::object>(object);
    } else {
      array_ =
          py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(
              object);
      if (!array_) PyErr_Clear();
    }
    if (!array_ || static_cast<size_t>(Array().size()) != count) {
      RaiseInvalid(
          absl::StrCat("expected an array of ", count,
                       " numbers or flags, one for each environment, found ",
                       std::string(py::repr(object))),
          "");
    }
  }
  const T* data() const { return static_cast<const T*>(Array().data()); }

 private:
  // Compares type numbers. array_t's check compares dtypes, which takes longer
  // than the rest of a step.
  static bool IsSuch(py::handle object) {
    if (!py::isinstance<py::array>(object)) return false;
    const auto array = py::reinterpret_borrow<py::array>(object);
    return array.dtype().num() == py::dtype::num_of<T>() &&
           (array.flags() & py::array::c_style) != 0;
  }

  py::array Array() const { return py::reinterpret_borrow<py::array>(array_); }

  py::object array_;  // no py::array: its default constructor makes an array
};

}  // namespace

NativeFrameWriter::NativeFrameWriter(const std::string& run_id, uint32_t width,
                                     uint32_t height, uint32_t channels,
                                     uint32_t capacity, uint32_t metadata_size)
    : run_id_(run_id) {
  absl::StatusOr<OwnedFrameSegment> segment = [&] {
    const py::gil_scoped_release others_run;
    return OwnedFrameSegment::Create(run_id, {.width = width,
                                              .height = height,
                                              .channels = channels,
                                              .capacity = capacity,
                                              .metadata_bytes = metadata_size});
  }();
  if (!segment.ok()) Raise(segment.status(), run_id);
  segment_.emplace(*std::move(segment));
}

OwnedFrameSegment& NativeFrameWriter::Segment() {
  if (!segment_.has_value()) {
    Raise(MakeError(ErrorCode::kClientClosed,
                    "this FastLaneWriter was closed; create another"),
          run_id_);
  }
  if (!segment_->IsOurs()) {
    Raise(MakeError(ErrorCode::kForkedChild,
                    "this FastLaneWriter belongs to the parent of this forked "
                    "process; create another, with a run id of its own"),
          run_id_);
  }
  return *segment_;
}

uint64_t NativeFrameWriter::Publish(py::handle frame, double last_reward,
                                    double rolling_return, double step_rate_hz,
                                    py::handle metadata) {
  OwnedFrameSegment& segment = Segment();
  // HasReader restores the segment's name, at most once a second. It is not
  // called in the first second: the caller's HasReader gets the first answer.
  if (MonotonicNanos() - made_ns_ >= kFirstLookNs) (void)segment.HasReader();
  FrameWriter& writer = segment.writer();
  const FrameGeometry& geometry = writer.geometry();
  const Buffer pixels(frame, "frame", run_id_);
  const std::span<const Py_ssize_t> shape = pixels.shape();
  const std::array<Py_ssize_t, 3> expected = {geometry.height, geometry.width,
                                              geometry.channels};
  if (shape.size() != 1 && !std::ranges::equal(shape, expected)) {
    RaiseInvalid(
        absl::StrCat("frame: expected shape [", absl::StrJoin(expected, ", "),
                     "] (height, width, channels) or one dimension, found [",
                     absl::StrJoin(shape, ", "), "]"),
        run_id_);
  }
  if (pixels.bytes().size() > geometry.FrameBytes()) {
    RaiseInvalid(
        absl::StrCat("frame: expected at most ", geometry.FrameBytes(),
                     " bytes (", geometry.width, "x", geometry.height, "x",
                     geometry.channels, "), found ", pixels.bytes().size()),
        run_id_);
  }
  const FrameMetrics metrics = {.last_reward = last_reward,
                                .rolling_return = rolling_return,
                                .step_rate_hz = step_rate_hz};
  if (metadata.is_none()) {
    return head_ = writer.Publish(pixels.bytes(), metrics, "");
  }
  const Buffer text(metadata, "metadata", run_id_);
  return head_ =
             writer.Publish(pixels.bytes(), metrics,
                            {reinterpret_cast<const char*>(text.bytes().data()),
                             text.bytes().size()});
}

bool NativeFrameWriter::HasReader() { return Segment().HasReader(); }

void NativeFrameWriter::Invalidate() { Segment().writer().Invalidate(); }

NativeFrameReader::NativeFrameReader(const std::string& run_id)
    : run_id_(run_id) {
  absl::StatusOr<AttachedFrames> frames = AttachedFrames::OpenRun(run_id);
  if (!frames.ok()) Raise(frames.status(), run_id);
  frames_ = *std::move(frames);
}

AttachedFrames& NativeFrameReader::Frames() {
  if (!frames_.has_value()) {
    Raise(MakeError(ErrorCode::kClientClosed,
                    "this FastLaneReader was closed; attach another"),
          run_id_);
  }
  return *frames_;
}

py::object NativeFrameReader::Newest() { return Read(/*once=*/false); }
py::object NativeFrameReader::Next() { return Read(/*once=*/true); }

py::object NativeFrameReader::Read(bool once) {
  FrameReader& reader = Frames().reader();
  if (reader.Head() == 0) return py::none();  // allocates no bytes object
  const auto bytes = static_cast<Py_ssize_t>(reader.geometry().FrameBytes());
  py::object pixels = py::reinterpret_steal<py::object>(
      PyBytes_FromStringAndSize(nullptr, bytes));
  if (!pixels) throw py::error_already_set();
  const std::span<std::byte> room = {
      reinterpret_cast<std::byte*>(PyBytes_AS_STRING(pixels.ptr())),
      static_cast<size_t>(bytes)};
  Frame frame;
  switch (once ? reader.NextTo(room, &frame) : reader.NewestTo(room, &frame)) {
    case FrameReader::Found::kFrame:
      dropped_ = reader.dropped();
      break;
    case FrameReader::Found::kNothing:
    case FrameReader::Found::kInvalidated:
      return py::none();
    case FrameReader::Found::kBroken:
      Raise(MakeError(ErrorCode::kBrokenPeer,
                      "the frame ring's header or lengths are invalid, or have "
                      "changed since the attach; attach again"),
            run_id_);
  }
  if (frame.frame_len < room.size()) {
    pixels =
        py::bytes(reinterpret_cast<const char*>(room.data()), frame.frame_len);
  }
  const py::object metadata = frame.metadata.empty()
                                  ? py::object(py::none())
                                  : py::object(py::bytes(frame.metadata));
  return py::make_tuple(frame.number, pixels, frame.metrics.last_reward,
                        frame.metrics.rolling_return,
                        frame.metrics.step_rate_hz, metadata);
}

py::tuple NativeFrameReader::Metrics() {
  const FrameMetrics metrics = Frames().reader().Metrics();
  return py::make_tuple(metrics.last_reward, metrics.rolling_return,
                        metrics.step_rate_hz);
}

bool NativeFrameReader::Invalidated() {
  return Frames().reader().Invalidated();
}

bool NativeFrameReader::Replaced() { return Frames().Replaced(); }

std::optional<bool> NativeFrameReader::WriterAlive() {
  switch (Frames().writer()) {
    case AttachedFrames::Writer::kAlive:
      return true;
    case AttachedFrames::Writer::kGone:
      return false;
    case AttachedFrames::Writer::kUnknown:
      break;
  }
  return std::nullopt;
}

py::tuple NativeFrameReader::Geometry() {
  const FrameGeometry& geometry = Frames().reader().geometry();
  return py::make_tuple(geometry.width, geometry.height, geometry.channels,
                        geometry.capacity, geometry.metadata_bytes);
}

EpisodeReturns::EpisodeReturns(size_t num_envs, int64_t only, size_t window,
                               bool resets_next)
    : first_(only < 0 ? 0 : static_cast<size_t>(only)),
      end_(only < 0 ? num_envs : static_cast<size_t>(only) + 1),
      window_(window),
      resets_next_(resets_next),
      running_(num_envs),
      over_(num_envs) {
  if (num_envs == 0 || window == 0 || end_ > num_envs) {
    RaiseInvalid(absl::StrCat("expected environment ", only, " to be among ",
                              num_envs, ", and a window of at least 1"),
                 "");
  }
}

void EpisodeReturns::Add(py::handle rewards, py::handle terminations,
                         py::handle truncations) {
  const Elements<double> reward_of(rewards, running_.size());
  const Elements<bool> terminated_of(terminations, running_.size());
  const Elements<bool> truncated_of(truncations, running_.size());
  const double* const reward = reward_of.data();
  const bool* const terminated = terminated_of.data();
  const bool* const truncated = truncated_of.data();
  double sum = 0;
  for (size_t i = first_; i < end_; ++i) {
    sum += reward[i];
    running_[i].sum += reward[i];
    running_[i].steps += over_[i] == 0 ? 1U : 0U;
    over_[i] = 0;
    if (terminated[i] || truncated[i]) {
      ended_.push_back(std::exchange(running_[i], {}));
      if (ended_.size() > window_) ended_.pop_front();
      ++episodes_;
      over_[i] = resets_next_ ? 1 : 0;
    }
  }
  last_reward_ = sum / static_cast<double>(end_ - first_);
}

void EpisodeReturns::Reset(py::handle mask) {
  if (mask.is_none()) {
    std::ranges::fill(running_, Episode());
    std::ranges::fill(over_, uint8_t{0});
    return;
  }
  const Elements<bool> ended(mask, running_.size());
  for (size_t i = 0; i < running_.size(); ++i) {
    if (!ended.data()[i]) continue;
    running_[i] = {};
    over_[i] = 0;
  }
}

double EpisodeReturns::RollingReturn() const {
  double sum = 0;
  if (ended_.empty()) {
    for (size_t i = first_; i < end_; ++i) sum += running_[i].sum;
    return sum / static_cast<double>(end_ - first_);
  }
  for (const Episode& episode : ended_) sum += episode.sum;
  return sum / static_cast<double>(ended_.size());
}

std::optional<double> EpisodeReturns::RollingLength() const {
  if (ended_.empty()) return std::nullopt;
  uint64_t steps = 0;
  for (const Episode& episode : ended_) steps += episode.steps;
  return static_cast<double>(steps) / static_cast<double>(ended_.size());
}

}  // namespace tandem
