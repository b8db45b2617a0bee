/* Steps an engine with one environment over sdk/tandem.h, as SdkClient.cs does.
   Prints the time of each step: binary int64 nanoseconds.

     sdk_client REGION STEPS SECONDS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem.h>
#include <time.h>

static const int64_t kWarmUpNs = 30000000;

static void check(tandem_code code) {
  char text[1000];
  if (code == TANDEM_OK) return;
  tandem_last_error(text, sizeof text);
  fprintf(stderr, "%s: %s\n", tandem_code_name(code), text);
  exit(1);
}

static int64_t nanos(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char** argv) {
  tandem_client_options options = {.struct_size = sizeof options,
                                   .timeout_secs = 30};
  tandem_array actions = {.struct_size = sizeof actions}, rewards = actions;
  tandem_client* client;
  if (argc != 4) return 64;
  options.name = argv[1];
  const size_t steps = strtoul(argv[2], NULL, 10);
  const double seconds = strtod(argv[3], NULL);
  int64_t* const times = malloc(steps * sizeof *times);
  if (times == NULL) return 1;
  check(tandem_client_attach(&options, &client));
  check(tandem_client_array(client, "actions", &actions));
  check(tandem_client_array(client, "rewards", &rewards));
  const int64_t warm = nanos() + kWarmUpNs;
  int64_t end = 0;
  size_t count = 0;
  for (int i = 0; count < steps; ++i) {
    const float action = (float)(i & 1);
    ((float*)actions.data)[0] = action;
    const int64_t asked = nanos();
    check(tandem_client_step(client, NULL, 0, 30));
    const int64_t answered = nanos();
    if (((const float*)rewards.data)[0] != action) {
      fprintf(stderr, "step %d: expected the reward %g\n", i, action);
      return 1;
    }
    if (end != 0) {
      times[count++] = answered - asked;
      if (count >= 10 && answered >= end) break;
    } else if (answered >= warm) {
      end = answered + (int64_t)(1e9 * seconds);
    }
  }
  check(tandem_client_close(client));
  return fwrite(times, sizeof *times, count, stdout) == count ? 0 : 1;
}
