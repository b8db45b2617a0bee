// Images in memory of a GPU that an engine of tandem.h has exported itself, and
// its client, by the stand-in for the CUDA driver.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

#include "absl/strings/match.h"
#include "base/error.h"
#include "sdk/tandem.h"
#include "sdk/testing/api_fixture.h"
#include "transport/client_side.h"
#include "transport/gpu/testing/standin_library.h"
#include "transport/imported_arrays.h"

namespace tandem {
namespace {

constexpr uint32_t kBytes = 8192, kOffset = 256;
constexpr size_t kImages = 2 * 2 * 3 * 4;  // environments, rows, columns, RGBA

class GpuMemoryTest : public ApiTest {
 protected:
  GpuMemoryTest() {
    setenv("TANDEM_CUDA_LIBRARY", StandInLibrary().c_str(), 1);
    memory_.fd = memfd_create("images", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(memory_.fd, kBytes), 0);
    pixels_ = static_cast<uint8_t*>(
        mmap(nullptr, kBytes, PROT_WRITE, MAP_SHARED, memory_.fd, 0));
    std::memcpy(memory_.device_uuid, "tandem-stand-in0", 16);
    options_ = Options();
    options_.gpu = &gpu_;
    // Each work writes its number into all pixels.
    counter_.before = [this](const tandem_work&) {
      std::memset(pixels_ + kOffset, static_cast<int>(counter_.kinds.size()),
                  kImages);
      return 0;
    };
  }
  // A process loads the driver once, and one that has loaded it cannot fork.
  void InChild(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
      body();
      TearDown();
      fflush(stdout);
      _exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  ClientSide NewClient() const {
    return ClientSide::Attach(name_, {.timeout_secs = 60}).value();
  }
  static std::vector<uint8_t> ImagesOf(const ImportedArrays& arrays) {
    const auto* const first =
        reinterpret_cast<const uint8_t*>(arrays.At(arrays.arrays().front()));
    return {first, first + kImages};
  }
  static void Forbid(uint32_t call, uint32_t error) {
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program = {.len = 4, .filter = code};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
  }

  tandem_gpu_memory memory_ = {sizeof(memory_), -1, kBytes, kOffset, 4, 0, {}};
  tandem_gpu gpu_ = {sizeof(gpu_), 0, 0, 3, 2, 0, &memory_};
  tandem_engine_options options_;
  uint8_t* pixels_ = nullptr;
};

TEST_F(GpuMemoryTest, ImagesOfEachStepArrive) {
  InChild([this] {
    Start(options_);
    auto* const count = reinterpret_cast<int (*)(const char*)>(
        dlsym(dlopen(StandInLibrary().c_str(), RTLD_NOW), "standin_count"));
    {
      ClientSide client = NewClient();
      const auto arrays = ImportedArrays::Open(client).value();
      for (int step = 0; step < 3; ++step) {
        ASSERT_EQ(client.Step(std::vector<float>(2), 60), ErrorCode::kOk);
        const auto number = static_cast<uint8_t>(counter_.kinds.size());
        EXPECT_EQ(ImagesOf(*arrays), std::vector(kImages, number));
        EXPECT_TRUE(arrays->WaitOn(nullptr).ok() && arrays->HasReaders());
        EXPECT_TRUE(arrays->AwaitReaders().ok());
      }
    }
    EXPECT_EQ(count("allocations"), 0);
  });
}

TEST_F(GpuMemoryTest, AnImportOutlivesItsEngine) {
  InChild([this] {
    const pid_t engine = fork();
    if (engine == 0) {
      alarm(100);
      Start(options_);
      for (;;) pause();
    }
    ClientSide client = NewClient();
    const auto arrays = ImportedArrays::Open(client).value();
    ASSERT_EQ(client.Step(std::vector<float>(2), 60), ErrorCode::kOk);
    const std::vector<uint8_t> images = ImagesOf(*arrays);
    kill(engine, SIGKILL);
    waitpid(engine, nullptr, 0);
    EXPECT_EQ(client.Step(std::vector<float>(2), 60), ErrorCode::kPeerGone);
    EXPECT_EQ(ImagesOf(*arrays), images);
    EXPECT_EQ(CodeOf(ImportedArrays::Open(client).status()),
              ErrorCode::kGpuStaleHandle);
    Start(options_);  // it has the name of the dead one
    EXPECT_TRUE(ImportedArrays::Open(NewClient()).ok());
  });
}

TEST_F(GpuMemoryTest, AClientNamesWhatForbidsTheImport) {
  const auto refuses = [this](ErrorCode code, const char* said,
                              const std::function<void()>& prepare) {
    InChild([&] {
      prepare();
      Start(options_);
      const absl::Status status = ImportedArrays::Open(NewClient()).status();
      EXPECT_EQ(CodeOf(status), code) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), said)) << status;
    });
  };
  refuses(ErrorCode::kGpuOtherDevice, "GPU-74616e64",
          [] { setenv("TANDEM_STANDIN_FIRST", "7", 1); });
  refuses(ErrorCode::kGpuDriverMissing, "TANDEM_CUDA=no",
          [] { setenv("TANDEM_CUDA", "no", 1); });
  refuses(ErrorCode::kGpuFailed, "cuImportExternalMemory of 8192 bytes",
          [this] { dup2(STDIN_FILENO, memory_.fd); });  // another file
  refuses(ErrorCode::kGpuStaleHandle, "closed", [this] { memory_.fd = 1000; });
  refuses(ErrorCode::kAccessDenied, "forbidden by",
          [] { Forbid(SYS_pidfd_getfd, EPERM); });
}

TEST_F(GpuMemoryTest, WrongMembersAreRefusedByName) {
  const auto refused = [this](auto* member, int64_t value, const char* said) {
    const auto good = *member;
    *member = static_cast<std::decay_t<decltype(good)>>(value);
    EXPECT_EQ(tandem_engine_create(&options_, nullptr, &engine_),
              TANDEM_INVALID_ARGUMENT);
    EXPECT_TRUE(absl::StrContains(LastError(), said)) << LastError();
    *member = good;
  };
  refused(&gpu_.gpu_only, 1, "observations in the region");
  refused(&gpu_.image_width, 0, "expected shape[1]");
  refused(&memory_.struct_size, 8, "options->gpu->memory");
  refused(&memory_.fd, -1, "found -1");
  refused(&memory_.channels, 5, "3 (or 4");
  refused(&memory_.offset, 8, "multiple of 256");
  refused(&memory_.bytes, 300, "inside the allocation's 300 bytes");
}

}  // namespace
}  // namespace tandem
