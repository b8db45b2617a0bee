/* A client: 1,000 steps with the action 0.5. Argument: the region's name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tandem.h>

static void check(tandem_code code) {
  char text[1000];
  if (code == TANDEM_OK) return;
  tandem_last_error(text, sizeof text);
  fprintf(stderr, "%s: %s\n", tandem_code_name(code), text);
  exit(1);
}

int main(int argc, char** argv) {
  const tandem_client_options options = {.struct_size = sizeof options,
                                         .name = argc > 1 ? argv[1] : NULL};
  tandem_array actions = {.struct_size = sizeof actions}, rewards = actions;
  tandem_client* client;
  double sum = 0;
  if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
    const int helps =
        strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    fputs(
        "Usage: c_client [NAME]\n\n"
        "Steps the engine of the region NAME 1,000 times.\n"
        "Default: $LUCKY_SHM_NAME, else tandem.\n",
        helps ? stdout : stderr);
    return helps ? 0 : 2;
  }
  check(tandem_client_attach(&options, &client));
  check(tandem_client_array(client, "actions", &actions));
  check(tandem_client_array(client, "rewards", &rewards));
  for (uint64_t i = 0; i < actions.bytes / sizeof(float); ++i) {
    ((float*)actions.data)[i] = 0.5F;
  }
  for (int step = 0; step < 1000; ++step) {
    check(tandem_client_step(client, NULL, 0, 10));
    sum += ((const float*)rewards.data)[0];
  }
  printf("%" PRIu64 " environments, 1000 steps, return %g of the first\n",
         rewards.shape[0], sum);
  check(tandem_client_close(client));
  return 0;
}
