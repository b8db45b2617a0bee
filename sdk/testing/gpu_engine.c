/* An engine in C, and in C++, that writes on a GPU, for the tests: an author's
   engine has kernels here. It copies by the driver that TANDEM_CUDA_LIBRARY
   names. It has an image beside each observation, too. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem.h>

enum { kObsSize = 3, kSide = 8 };

static double gpu_only = 0, truncate_after = 0;
static const tandem_flag flags[] = {
    {"gpu_only", "1: no observations in the region", &gpu_only},
    {"truncate_after", "steps of an episode; 0: no limit", &truncate_after},
};
static const tandem_gpu gpu_everywhere = {.struct_size = sizeof(tandem_gpu)};
static const tandem_gpu gpu_alone = {.struct_size = sizeof(tandem_gpu),
                                     .gpu_only = 1};
static tandem_engine* served;
static float* obs; /* [num_envs, kObsSize] */
static uint32_t num_envs;

static int (*copy_to_device)(unsigned long long, const void*, size_t, void*);
static int (*push_current)(void*);
static int (*pop_current)(void**);
static void* context;

static const char* load_driver(void) {
  int (*init)(unsigned) = NULL;
  int (*retain)(void**, int) = NULL;
  const char* const name = getenv("TANDEM_CUDA_LIBRARY");
  void* const library =
      dlopen(name != NULL ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return dlerror();
  *(void**)&init = dlsym(library, "cuInit");
  *(void**)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
  *(void**)&push_current = dlsym(library, "cuCtxPushCurrent_v2");
  *(void**)&pop_current = dlsym(library, "cuCtxPopCurrent_v2");
  *(void**)&copy_to_device = dlsym(library, "cuMemcpyHtoDAsync_v2");
  if (init == NULL || retain == NULL || push_current == NULL ||
      pop_current == NULL || copy_to_device == NULL || init(0) != 0 ||
      retain(&context, 0) != 0) {
    return "expected a CUDA driver";
  }
  return NULL;
}

static const char* prepare(void* user, tandem_engine_options* options) {
  (void)user;
  options->task = "GpuCounter";
  options->obs_size = kObsSize;
  options->act_size = 1;
  options->gpu = gpu_only != 0 ? &gpu_alone : &gpu_everywhere;
  num_envs = options->num_envs;
  options->image_width = options->image_height = kSide;
  obs = (float*)calloc(num_envs, kObsSize * sizeof *obs);
  return obs == NULL ? "--num_envs: expected fewer" : load_driver();
}

/* Counts the steps of the episode, beside its seed and the last action. */
static void count(const tandem_work* work, uint32_t i) {
  const int is_reset = work->kind == TANDEM_WORK_RESET;
  const uint32_t env = is_reset ? work->resets[i].env : work->envs[i];
  float* const row = obs + (size_t)kObsSize * env;
  if (is_reset) {
    row[0] = 0;
    row[1] = (float)((work->resets[i].has_seed ? work->resets[i].seed
                                               : (uint64_t)rand()) %
                     9973);
    row[2] = 0;
  } else {
    ++row[0];
    row[2] = ((const float*)work->data[1])[env];
    ((float*)work->data[2])[env] = row[2];
    ((uint8_t*)work->data[3])[env] = 0;
    ((uint8_t*)work->data[4])[env] = row[0] == (float)truncate_after;
  }
  if (gpu_only == 0) {
    for (int k = 0; k < kObsSize; ++k) {
      ((float*)work->data[0])[kObsSize * env + (uint32_t)k] = row[k];
    }
  }
}

static int32_t do_work(void* user, const tandem_work* work) {
  tandem_array array = {.struct_size = sizeof array};
  (void)user;
  tandem_engine_array(served, "images", &array);
  for (uint32_t i = 0; i < work->count; ++i) {
    const uint32_t env =
        work->kind == TANDEM_WORK_RESET ? work->resets[i].env : work->envs[i];
    count(work, i);
    memset((uint8_t*)work->data[array.index] + env * 3 * kSide * kSide,
           (int)obs[kObsSize * env] % 256, 3 * kSide * kSide);
  }
  if (tandem_engine_gpu_array(served, "obs", &array) != TANDEM_OK) {
    if (gpu_only == 0) return 0; /* no driver: the region's alone */
    char text[256];
    tandem_last_error(text, sizeof text);
    tandem_engine_fail(served, text);
    return 1;
  }
  /* On the legacy stream, for which clients wait. */
  void* popped = NULL;
  const int failed =
      push_current(context) != 0 ||
      copy_to_device((unsigned long long)(uintptr_t)array.data, obs,
                     num_envs * kObsSize * sizeof *obs, NULL) != 0;
  if (pop_current(&popped) != 0 || failed) {
    tandem_engine_fail(served, "the copy to the device failed");
    return 1;
  }
  return 0;
}

static void loop(void* user, tandem_engine* engine) {
  (void)user;
  served = engine;
  tandem_engine_run(engine);
}

int main(int argc, char** argv) {
  const tandem_server server = {.struct_size = sizeof server,
                                .flag_count = sizeof flags / sizeof *flags,
                                .flags = flags,
                                .usage = "Environments that count on a GPU.",
                                .prepare = prepare,
                                .work = do_work,
                                .loop = loop};
  return tandem_serve(argc, argv, &server);
}
