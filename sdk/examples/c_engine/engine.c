/* An engine in C: counters. Without --tick_hz it steps when it is called; with
   it, it has a loop of its own, in which a step takes --ticks turns. */
#include <stdlib.h>
#include <tandem.h>
#include <time.h>

static double tick_hz = 0, ticks = 1, truncate_after = 0;
static const tandem_flag flags[] = {
    {"tick_hz", "turns of the loop a second; 0: no loop", &tick_hz},
    {"ticks", "turns that a step takes", &ticks},
    {"truncate_after", "steps of an episode; 0: no limit", &truncate_after},
};
static struct counter { float steps, episode; } * counters;

static const char* prepare(void* user, tandem_engine_options* options) {
  (void)user;
  options->task = "Counter";
  options->obs_size = 2; /* steps of the episode, a number of the episode */
  options->act_size = 1;
  srand((unsigned)time(NULL));
  counters = calloc(options->num_envs, sizeof *counters);
  if (!(ticks >= 1 && ticks <= 1e6 && ticks == (int)ticks)) {
    return "--ticks: expected an integer, 1 to 1000000";
  }
  if (!(tick_hz >= 0 && tick_hz <= 1e6)) {
    return "--tick_hz: expected 0 to 1000000";
  }
  if (!(truncate_after >= 0)) return "--truncate_after: expected 0 or more";
  return counters == NULL ? "--num_envs: expected fewer" : NULL;
}

/* data[0] is obs, then actions, rewards, terminateds, truncateds: the order of
   the names of tandem_engine_array. */
static int32_t do_work(void* user, const tandem_work* work) {
  (void)user;
  for (uint32_t i = 0; i < work->count; ++i) {
    const uint32_t env =
        work->kind == TANDEM_WORK_RESET ? work->resets[i].env : work->envs[i];
    struct counter* counter = &counters[env];
    if (work->kind == TANDEM_WORK_RESET) {
      counter->steps = 0;
      counter->episode =
          (float)((work->resets[i].has_seed ? work->resets[i].seed
                                            : (uint64_t)rand()) %
                  9973);
    } else {
      ++counter->steps;
      ((float*)work->data[2])[env] = ((const float*)work->data[1])[env];
      ((uint8_t*)work->data[3])[env] = 0;
      ((uint8_t*)work->data[4])[env] = counter->steps == truncate_after;
    }
    ((float*)work->data[0])[2 * env] = counter->steps;
    ((float*)work->data[0])[2 * env + 1] = counter->episode;
  }
  return 0;
}

static void loop(void* user, tandem_engine* engine) {
  tandem_work next = {.struct_size = sizeof next}, work = next;
  double left = 0; /* turns until the step in progress is done */
  if (tick_hz == 0) {
    tandem_engine_run(engine);
    return;
  }
  while (!tandem_engine_stopping(engine)) {
    const double secs = 1 / tick_hz;
    double wait = 0;
    const struct timespec tick = {(time_t)secs,
                                  (long)(1e9 * (secs - (double)(time_t)secs))};
    if (left > 0 && --left == 0) {
      do_work(user, &work);
      if (tandem_engine_done(engine, NULL) != TANDEM_OK) return;
      wait = 0.001; /* for the next step of a fast client: else a tick */
    }
    while (tandem_engine_next(engine, wait, &next) == TANDEM_OK &&
           next.kind != TANDEM_WORK_NONE) {
      if (next.kind == TANDEM_WORK_STEP) {
        work = next;
        left = ticks;
      } else if (next.kind == TANDEM_WORK_RESET) {
        do_work(user, &next);
        if (tandem_engine_done(engine, NULL) != TANDEM_OK) return;
      }
    }
    nanosleep(&tick, NULL); /* here a real engine draws its frame */
  }
}

int main(int argc, char** argv) {
  const tandem_server server = {.struct_size = sizeof server,
                                .flags = flags,
                                .flag_count = sizeof flags / sizeof *flags,
                                .usage = "Environments that count.",
                                .prepare = prepare,
                                .work = do_work,
                                .loop = loop};
  return tandem_serve(argc, argv, &server);
}
