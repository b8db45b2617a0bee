// Compares Tandem's prototypes with the toolkit's cuda.h, at compile time, and
// links a program that names each function against libcuda.
//
// Data flow: cuda_header_test.py compiles and links it where the toolkit is
// installed.

#include <cuda.h>

#include <cstddef>
#include <cstdio>
#include <iterator>
#include <type_traits>

#include "transport/gpu/cuda_prototypes.h"

namespace {

enum class Kind { kPointer, kNumber, kStruct };
template <typename T>
constexpr Kind kKind = std::is_pointer_v<T> ? Kind::kPointer
                       : std::is_class_v<T> ? Kind::kStruct
                                            : Kind::kNumber;

// Whether the two types are passed alike: of one size and kind.
template <typename Ours, typename Theirs>
constexpr bool kSameValue =
    sizeof(Ours) == sizeof(Theirs) &&
    alignof(Ours) == alignof(Theirs) && kKind<Ours> == kKind<Theirs>;

// The same for what a pointer leads to; an incomplete type is a handle.
template <typename Ours, typename Theirs>
constexpr bool SameTarget() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using A = std::remove_cv_t<std::remove_pointer_t<Ours>>;
    using B = std::remove_cv_t<std::remove_pointer_t<Theirs>>;
    if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
      return std::is_void_v<A> && std::is_void_v<B>;
    } else if constexpr (std::is_class_v<A>) {
      return std::is_class_v<B>;
    } else {
      return kSameValue<A, B>;
    }
  }
  return true;
}

template <typename Ours, typename Theirs>
struct Same : std::false_type {};
template <typename... A, typename... B>
struct Same<tandem::CudaResult (*)(A...), CUresult (*)(B...)> {
  static constexpr bool Compare() {
    if constexpr (sizeof...(A) != sizeof...(B)) {
      return false;
    } else {
      return (kSameValue<A, B> && ...) && (SameTarget<A, B>() && ...);
    }
  }
  static constexpr bool value = Compare();
};

#define TANDEM_COMPARE(member, symbol, parameters)                             \
  static_assert(                                                               \
      Same<decltype(tandem::CudaFunctions::member), decltype(&symbol)>::value, \
      "cuda_prototypes.h differs from cuda.h in " #symbol);
TANDEM_CUDA_FUNCTIONS(TANDEM_COMPARE)
#undef TANDEM_COMPARE

static_assert(sizeof(tandem::CudaResult) == sizeof(CUresult));
static_assert(sizeof(tandem::CudaUuid) == sizeof(CUuuid));
static_assert(sizeof(tandem::CudaMemoryHandle) == CU_IPC_HANDLE_SIZE);
static_assert(sizeof(tandem::CudaEventHandle) == CU_IPC_HANDLE_SIZE);
static_assert(sizeof(tandem::CudaMemoryDesc) ==
              sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC));
static_assert(offsetof(tandem::CudaMemoryDesc, fd) ==
              offsetof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle));
static_assert(sizeof(tandem::CudaBufferDesc) ==
              sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC));
static_assert(tandem::kCudaOpaqueFd ==
              CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD);
static_assert(tandem::kCudaDedicated == CUDA_EXTERNAL_MEMORY_DEDICATED);
static_assert(tandem::kCudaSuccess == CUDA_SUCCESS);
static_assert(tandem::kCudaInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(tandem::kCudaNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(tandem::kCudaStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(tandem::kCudaNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(tandem::kCudaMapFailed == CUDA_ERROR_MAP_FAILED);
static_assert(tandem::kCudaInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(tandem::kCudaAlreadyRegistered ==
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
static_assert(tandem::kCudaIpcLazyPeerAccess ==
              CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(tandem::kCudaEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(tandem::kCudaEventInterprocess == CU_EVENT_INTERPROCESS);
static_assert(tandem::kCudaStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(tandem::kCudaHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);

}  // namespace

int main(int argc, char** argv) {
  (void)argv;
  const void* const functions[] = {
#define TANDEM_NAME(member, symbol, parameters) \
  reinterpret_cast<const void*>(&symbol),
      TANDEM_CUDA_FUNCTIONS(TANDEM_NAME)
#undef TANDEM_NAME
  };
  // The argument keeps the compiler from dropping the table.
  std::printf("%zu functions, CUDA %d, %d\n", std::size(functions),
              CUDA_VERSION, functions[argc - 1] != nullptr);
  return 0;
}
