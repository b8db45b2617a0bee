/* An engine with a loop of its own, 60 ticks a second: a step takes as many
   ticks as --ticks says. Each environment is a counter. */
#include <stdlib.h>
#include <tandem.h>
#include <time.h>

static double tick_hz = 60, ticks = 1, truncate_after = 0;
static const tandem_flag flags[] = {
    {"tick_hz", "ticks per second; 0: as many as possible", &tick_hz},
    {"ticks", "number of ticks that a step takes", &ticks},
    {"truncate_after", "steps of an episode; 0: no limit", &truncate_after},
};
typedef struct counter { float steps, episode; } counter;
static counter* counters;

static const char* prepare(void* user, tandem_engine_options* options) {
  (void)user;
  options->task = "Counter";
  options->obs_size = 2; /* steps of the episode, a number of the episode */
  options->act_size = 1;
  srand((unsigned)time(NULL));
  counters = calloc(options->num_envs, sizeof(counter));
  return counters == NULL || ticks < 1 ? "--ticks: expected 1 or more" : NULL;
}

/* The arrays' memory: obs is 0, actions 1, rewards 2, terminateds 3 and
   truncateds 4, in the order of tandem_engine_array's names. */
static void reset(const tandem_work* work) {
  float* obs = work->data[0];
  for (uint32_t i = 0; i < work->count; ++i) {
    counter* env = &counters[work->resets[i].env];
    env->steps = 0;
    env->episode = (float)(work->resets[i].has_seed ? work->resets[i].seed % 99
                                                    : (uint64_t)(rand() % 99));
    obs[2 * work->resets[i].env] = env->steps;
    obs[2 * work->resets[i].env + 1] = env->episode;
  }
}

static void step(const tandem_work* work) {
  float* obs = work->data[0];
  const float* actions = work->data[1];
  for (uint32_t i = 0; i < work->count; ++i) {
    const uint32_t env = work->envs[i];
    obs[2 * env] = ++counters[env].steps;
    obs[2 * env + 1] = counters[env].episode;
    ((float*)work->data[2])[env] = actions[env];
    ((uint8_t*)work->data[3])[env] = 0;
    ((uint8_t*)work->data[4])[env] = counters[env].steps == truncate_after;
  }
}

static void loop(void* user, tandem_engine* engine) {
  tandem_work work = {.struct_size = sizeof work}, next = work;
  double left = 0; /* ticks until the step in progress is done */
  (void)user;
  while (!tandem_engine_stopping(engine)) {
    if (left > 0 && --left == 0) {
      step(&work);
      if (tandem_engine_done(engine, NULL) != TANDEM_OK) return;
    }
    while (tandem_engine_next(engine, 0, &next) == TANDEM_OK &&
           next.kind != TANDEM_WORK_NONE) {
      if (next.kind == TANDEM_WORK_STEP) {
        work = next;
        left = ticks;
      } else if (next.kind == TANDEM_WORK_RESET) {
        reset(&next);
        if (tandem_engine_done(engine, NULL) != TANDEM_OK) return;
      }
    }
    if (tick_hz > 0) { /* here a real engine draws its frame */
      const struct timespec tick = {0, (long)(1e9 / tick_hz) % 1000000000};
      nanosleep(&tick, NULL);
    }
  }
}

int main(int argc, char** argv) {
  const tandem_server server = {.struct_size = sizeof server,
                                .flags = flags,
                                .flag_count = sizeof flags / sizeof *flags,
                                .usage = "Counts, in a loop with ticks.",
                                .prepare = prepare,
                                .loop = loop};
  return tandem_serve(argc, argv, &server);
}
