/* A game with a loop of its own, images as observations, frames, a live scene,
   a contract, telemetry, states and a method of its own: a cart that is pushed
   along a line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tandem.h>
#include <time.h>

#include "cart_scene.h"

enum { SIDE = 36 }; /* pixels: the least that the CNN of SB3 takes */
static double tick_hz = 60, truncate_after = 200;
static const tandem_flag flags[] = {
    {"tick_hz", "turns of the loop a second", &tick_hz},
    {"truncate_after", "steps of an episode", &truncate_after}};
static const tandem_field image_field = {
    "obs/image", TANDEM_UINT8, 3, {SIDE, SIDE, 3}};
static const char *const numbers[] = {"at", "speed"}, *const camera = "side",
                         *const contract_field = "friction_range";
static const tandem_method set_wind = {"set_wind", "text/plain", "A push."};
static struct cart {
  float at, speed, friction, steps;
  uint64_t random, draws; /* of the reset's seed, the contract's */
} * carts;
static float wind;
static float draw_uniform(uint64_t* random, float low, float high) {
  *random = *random * 6364136223846793005u + 1442695040888963407u; /* Knuth */
  return low + (high - low) * (float)(*random >> 40) / (1 << 24);
}

static void paint(const struct cart* cart, uint8_t* rgb, size_t width,
                  size_t height) {
  const size_t x = (size_t)((cart->at + 1) / 2 * (float)(width - 1));
  memset(rgb, 30 + (int)cart->steps % 100, 3 * width * height);
  for (size_t y = height / 2; y < height; ++y) {
    memcpy(rgb + 3 * (y * width + x), (const uint8_t[]){255, 140, 0}, 3);
  }
}

static int32_t joints(void* user, uint32_t env, float* positions,
                      float* velocities) {
  (void)user;
  positions[0] = carts[env].at;
  positions[1] = velocities[0] = carts[env].speed;
  return 0;
}

static int32_t scene(void* user, const uint8_t** glb, uint64_t* bytes) {
  (void)user;
  *glb = cart_scene;
  *bytes = sizeof cart_scene;
  return 0;
}

static int32_t poses(void* user, uint32_t env, float* poses, uint32_t nodes) {
  const float cart[7] = {carts[env].at, 0, 0, 0, 0, 0, 1};
  (void)user;
  memcpy(poses, cart, nodes * sizeof cart); /* one node */
  return 0;
}

static int32_t save_state(void* user, uint32_t env, const uint8_t** state,
                          uint64_t* bytes) {
  (void)user;
  *state = (const uint8_t*)&carts[env];
  *bytes = sizeof *carts;
  return 0;
}

static int32_t load_state(void* user, uint32_t env, const uint8_t* state,
                          uint64_t bytes) {
  (void)user;
  if (bytes != sizeof *carts) return 1;
  memcpy(&carts[env], state, sizeof *carts);
  return 0;
}

static const char* prepare(void* user, tandem_engine_options* options) {
  static tandem_services services = {.struct_size = sizeof services,
                                     .joint_names = numbers,
                                     .joint_count = 2,
                                     .position_count = 2,
                                     .velocity_count = 1,
                                     .joints = joints,
                                     .cameras = &camera,
                                     .camera_count = 1,
                                     .draws_frames = 1,
                                     .contract_fields = &contract_field,
                                     .contract_field_count = 1,
                                     .own_methods = &set_wind,
                                     .own_method_count = 1,
                                     .scene = scene,
                                     .poses = poses,
                                     .save_state = save_state,
                                     .load_state = load_state};
  (void)user;
  options->task = "CartGame";
  options->fields = &image_field;
  options->field_count = 1;
  options->act_size = 1;
  options->description =
      "{\"action_space\": {\"type\": \"Box\", \"low\": [-1], \"high\": [1]}}";
  options->services = &services;
  carts = calloc(options->num_envs, sizeof *carts);
  if (!(tick_hz >= 1 && tick_hz <= 1e6)) return "--tick_hz: expected 1 to 1e6";
  return carts == NULL ? "--num_envs: expected fewer" : NULL;
}

static void reset(const tandem_work* work, uint32_t i) {
  const tandem_contract* const contract =
      work->contracts == NULL ? NULL : work->contracts[i];
  struct cart* const cart = &carts[work->resets[i].env];
  if (work->resets[i].has_seed) cart->random = work->resets[i].seed;
  if (contract && contract->begins) cart->draws = contract->seed;
  cart->at = draw_uniform(&cart->random, -1, 0);
  cart->speed = cart->steps = 0;
  cart->friction = 0.5f;
  if (contract == NULL) return;
  const float* const range = contract->ranges[0].values; /* friction_range */
  cart->friction = draw_uniform(&cart->draws, range[0], range[1]);
}

static void step(const tandem_work* work, uint32_t env) {
  struct cart* const cart = &carts[env];
  const float push = ((const float*)work->data[1])[env];
  const float force = push > 1 ? 1 : push > -1 ? push : -1; /* NaN, too */
  cart->speed += (4 * force + wind - cart->friction * cart->speed) / 60;
  cart->at += cart->speed / 60;
  if (!(cart->at >= -1)) cart->at = -1, cart->speed = 0; /* NaN, too */
  if (cart->at > 1) cart->at = 1;
  ((float*)work->data[2])[env] = cart->at - 1;
  ((uint8_t*)work->data[3])[env] = cart->at == 1;
  ((uint8_t*)work->data[4])[env] = ++cart->steps >= truncate_after;
}

static void do_work(tandem_engine* engine, const tandem_work* work) {
  tandem_array image = {.struct_size = sizeof image};
  tandem_engine_array(engine, image_field.name, &image);
  for (uint32_t i = 0; i < work->count; ++i) {
    const int resets = work->kind == TANDEM_WORK_RESET;
    const uint32_t env = resets ? work->resets[i].env : work->envs[i];
    uint8_t* const all = work->data[image.index];
    resets ? reset(work, i) : step(work, env);
    paint(&carts[env], all + env * image.bytes / image.shape[0], SIDE, SIDE);
  }
  tandem_engine_done(engine, NULL);
}

static void draw(tandem_engine* engine, uint64_t call,
                 const tandem_draw* draw) {
  uint8_t* const rgb = malloc((size_t)3 * draw->width * draw->height);
  const tandem_image image = {sizeof image, TANDEM_RGB8, draw->width,
                              draw->height, rgb,         0};
  if (rgb) paint(&carts[draw->env], rgb, draw->width, draw->height);
  if (!rgb || tandem_engine_drawn(engine, call, &image) != TANDEM_OK) {
    tandem_engine_refuse(engine, call, TANDEM_UNSUPPORTED, "no such image");
  }
  free(rgb);
}

static void call(tandem_engine* engine, const tandem_work* work) {
  const char* const text = (const char*)work->envelope;
  char* end = NULL;
  const float value = strtof(text, &end);
  if (end == text || !isfinite(value)) {
    tandem_engine_refuse(engine, work->call, TANDEM_INVALID_ARGUMENT,
                         "expected a finite number");
    return;
  }
  wind = value;
  tandem_engine_answer(engine, work->call, (const uint8_t*)"ok", 2);
}

static void loop(void* user, tandem_engine* engine) {
  (void)user;
  const struct timespec tick = {0, (long)(1e9 / tick_hz) - 1};
  tandem_work work = {.struct_size = sizeof work};
  for (; !tandem_engine_stopping(engine); nanosleep(&tick, NULL)) {
    int steps = 0; /* one in each tick */
    while (!steps && tandem_engine_next(engine, 0.001, &work) == TANDEM_OK &&
           work.kind != TANDEM_WORK_NONE) {
      steps = work.kind == TANDEM_WORK_STEP;
      if (steps || work.kind == TANDEM_WORK_RESET) do_work(engine, &work);
      if (work.kind == TANDEM_WORK_DRAW) draw(engine, work.call, work.draw);
      if (work.kind == TANDEM_WORK_CLEAR) wind = 0;
      if (work.kind == TANDEM_WORK_CALL) call(engine, &work);
    }
  }
}

int main(int argc, char** argv) {
  const tandem_server server = {.struct_size = sizeof server,
                                .flags = flags,
                                .flag_count = sizeof flags / sizeof *flags,
                                .usage = "A cart on a line.",
                                .prepare = prepare,
                                .loop = loop};
  return tandem_serve(argc, argv, &server);
}
