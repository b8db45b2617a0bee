#include "transport/gpu/cuda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "base/error.h"
#include "transport/gpu/testing/standin_library.h"

namespace tandem {
namespace {

// Runs `test` in a new process, since a process loads the driver once. Returns
// whether it returned true.
bool InChild(const std::function<bool()>& test) {
  const pid_t child = fork();
  if (child == 0) _exit(test() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Whether Load fails with this code, and with a text that has `fact`.
bool LoadFails(ErrorCode code, const std::string& fact) {
  const absl::Status status = CudaDriver::Load().status();
  if (CodeOf(status) == code && absl::StrContains(status.message(), fact)) {
    return true;
  }
  std::fprintf(stderr, "found %s\n", status.ToString().c_str());
  return false;
}

class CudaDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TANDEM_CUDA_LIBRARY", StandInLibrary().c_str(), 1);
    setenv("TANDEM_CUDA", "auto", 1);
  }
};

TEST_F(CudaDriverTest, LoadsTheLibraryOfTheSetting) {
  EXPECT_TRUE(InChild([] {
    const absl::StatusOr<const CudaDriver*> driver = CudaDriver::Load();
    return driver.ok() && (*driver)->version() == 13'000 &&
           (*driver)->library() == StandInLibrary() &&
           (*driver)->Devices()->size() == 1 && *CudaDriver::Load() == *driver;
  }));
}

TEST_F(CudaDriverTest, NoLibraryIsADriverThatIsMissing) {
  setenv("TANDEM_CUDA_LIBRARY", "/no/such/library.so", 1);
  EXPECT_TRUE(InChild([] {
    return LoadFails(ErrorCode::kGpuDriverMissing, "/no/such/library.so");
  }));
}

TEST_F(CudaDriverTest, NoDeviceIsADriverThatIsMissing) {
  setenv("TANDEM_STANDIN_DEVICES", "0", 1);
  EXPECT_TRUE(InChild([] {
    return LoadFails(ErrorCode::kGpuDriverMissing, "CUDA_ERROR_NO_DEVICE");
  }));
  unsetenv("TANDEM_STANDIN_DEVICES");
}

TEST_F(CudaDriverTest, TheSettingNoSwitchesTheDriverOff) {
  setenv("TANDEM_CUDA", "no", 1);
  EXPECT_TRUE(InChild([] {
    return LoadFails(ErrorCode::kGpuDriverMissing, "TANDEM_CUDA=no");
  }));
}

TEST_F(CudaDriverTest, AnotherWordOfTheSettingIsAnInvalidArgument) {
  setenv("TANDEM_CUDA", "yes", 1);
  EXPECT_TRUE(
      InChild([] { return LoadFails(ErrorCode::kInvalidArgument, "'yes'"); }));
}

TEST_F(CudaDriverTest, AnOldVersionIsTooOld) {
  setenv("TANDEM_STANDIN_VERSION", "11020", 1);
  EXPECT_TRUE(InChild([] {
    return LoadFails(ErrorCode::kGpuDriverTooOld,
                     "expected version 11.4 or newer, found 11.2");
  }));
  unsetenv("TANDEM_STANDIN_VERSION");
}

TEST_F(CudaDriverTest, ALibraryWithoutAFunctionIsTooOld) {
  setenv("TANDEM_CUDA_LIBRARY", "libm.so.6", 1);
  EXPECT_TRUE(InChild([] {
    return LoadFails(ErrorCode::kGpuDriverTooOld,
                     "without the function cuInit");
  }));
}

TEST_F(CudaDriverTest, AnErrorOfInitHasTheDriversName) {
  setenv("TANDEM_STANDIN_FAIL", "cuInit=304", 1);
  EXPECT_TRUE(InChild([] {
    return LoadFails(ErrorCode::kGpuFailed,
                     "cuInit: expected success, found "
                     "CUDA_ERROR_OPERATING_SYSTEM (304)");
  }));
  unsetenv("TANDEM_STANDIN_FAIL");
}

TEST_F(CudaDriverTest, AForkedChildOfTheProcessThatLoadedItIsRefused) {
  EXPECT_TRUE(InChild([] {
    if (!CudaDriver::Load().ok()) return false;
    return InChild([] {
      return CudaBelongsToParent() &&
             LoadFails(ErrorCode::kForkedChild, "forked child");
    });
  }));
}

TEST_F(CudaDriverTest, AForkedChildOfAProcessWhoseLibraryUsesItIsRefused) {
  EXPECT_TRUE(InChild([] {
    void* const library = dlopen(StandInLibrary().c_str(), RTLD_NOW);
    auto* const init =
        reinterpret_cast<CudaResult (*)(unsigned)>(dlsym(library, "cuInit"));
    if (init == nullptr || init(0) != kCudaSuccess) return false;
    return InChild(
        [] { return LoadFails(ErrorCode::kForkedChild, "forked child"); });
  }));
}

TEST_F(CudaDriverTest, AForkedChildOfAProcessWithoutADeviceFindsNoneEither) {
  setenv("TANDEM_STANDIN_DEVICES", "0", 1);
  EXPECT_TRUE(InChild([] {
    if (CudaDriver::Load().ok()) return false;
    return InChild([] {
      return LoadFails(ErrorCode::kGpuDriverMissing, "CUDA_ERROR_NO_DEVICE");
    });
  }));
  unsetenv("TANDEM_STANDIN_DEVICES");
}

TEST_F(CudaDriverTest, ADeviceIsFoundByItsUuid) {
  setenv("TANDEM_STANDIN_DEVICES", "3", 1);
  EXPECT_TRUE(InChild([] {
    const CudaDriver& driver = **CudaDriver::Load();
    const CudaUuid uuid = driver.Devices()->at(2).uuid;
    return (*PrimaryContext::Of(driver, uuid))->ordinal() == 2;
  }));
  unsetenv("TANDEM_STANDIN_DEVICES");
}

TEST_F(CudaDriverTest, AUuidThatTheProcessDoesNotSeeIsAnotherDevice) {
  EXPECT_TRUE(InChild([] {
    const auto found = PrimaryContext::Of(**CudaDriver::Load(), CudaUuid{});
    return CodeOf(found.status()) == ErrorCode::kGpuOtherDevice &&
           absl::StrContains(found.status().message(),
                             "GPU-00000000-0000-0000-0000-000000000000") &&
           absl::StrContains(found.status().message(),
                             "GPU-74616e64-656d-2d73-7461-6e642d696e30");
  }));
}

TEST_F(CudaDriverTest, AContextIsCurrentOnlyInItsScope) {
  EXPECT_TRUE(InChild([] {
    const CudaDriver& driver = **CudaDriver::Load();
    const auto context = *PrimaryContext::Of(driver, 0);
    const auto current = [&] {
      CudaContext found = nullptr;
      (void)driver.functions().ContextGetCurrent(&found);
      return found;
    };
    {
      const CurrentContext scope(*context);
      if (current() != context->handle()) return false;
      if (!context->CheckCaller().ok()) return false;
    }
    return current() == nullptr && context->CheckCaller().ok();
  }));
}

}  // namespace
}  // namespace tandem
