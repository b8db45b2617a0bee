#include "transport/region_copies.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/error.h"
#include "transport/gpu/cuda_driver.h"
#include "transport/gpu/cuda_prototypes.h"

namespace tandem {
namespace {

constexpr size_t kAlignment = 256;
constexpr std::align_val_t kPage{4096};
// Sources with at most this many bytes between them are one copy.
constexpr size_t kMostBetween = 4096;

// The mappings that copies of this process have pinned. Never destroyed.
struct Pins {
  struct Pin {
    int users = 0;
    bool is_ours = false;  // else the caller's program has registered it
  };
  Mutex mutex;
  std::map<const RegionMapping*, Pin> all ABSL_GUARDED_BY(mutex);
};
Pins& ThePins() {
  static Pins* const pins = new Pins;
  return *pins;
}

void Unpin(const PrimaryContext& context, const RegionMapping& mapping) {
  if (CudaBelongsToParent()) return;
  Pins& pins = ThePins();
  MutexLock lock(&pins.mutex);
  const auto pin = pins.all.find(&mapping);
  if (--pin->second.users != 0) return;
  const CurrentContext current(context);
  if (pin->second.is_ours && current.status().ok()) {
    (void)context.cuda().MemHostUnregister(mapping.base());
  }
  pins.all.erase(pin);
}

// Makes the mapping pinned memory until the last such reference to it ends.
// kGpuFailed.
absl::StatusOr<std::shared_ptr<const void>> Pin(
    const std::shared_ptr<const PrimaryContext>& context,
    const std::shared_ptr<const RegionMapping>& mapping) {
  const CurrentContext current(*context);
  TANDEM_RETURN_IF_ERROR(current.status());
  Pins& pins = ThePins();
  MutexLock lock(&pins.mutex);
  const auto [pin, is_new] = pins.all.try_emplace(mapping.get());
  if (is_new) {
    const CudaResult result = context->cuda().MemHostRegister(
        mapping->base(), mapping->bytes(), kCudaHostRegisterPortable);
    pin->second.is_ours = result == kCudaSuccess;
    if (!pin->second.is_ours && result != kCudaAlreadyRegistered) {
      pins.all.erase(pin);
      return context->driver().Check(result, "cuMemHostRegister of a region");
    }
  }
  ++pin->second.users;
  return std::shared_ptr<const void>(
      mapping.get(),
      [context, mapping](const void*) { Unpin(*context, *mapping); });
}

}  // namespace

absl::StatusOr<std::shared_ptr<RegionCopies>> RegionCopies::Make(
    int ordinal, std::shared_ptr<const RegionMapping> mapping,
    const std::vector<Source>& sources, bool overlaps) {
  TANDEM_ASSIGN_OR_RETURN(const CudaDriver* const driver, CudaDriver::Load());
  TANDEM_ASSIGN_OR_RETURN(auto context, PrimaryContext::Of(*driver, ordinal));
  TANDEM_RETURN_IF_ERROR(context->CheckCaller());
  std::shared_ptr<RegionCopies> copies(
      new RegionCopies(std::move(context), std::move(mapping), overlaps));
  copies->Plan(sources);
  TANDEM_RETURN_IF_ERROR(copies->Allocate());
  return copies;
}

// Offsets in a range are those in the region, so alignments are equal.
void RegionCopies::Plan(const std::vector<Source>& sources) {
  std::vector<size_t> order(sources.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto first = [&](size_t i) {
    return static_cast<const std::byte*>(sources[i].address);
  };
  std::ranges::sort(order, {}, first);
  places_.resize(sources.size());
  for (const size_t i : order) {
    const std::byte* const begin = first(i);
    const std::byte* const end = begin + sources[i].bytes;
    if (ranges_.empty() ||
        begin > ranges_.back().from + ranges_.back().bytes + kMostBetween) {
      const size_t before = static_cast<size_t>(begin - mapping_->base());
      ranges_.push_back(
          {.from = begin - before % kAlignment, .bytes = 0, .place = bytes_});
    }
    Range& range = ranges_.back();
    range.bytes = std::max(range.bytes, static_cast<size_t>(end - range.from));
    places_[i] = range.place + static_cast<uint64_t>(begin - range.from);
    bytes_ =
        (range.place + range.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

absl::Status RegionCopies::Allocate() {
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  const CudaFunctions& cuda = context_->cuda();
  TANDEM_ASSIGN_OR_RETURN(pin_, Pin(context_, mapping_));
  for (Buffer& buffer : buffers_) {
    TANDEM_RETURN_IF_ERROR(
        Check(cuda.MemAlloc(&buffer.device, bytes_), "cuMemAlloc"));
    TANDEM_RETURN_IF_ERROR(
        Check(cuda.EventCreate(&buffer.copied, kCudaEventDisableTiming),
              "cuEventCreate"));
    if (!overlaps_) continue;
    void* const host = ::operator new(bytes_, kPage, std::nothrow);
    if (host == nullptr) {
      return MakeError(ErrorCode::kSystemCallFailed,
                       absl::StrCat("expected memory for a buffer of ", bytes_,
                                    " bytes, found none; use fewer "
                                    "environments"));
    }
    buffer.host = static_cast<std::byte*>(host);
    std::memset(host, 0, bytes_);  // no page faults later
    TANDEM_RETURN_IF_ERROR(
        Check(cuda.MemHostRegister(host, bytes_, kCudaHostRegisterPortable),
              "cuMemHostRegister of a buffer"));
    buffer.pinned = true;
  }
  TANDEM_RETURN_IF_ERROR(Check(
      cuda.EventCreate(&order_, kCudaEventDisableTiming), "cuEventCreate"));
  return Check(cuda.StreamCreate(&stream_, kCudaStreamNonBlocking),
               "cuStreamCreate");
}

RegionCopies::~RegionCopies() {
  const bool of_parent = CudaBelongsToParent();
  if (!of_parent) {
    const CurrentContext current(*context_);
    const CudaFunctions& cuda = context_->cuda();
    if (current.status().ok()) {
      if (stream_ != nullptr) {
        (void)cuda.StreamSynchronize(stream_);
        (void)cuda.StreamDestroy(stream_);
      }
      if (order_ != nullptr) (void)cuda.EventDestroy(order_);
      for (const Buffer& buffer : buffers_) {
        if (buffer.copied != nullptr) (void)cuda.EventDestroy(buffer.copied);
        if (buffer.device != 0) (void)cuda.MemFree(buffer.device);
        if (buffer.pinned) (void)cuda.MemHostUnregister(buffer.host);
      }
    }
  }
  for (const Buffer& buffer : buffers_) {
    ::operator delete(buffer.host, kPage);
  }
}

absl::StatusOr<uint64_t> RegionCopies::Begin() {
  TANDEM_RETURN_IF_ERROR(context_->CheckCaller());
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  const CudaFunctions& cuda = context_->cuda();
  MutexLock lock(&mutex_);
  const uint64_t copy = begun_ + 1;
  Buffer& buffer = buffers_[copy % kBuffers];
  for (const CudaStream reader : std::exchange(buffer.readers, {})) {
    TANDEM_RETURN_IF_ERROR(
        Check(cuda.EventRecord(order_, reader), "cuEventRecord"));
    TANDEM_RETURN_IF_ERROR(
        Check(cuda.StreamWaitEvent(stream_, order_, 0), "cuStreamWaitEvent"));
  }
  if (overlaps_ && copy > kBuffers) {
    TANDEM_RETURN_IF_ERROR(
        Check(cuda.EventSynchronize(buffer.copied), "cuEventSynchronize"));
  }
  begun_ = copy;  // the buffer's last copy is no longer valid
  absl::Status status = Enqueue(buffer);
  if (status.ok()) return copy;
  (void)cuda.StreamSynchronize(stream_);
  return status;
}

absl::Status RegionCopies::Enqueue(const Buffer& buffer) {
  const CudaFunctions& cuda = context_->cuda();
  for (const Range& range : ranges_) {
    const void* from = range.from;
    if (overlaps_) {
      from = std::memcpy(buffer.host + range.place, range.from, range.bytes);
    }
    TANDEM_RETURN_IF_ERROR(
        Check(cuda.MemcpyToDevice(buffer.device + range.place, from,
                                  range.bytes, stream_),
              "cuMemcpyHtoDAsync"));
  }
  return Check(cuda.EventRecord(buffer.copied, stream_), "cuEventRecord");
}

absl::Status RegionCopies::WaitOn(uint64_t copy,
                                  std::optional<CudaStream> stream) {
  TANDEM_RETURN_IF_ERROR(context_->CheckCaller());
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  MutexLock lock(&mutex_);
  if (copy + kBuffers <= begun_) {
    return MakeError(
        ErrorCode::kInvalidArgument,
        "array on a GPU: expected one of the last two steps, found an earlier "
        "one; clone the tensors that must last");
  }
  if (!stream) return absl::OkStatus();
  Buffer& buffer = buffers_[copy % kBuffers];
  TANDEM_RETURN_IF_ERROR(
      Check(context_->cuda().StreamWaitEvent(*stream, buffer.copied, 0),
            "cuStreamWaitEvent"));
  if (std::ranges::find(buffer.readers, *stream) == buffer.readers.end()) {
    buffer.readers.push_back(*stream);
  }
  return absl::OkStatus();
}

absl::Status RegionCopies::AwaitRead() {
  if (overlaps_) return absl::OkStatus();
  TANDEM_RETURN_IF_ERROR(context_->CheckCaller());
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  MutexLock lock(&mutex_);
  if (begun_ == 0) return absl::OkStatus();
  return Check(
      context_->cuda().EventSynchronize(buffers_[begun_ % kBuffers].copied),
      "cuEventSynchronize");
}

absl::Status RegionCopies::CopyBack(void* to, CudaPointer from, size_t bytes,
                                    CudaStream stream) {
  TANDEM_RETURN_IF_ERROR(context_->CheckCaller());
  const CurrentContext current(*context_);
  TANDEM_RETURN_IF_ERROR(current.status());
  TANDEM_RETURN_IF_ERROR(
      Check(context_->cuda().MemcpyToHost(to, from, bytes, stream),
            "cuMemcpyDtoHAsync"));
  return Check(context_->cuda().StreamSynchronize(stream),
               "cuStreamSynchronize");
}

absl::Status RegionCopies::Check(CudaResult result, const char* call) const {
  return context_->driver().Check(result, call);
}

}  // namespace tandem
