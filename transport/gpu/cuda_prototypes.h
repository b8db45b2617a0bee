// The functions of the CUDA driver that Tandem calls, as prototypes of its own:
// neither build nor run needs the CUDA toolkit.
//
// Data flow: libcuda.so.1 -> dlsym of each name -> CudaFunctions.
// Ownership: types only. testing/cuda_header_check.cc compares each row with
// cuda.h where the toolkit is installed.

#pragma once

#include <cstddef>
#include <type_traits>

#include "transport/cuda.h"

namespace tandem {

struct CudaUuid {
  char bytes[16];
};
struct CudaMemoryHandle {
  char bytes[64];
};
struct CudaEventHandle {
  char bytes[64];
};
static_assert(sizeof(CudaUuid) == 16 && std::is_trivial_v<CudaUuid>);
static_assert(sizeof(CudaMemoryHandle) == 64);
static_assert(sizeof(CudaEventHandle) == 64);

// CUDA_EXTERNAL_MEMORY_HANDLE_DESC, and CUDA_EXTERNAL_MEMORY_BUFFER_DESC.
struct CudaMemoryDesc {
  int type;  // kCudaOpaqueFd
  int padding_4;
  int fd;  // of a union of 16 bytes
  int padding_12[3];
  unsigned long long bytes;
  unsigned flags;  // kCudaDedicated
  unsigned reserved[16];
};
struct CudaBufferDesc {
  unsigned long long offset;
  unsigned long long bytes;
  unsigned flags;
  unsigned reserved[16];
};
static_assert(offsetof(CudaMemoryDesc, fd) == 8);
static_assert(offsetof(CudaMemoryDesc, bytes) == 24);
static_assert(sizeof(CudaMemoryDesc) == 104);
static_assert(sizeof(CudaBufferDesc) == 88);

// Results that mean more than "failed".
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaInvalidValue = 1;
inline constexpr CudaResult kCudaNotInitialized = 3;
inline constexpr CudaResult kCudaStubLibrary = 34;
inline constexpr CudaResult kCudaNoDevice = 100;
inline constexpr CudaResult kCudaMapFailed = 205;
inline constexpr CudaResult kCudaInvalidHandle = 400;
inline constexpr CudaResult kCudaAlreadyRegistered = 712;

// Flags.
inline constexpr unsigned kCudaIpcLazyPeerAccess = 1;
inline constexpr unsigned kCudaEventDisableTiming = 2;
inline constexpr unsigned kCudaEventInterprocess = 4;
inline constexpr unsigned kCudaStreamNonBlocking = 1;
inline constexpr unsigned kCudaHostRegisterPortable = 1;
inline constexpr int kCudaOpaqueFd = 1;
inline constexpr unsigned kCudaDedicated = 1;

// A member of CudaFunctions, the name in the library, the parameters. Each
// returns a CudaResult.
#define TANDEM_CUDA_FUNCTIONS(ROW)                                             \
  ROW(Init, cuInit, (unsigned flags))                                          \
  ROW(DriverGetVersion, cuDriverGetVersion, (int* version))                    \
  ROW(GetErrorName, cuGetErrorName, (CudaResult result, const char** name))    \
  ROW(DeviceGetCount, cuDeviceGetCount, (int* count))                          \
  ROW(DeviceGet, cuDeviceGet, (CudaDevice * device, int ordinal))              \
  ROW(DeviceGetName, cuDeviceGetName,                                          \
      (char* name, int bytes, CudaDevice device))                              \
  ROW(DeviceGetUuid, cuDeviceGetUuid_v2, (CudaUuid * uuid, CudaDevice device)) \
  ROW(PrimaryContextRetain, cuDevicePrimaryCtxRetain,                          \
      (CudaContext * context, CudaDevice device))                              \
  ROW(PrimaryContextRelease, cuDevicePrimaryCtxRelease_v2,                     \
      (CudaDevice device))                                                     \
  ROW(ContextPush, cuCtxPushCurrent_v2, (CudaContext context))                 \
  ROW(ContextPop, cuCtxPopCurrent_v2, (CudaContext * context))                 \
  ROW(ContextGetCurrent, cuCtxGetCurrent, (CudaContext * context))             \
  ROW(ContextGetDevice, cuCtxGetDevice, (CudaDevice * device))                 \
  ROW(MemAlloc, cuMemAlloc_v2, (CudaPointer * pointer, size_t bytes))          \
  ROW(MemFree, cuMemFree_v2, (CudaPointer pointer))                            \
  ROW(MemsetD8, cuMemsetD8Async,                                               \
      (CudaPointer pointer, unsigned char value, size_t bytes,                 \
       CudaStream stream))                                                     \
  ROW(MemHostRegister, cuMemHostRegister_v2,                                   \
      (void* address, size_t bytes, unsigned flags))                           \
  ROW(MemHostUnregister, cuMemHostUnregister, (void* address))                 \
  ROW(MemcpyToDevice, cuMemcpyHtoDAsync_v2,                                    \
      (CudaPointer to, const void* from, size_t bytes, CudaStream stream))     \
  ROW(MemcpyToHost, cuMemcpyDtoHAsync_v2,                                      \
      (void* to, CudaPointer from, size_t bytes, CudaStream stream))           \
  ROW(MemcpyOnDevice, cuMemcpyDtoDAsync_v2,                                    \
      (CudaPointer to, CudaPointer from, size_t bytes, CudaStream stream))     \
  ROW(IpcGetMemory, cuIpcGetMemHandle,                                         \
      (CudaMemoryHandle * handle, CudaPointer pointer))                        \
  ROW(IpcOpenMemory, cuIpcOpenMemHandle_v2,                                    \
      (CudaPointer * pointer, CudaMemoryHandle handle, unsigned flags))        \
  ROW(IpcCloseMemory, cuIpcCloseMemHandle, (CudaPointer pointer))              \
  ROW(ImportMemory, cuImportExternalMemory,                                    \
      (CudaExternalMemory * memory, const CudaMemoryDesc* desc))               \
  ROW(GetMappedBuffer, cuExternalMemoryGetMappedBuffer,                        \
      (CudaPointer * pointer, CudaExternalMemory memory,                       \
       const CudaBufferDesc* desc))                                            \
  ROW(DestroyMemory, cuDestroyExternalMemory, (CudaExternalMemory memory))     \
  ROW(IpcGetEvent, cuIpcGetEventHandle,                                        \
      (CudaEventHandle * handle, CudaEvent event))                             \
  ROW(IpcOpenEvent, cuIpcOpenEventHandle,                                      \
      (CudaEvent * event, CudaEventHandle handle))                             \
  ROW(EventCreate, cuEventCreate, (CudaEvent * event, unsigned flags))         \
  ROW(EventDestroy, cuEventDestroy_v2, (CudaEvent event))                      \
  ROW(EventRecord, cuEventRecord, (CudaEvent event, CudaStream stream))        \
  ROW(EventSynchronize, cuEventSynchronize, (CudaEvent event))                 \
  ROW(StreamCreate, cuStreamCreate, (CudaStream * stream, unsigned flags))     \
  ROW(StreamDestroy, cuStreamDestroy_v2, (CudaStream stream))                  \
  ROW(StreamSynchronize, cuStreamSynchronize, (CudaStream stream))             \
  ROW(StreamWaitEvent, cuStreamWaitEvent,                                      \
      (CudaStream stream, CudaEvent event, unsigned flags))

struct CudaFunctions {
#define TANDEM_CUDA_MEMBER(member, symbol, parameters) \
  CudaResult(*member) parameters = nullptr;
  TANDEM_CUDA_FUNCTIONS(TANDEM_CUDA_MEMBER)
#undef TANDEM_CUDA_MEMBER
};

}  // namespace tandem
