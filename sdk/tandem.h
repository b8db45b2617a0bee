/* tandem.h: the C interface of libtandem.so.1. An engine, a client or an
   attendant of Tandem in any language that can call C.

   Length: the whole C interface, one file that programs can copy.

   Conventions
   - Functions return a tandem_code: TANDEM_OK, or an error whose text
     tandem_last_error gives. No function throws, and none ends the process.
   - Handles are opaque. A call with a closed or invalid handle returns
     TANDEM_CLIENT_CLOSED. NULL is TANDEM_INVALID_ARGUMENT, except for the
     functions that close: they accept NULL.
   - Every struct but the elements of lists (tandem_reset, tandem_flag,
   tandem_field, tandem_range, tandem_entity, tandem_actuator, tandem_mark,
   tandem_method) begins with struct_size, which the program sets to sizeof the
   struct. Later versions only append fields. A field of 0 or NULL is the
   default. A struct longer than this library's is accepted if the unknown
   fields are 0. Elements of lists do not change.
   - Texts are UTF-8 and end with a NUL. Times are seconds; infinity: no limit.
   - Threads: any thread may call. A second thread inside a call on the same
     engine or client gets TANDEM_CONCURRENT_USE, except where a function says
     otherwise.
   - In a forked child, the handles of the parent return TANDEM_FORKED_CHILD.

   The protocol is docs/protocol.md of the project; the messages of RPCs are
   hazel_rpc.fbs. */

#ifndef TANDEM_H_
#define TANDEM_H_

#include <stdint.h>

#if defined(__GNUC__)
#define TANDEM_API __attribute__((visibility("default")))
#else
#define TANDEM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- Versions and errors -------------------------------------------------- */

#define TANDEM_ABI_MAJOR 1
#define TANDEM_ABI_MINOR 5

/* Numbers of Tandem's errors; a released number keeps its meaning. */
typedef int32_t tandem_code;
enum {
  TANDEM_OK = 0,
  TANDEM_NOT_READY = 1,
  TANDEM_PEER_GONE = 2,
  TANDEM_STEP_TIMEOUT = 3,
  TANDEM_LAYOUT_MISMATCH = 4,
  TANDEM_ALREADY_ATTACHED = 5,
  TANDEM_STEP_PENDING = 6,
  TANDEM_NO_STEP_PENDING = 7,
  TANDEM_CONCURRENT_USE = 8,
  TANDEM_FORKED_CHILD = 9,
  TANDEM_CLIENT_CLOSED = 10,
  TANDEM_INVALID_ACTION = 11,
  TANDEM_INVALID_ARGUMENT = 12,
  TANDEM_BROKEN_PEER = 13,
  TANDEM_ENGINE_FAILED = 14,
  TANDEM_ENGINE_START_FAILED = 15,
  TANDEM_ACCESS_DENIED = 16,
  TANDEM_OUT_OF_SHARED_MEMORY = 17,
  TANDEM_INTERRUPTED = 18,
  TANDEM_RING_FULL = 19,
  TANDEM_RING_EMPTY = 20,
  TANDEM_MESSAGE_TOO_LARGE = 21,
  TANDEM_UNSUPPORTED = 22,
  TANDEM_SYSTEM_CALL_FAILED = 23,
  TANDEM_ENV_FAILED = 24,
  TANDEM_GPU_FAILED = 25,
  TANDEM_GPU_DRIVER_MISSING = 26,
  TANDEM_GPU_DRIVER_TOO_OLD = 27,
  TANDEM_GPU_OTHER_DEVICE = 28,
  TANDEM_GPU_STALE_HANDLE = 29,
  TANDEM_GPU_OTHER_CONTEXT = 30
};

/* The version of this interface in the library: major << 16 | minor. A program
   needs a library of its own major version, and of its minor or a later one. */
TANDEM_API uint32_t tandem_abi_version(void);
/* The version of Tandem, such as "0.1.0". Static. */
TANDEM_API const char* tandem_version(void);
/* The name of an error, such as "PeerGone"; "unknown" for other numbers.
   Static. */
TANDEM_API const char* tandem_code_name(tandem_code code);
/* Copies the text of this thread's last failed call, cut off at `size` - 1
   bytes: what was expected, what was found, what to do next. Returns the bytes
   of the whole text without the NUL; 0: no call has failed. `text` may be NULL
   if `size` is 0. */
TANDEM_API uint64_t tandem_last_error(char* text, uint64_t size);
/* Frees memory that a function of this library has allocated for the program.
   NULL has no effect. */
TANDEM_API void tandem_free(void* memory);

/* --- Arrays --------------------------------------------------------------- */

enum {
  TANDEM_FLOAT32 = 1,
  TANDEM_FLOAT64 = 2,
  TANDEM_UINT8 = 3,
  /* Since 1.2, of fields only. */
  TANDEM_BOOL = 4, /* bytes, 0 or 1 */
  TANDEM_INT8 = 5,
  TANDEM_UINT16 = 6,
  TANDEM_INT16 = 7,
  TANDEM_UINT32 = 8,
  TANDEM_INT32 = 9,
  TANDEM_UINT64 = 10,
  TANDEM_INT64 = 11,
  TANDEM_FLOAT16 = 12 /* IEEE 754 binary16 */
};
#define TANDEM_MAX_DIMENSIONS 4

/* An array of all environments, in C order; the first dimension is the
   environment. */
typedef struct tandem_array {
  uint32_t struct_size;
  uint32_t index;      /* of tandem_work.data; constant for a handle */
  uint32_t dtype;      /* TANDEM_FLOAT32 ... */
  uint32_t dimensions; /* used elements of shape */
  uint64_t shape[TANDEM_MAX_DIMENSIONS];
  uint64_t bytes;
  void* data; /* in the region */
} tandem_array;

/* Since 1.3. A part of the observation or action, as an array of its own. */
typedef struct tandem_field {
  /* "obs/PATH" or "action/PATH", where PATH is a JSON pointer without its first
     "/", such as "obs/image"; "obs/" or "action/": the whole one. */
  const char* name;
  uint32_t dtype;
  uint32_t dimensions; /* used elements of shape; 0: one number */
  uint64_t shape[TANDEM_MAX_DIMENSIONS]; /* of one environment */
} tandem_field;

/* An environment to reset. With a seed, its random stream starts again from
   the seed; without one, the stream continues. */
typedef struct tandem_reset {
  uint32_t env;
  uint32_t has_seed; /* 0 or 1 */
  uint64_t seed;
} tandem_reset;

/* --- Engines -------------------------------------------------------------- */

typedef struct tandem_engine tandem_engine;

/* What an engine has to do. */
enum {
  TANDEM_WORK_NONE = 0,
  /* Start new episodes in the environments of `resets`: write their rows of
     obs, and of those infos that resets have. Write no other row. */
  TANDEM_WORK_RESET = 1,
  /* Step the environments of `envs`, which is ascending, once, with their rows
     of actions: write their rows of obs, rewards, terminateds, truncateds and
     infos. Write no other row. */
  TANDEM_WORK_STEP = 2,
  /* Answer an RPC by tandem_engine_answer or tandem_engine_refuse: now, or
     later between two calls of tandem_engine_poll or _next. Only for the
     methods of the engine's options. */
  TANDEM_WORK_CALL = 3,
  /* Undo what the last client's RPCs have changed. Needs no answer. */
  TANDEM_WORK_CLEAR = 4,
  /* Since 1.3. Draw an image, by tandem_engine_drawn or tandem_engine_refuse:
     now, or later, by any thread. Only for engines that have cameras or draw
     frames. */
  TANDEM_WORK_DRAW = 5
};

/* Since 1.3. What the images of a DRAW are for. */
enum {
  TANDEM_DRAW_FRAME = 1,   /* the window, the page, a client's render */
  TANDEM_DRAW_CAMERA = 2,  /* a caller of the service camera */
  TANDEM_DRAW_VIEWPORT = 3 /* a caller of the service viewport */
};

/* Since 1.3. The image that a DRAW asks for: of the state after the last step
   or reset. */
typedef struct tandem_draw {
  uint32_t struct_size;
  uint32_t purpose; /* TANDEM_DRAW_FRAME ... */
  uint32_t env;
  /* Of tandem_services.cameras or viewports; 0 for a FRAME. */
  uint32_t camera;
  uint32_t width; /* pixels */
  uint32_t height;
  uint32_t depth; /* 1: distances, TANDEM_DEPTH32F; 0: colours */
  uint32_t reserved;
  double patience_secs; /* after which it has no effect; 0: no limit */
} tandem_draw;

enum {
  TANDEM_RGB8 = 1,
  TANDEM_RGBA8 = 2, /* alpha has no effect */
  TANDEM_BGRA8 = 3,
  TANDEM_DEPTH32F = 4 /* float32 metres; infinity: nothing there */
};

/* Since 1.3. An image of the program's. */
typedef struct tandem_image {
  uint32_t struct_size;
  uint32_t format; /* TANDEM_RGB8 ... */
  uint32_t width;  /* of the tandem_draw; so is height */
  uint32_t height;
  const void* data; /* the top row's first pixel */
  /* Bytes from a row to the next lower one; 0: rows without gaps. Negative if
     the top row is last in memory. */
  int64_t stride;
} tandem_image;

/* Since 1.3. A field of a randomisation contract: hazel_rpc.fbs,
   SimulationContract, has the names, units and meaning. */
typedef struct tandem_range {
  const char* name; /* such as "friction_range" */
  uint32_t count;   /* used elements of values */
  /* A range's lowest and highest number; or a noise, a probability. */
  float values[3];
  /* Of "terrain_type"; else NULL. A RESET with a terrain that the engine does
     not know should fail, by tandem_engine_fail. */
  const char* text;
} tandem_range;

/* Since 1.3. What an environment draws its physics from, at each reset. */
typedef struct tandem_contract {
  uint32_t struct_size;
  uint32_t range_count;
  const tandem_range* ranges; /* those of tandem_services.contract_fields */
  /* 1 at the first reset by this contract: the random stream of its draws
     begins, from the seed. 0: the stream continues. */
  uint32_t begins;
  uint32_t reserved;
  uint64_t seed;
} tandem_contract;

/* The pointers are valid until the work is done; those of a CALL or CLEAR,
   until the next call of tandem_engine_next, or the callback's end. */
typedef struct tandem_work {
  uint32_t struct_size;
  uint32_t kind;
  uint32_t count;  /* elements of resets or envs */
  uint32_t method; /* of a CALL: a MethodId of hazel_rpc.fbs */
  const tandem_reset* resets;
  const uint32_t* envs;
  /* The arrays' memory, by tandem_array.index. It is not the region's in steps
     that no client requested. NULL: not part of this work. */
  void* const* data;
  uint64_t call; /* of a CALL: its number */
  const uint8_t* envelope;
  uint64_t envelope_size;
  /* Since 1.3. Of a CALL of a method of the engine's own: its name, and
     `envelope` is the request's bytes, with a NUL behind them. Else NULL. */
  const char* name;
  /* Of a DRAW; `call` is its number, whose top bit is set: negative as an
     int64. */
  const tandem_draw* draw;
  /* Of a RESET: the contract of each of `resets`; NULL: it has none. NULL for
     all if no environment has one. */
  const tandem_contract* const* contracts;
} tandem_work;

/* Called by the thread that calls tandem_engine_poll or tandem_engine_run. */
typedef struct tandem_callbacks {
  uint32_t struct_size;
  uint32_t reserved;
  void* user; /* the first argument of the functions */
  /* Does the work. Returns 0; any other number of a RESET or STEP is a failure:
     the client gets TANDEM_ENGINE_FAILED with the text of tandem_engine_fail.
     It may call tandem_engine_array, _fail, _answer, _refuse, _drawn, _status,
     _enable and _stop. */
  int32_t (*work)(void* user, const tandem_work* work);
  /* An event for people, such as a client that attaches. NULL: none. */
  void (*log)(void* user, const char* line);
} tandem_callbacks;

/* Since 1.3. Entity i + 1 of each environment: an object of the scene. */
typedef struct tandem_entity {
  const char* name;
  const char* components; /* its kinds, such as "body" or "camera", by commas */
} tandem_entity;

/* Since 1.3. The place of an entity, in world coordinates, z up. Parts whose
   flag is 0 are absent: unknown, or unchanged. */
typedef struct tandem_transform {
  uint32_t struct_size;
  uint32_t has_position;
  uint32_t has_rotation;
  uint32_t has_scale;
  float position[3]; /* metres */
  float rotation[4]; /* unit quaternion: x, y, z, w */
  float scale[3];
  uint32_t reserved;
} tandem_transform;

/* Since 1.3. */
typedef struct tandem_actuator {
  const char* name;
  float low; /* a caller's value is clipped to low .. high by default */
  float high;
} tandem_actuator;

/* Since 1.3. A line, or an arrow, to draw in an environment's images. */
typedef struct tandem_mark {
  uint32_t is_arrow;
  float from[3]; /* metres in world coordinates */
  float to[3];
  float rgba[4]; /* 0 to 1 */
} tandem_mark;

/* Since 1.3. A method of the engine's own. */
typedef struct tandem_method {
  const char* name;         /* 1 to 63 bytes */
  const char* content_type; /* NULL: "application/octet-stream" */
  const char* help;         /* one line; NULL: none */
} tandem_method;

/* Since 1.3. What the engine has besides steps. Each part makes services
   available; without it, callers get TANDEM_UNSUPPORTED. Texts and lists are
   copied.

   The thread that calls tandem_engine_next, _done, _poll or _run calls the
   functions, inside these calls, and not between a RESET or STEP and its done;
   so hold no lock there that a function takes. They return 0; any other number
   is a failure, with the text of tandem_engine_fail. They may call what
   tandem_callbacks.work may call. */
typedef struct tandem_services {
  uint32_t struct_size;
  uint32_t reserved;
  void* user; /* the first argument of the functions */

  /* scene: entities, if there are some. */
  const char* scene_name; /* NULL: the task's */
  const tandem_entity* entities;
  uint32_t entity_count;
  uint32_t reserved_2;
  /* Writes the place of entity `entity`, an index of `entities`. */
  int32_t (*transform)(void* user, uint32_t env, uint32_t entity,
                       tandem_transform* transform);
  /* Moves it, in this environment only. NULL: no entity can be moved. */
  int32_t (*move)(void* user, uint32_t env, uint32_t entity,
                  const tandem_transform* transform);

  /* mujoco and telemetry: the numbers of the engine's state, with names, and
     its actuators. `joints` is NULL: none. */
  const char* const* joint_names;
  uint32_t joint_count;
  uint32_t position_count;
  const char* const* position_names; /* NULL: joint_names */
  uint32_t velocity_count;
  uint32_t actuator_count;
  const tandem_actuator* actuators;
  /* Writes position_count positions and velocity_count velocities. */
  int32_t (*joints)(void* user, uint32_t env, float* positions,
                    float* velocities);
  /* Writes actuator_count controls: the last step's, or later ones of
     set_control. NULL: zeros. */
  int32_t (*controls)(void* user, uint32_t env, float* controls);
  /* Sets an actuator's control for the next step, in place of the action's.
     NULL: it cannot be set. */
  int32_t (*set_control)(void* user, uint32_t env, uint32_t actuator,
                         float value);

  /* debug: takes the marks for later images of an environment, in place of its
     earlier ones. NULL: draws none. */
  int32_t (*show_marks)(void* user, uint32_t env, const tandem_mark* marks,
                        uint32_t count);

  /* camera and viewport, by TANDEM_WORK_DRAW: the names of cameras, and of
     viewports (NULL: "main", the first camera's view). */
  const char* const* cameras;
  const char* const* viewports;
  uint32_t camera_count;
  uint32_t viewport_count;
  uint32_t image_width; /* of images whose caller names no size; 0: 320 x 240 */
  uint32_t image_height;
  /* 1: the engine draws frames, by TANDEM_WORK_DRAW, while a viewer is
   * attached. */
  uint32_t draws_frames;

  /* agent: the contract's fields that have an effect on this task. The caller
     learns which of the given ones have none. */
  uint32_t contract_field_count;
  const char* const* contract_fields;

  /* own: methods of the engine's own, by TANDEM_WORK_CALL. */
  const tandem_method* own_methods;
  uint32_t own_method_count;
  uint32_t reserved_3;

  /* Since 1.4. The live scene, which viewers draw themselves; they are called
     only while a viewer watches. NULL: none. Both or none are NULL.
     scene: sets the bytes of a file of glTF 2.0 in its binary form, which the
     library copies before the next call. It has the geometry of one
     environment: docs/protocol.md, "The live scene". Called at the begin, and
     after tandem_engine_scene_changed. */
  int32_t (*scene)(void* user, const uint8_t** glb, uint64_t* bytes);
  /* Writes the poses of an environment, float[nodes][7]: x, y, z, and the
     rotation as a unit quaternion x, y, z, w; the nodes that move have the
     file's order. At most 60 times a second. */
  int32_t (*poses)(void* user, uint32_t env, float* poses, uint32_t nodes);

  /* Since 1.5. States of environments, for clients that save and load them.
     NULL: none. Both or none are NULL.
     save_state: sets the bytes with all that decides the environment's future;
     the library copies them before the next call. The library itself saves the
     environment's rows, its contract, and whether its episode has ended. */
  int32_t (*save_state)(void* user, uint32_t env, const uint8_t** state,
                        uint64_t* bytes);
  /* Puts bytes of save_state in place, instead of a RESET of this environment;
     writes no rows. They may come from another environment, or from another
     process with an equal engine; a wrong size or value is a failure. */
  int32_t (*load_state)(void* user, uint32_t env, const uint8_t* state,
                        uint64_t bytes);
} tandem_services;

/* Since 1.3. Memory of a GPU that the program has exported itself, such as with
   Vulkan, for images: uint8[num_envs, image_height, image_width, channels],
   linear, rows from the top, without gaps. The program writes them with each
   reset and step, and waits for its GPU (a fence) before the work is done. The
   library neither allocates nor loads a driver. Clients take the descriptor
   from this process: docs/gpu.md says what may forbid it. */
typedef struct tandem_gpu_memory {
  uint32_t struct_size;
  /* Of vkGetMemoryFdKHR, with the handle type OPAQUE_FD. The program keeps it
     open until tandem_engine_destroy. */
  int32_t fd;
  uint64_t bytes;          /* of the allocation, VkMemoryAllocateInfo's */
  uint64_t offset;         /* of the images in it; a multiple of 256 */
  uint32_t channels;       /* 3: RGB; 4: RGBA */
  uint32_t dedicated;      /* 1: with VkMemoryDedicatedAllocateInfo; else 0 */
  uint8_t device_uuid[16]; /* VkPhysicalDeviceIDProperties' deviceUUID */
} tandem_gpu_memory;

/* Since 1.3. Arrays in the memory of a GPU, which the engine writes. */
typedef struct tandem_gpu {
  uint32_t struct_size;
  uint32_t cuda_device; /* its number */
  /* 1: the engine writes its observations on the GPU only, and cannot serve
     without the device. 0: also in the region. */
  uint32_t gpu_only;
  uint32_t image_width; /* pixels; 0: no images on the GPU */
  uint32_t image_height;
  uint32_t reserved;
  /* NULL: the library allocates the arrays. Otherwise images alone
     are on the GPU, in this memory: cuda_device and gpu_only are 0, and
     tandem_engine_gpu_array finds no arrays. */
  const tandem_gpu_memory* memory;
} tandem_gpu;

/* Since 1.3. The size and rate of frames for viewers. */
typedef struct tandem_frames {
  uint32_t struct_size;
  uint32_t width; /* of one environment's image, pixels */
  uint32_t height;
  uint32_t env_count;
  const uint32_t* envs; /* which are shown; NULL: the first four */
  double hz;            /* at most; 0: 60 */
} tandem_frames;

typedef struct tandem_engine_options {
  uint32_t struct_size;
  uint32_t num_envs; /* 1 or more; so are the next two */
  uint32_t obs_size; /* float32 values of an observation */
  uint32_t act_size; /* float32 values of an action */
  /* Of the region; {pid} in it is this process's id. NULL: LUCKY_SHM_NAME, else
     "tandem", or "tandem-2" and so on if a live engine has that name. */
  const char* name;
  const char* task; /* at most 63 bytes; NULL: "engine" */
  /* Spaces, infos and time limit, as JSON: docs/protocol.md, "Infos and the
     description". NULL: boxes without bounds, and no infos. */
  const char* description;
  uint64_t seed; /* environment i starts with the seed + i */
  uint32_t has_seed;
  uint32_t disabled_services; /* bit i: the service i of tandem_service_name */
  double step_secs; /* simulated seconds of a step, finite; 0: unknown */
  /* The methods that the engine answers itself, by TANDEM_WORK_CALL. */
  const uint16_t* methods;
  uint32_t method_count;
  uint32_t reserved;
  /* Since 1.1. The most items per second of a service's streams, such as
     "camera=10,telemetry=200", each 0.001 to 1000. NULL: 60. */
  const char* stream_hz;
  /* KiB of each of the two RPC rings: a power of two, 4 to 1048576. 0: 512. A
     message of more than half of it goes in pieces. */
  uint32_t rpc_ring_kib;
  uint32_t reserved_2;
  /* Since 1.3. Observations and actions of other types and shapes: obs_size or
     act_size is 0 then, and `fields` has the whole observation or action. Such
     an engine has no real time, single steps and resets by attendants. */
  const tandem_field* fields;
  uint32_t field_count;
  /* An RGB image beside each observation, which the engine writes in the array
     "images" with each reset and step; 0: none. */
  uint32_t image_width;
  uint32_t image_height;
  /* KiB of an image in each slot for requested images; 0: no slots. A caller
     reads an image that fits in place, and any other one as bytes. */
  uint32_t image_slot_kib;
  const tandem_services* services; /* NULL: none */
  const tandem_gpu* gpu;           /* NULL: none */
  /* Of tandem_engine_create; a server has the flag --frames. NULL: none. */
  const tandem_frames* frames;
} tandem_engine_options;

/* Makes an engine and its region. The first work resets every environment; when
   it is done, the region gets its name, and clients can attach. `callbacks` may
   be NULL: then the engine takes its work by tandem_engine_next. Errors:
   TANDEM_INVALID_ARGUMENT, TANDEM_OUT_OF_SHARED_MEMORY,
   TANDEM_ALREADY_ATTACHED (a live engine has the name; another one may still
   take it before the first work is done), TANDEM_SYSTEM_CALL_FAILED. */
TANDEM_API tandem_code
tandem_engine_create(const tandem_engine_options* options,
                     const tandem_callbacks* callbacks, tandem_engine** engine);

/* Finds an array by name: "obs", "actions", "rewards", "terminateds",
   "truncateds", "infos" (if the description has some). Their indices are 0 to
   5, in this order. Since 1.3 also "images", and the engine's fields, by their
   names. Any thread, at any time.
   TANDEM_INVALID_ARGUMENT: no such array; the text lists the names. */
TANDEM_API tandem_code tandem_engine_array(tandem_engine* engine,
                                           const char* name,
                                           tandem_array* array);

/* Since 1.3. Finds an array on the GPU: "obs", "rewards", "images", or a
   field's name; `data` is its address on the device. `index` has no meaning. As
   tandem_engine_array. TANDEM_UNSUPPORTED: the library has made none, or the
   driver is missing: the text says so. */
TANDEM_API tandem_code tandem_engine_gpu_array(tandem_engine* engine,
                                               const char* name,
                                               tandem_array* array);
/* Since 1.3. The CUDA stream on which the engine writes these arrays, a
   cudaStream_t; clients wait for what is on it when a step is done. NULL: the
   legacy default stream. The thread that serves the engine, in the callback or
   between its calls. TANDEM_UNSUPPORTED: as tandem_engine_gpu_array. */
TANDEM_API tandem_code tandem_engine_gpu_stream(tandem_engine* engine,
                                                void* stream);

/* Since 1.4. The engine's scene has changed: viewers get a new one, by
   tandem_services.scene. Any thread. */
TANDEM_API tandem_code tandem_engine_scene_changed(tandem_engine* engine);

/* With callbacks: serves clients until tandem_engine_stop. Blocks. Returns the
   error of the first reset or of the region's name, such as
   TANDEM_ALREADY_ATTACHED: another engine has the name. */
TANDEM_API tandem_code tandem_engine_run(tandem_engine* engine);
/* With callbacks: serves what is pending and returns. `served` may be NULL; it
   gets 1 if there was anything, else 0. Errors: as tandem_engine_run. */
TANDEM_API tandem_code tandem_engine_poll(tandem_engine* engine,
                                          int32_t* served);

/* For an engine with a loop of its own, which calls neither tandem_engine_run
   nor _poll: waits for work up to `timeout_secs`; 0 polls. Before the done of a
   RESET or STEP it returns only calls, and does not wait. `work->kind` is
   TANDEM_WORK_NONE if there is none in time, or after tandem_engine_stop, or if
   a signal handler ran. Errors: as tandem_engine_run. */
TANDEM_API tandem_code tandem_engine_next(tandem_engine* engine,
                                          double timeout_secs,
                                          tandem_work* work);
/* Ends the RESET or STEP that tandem_engine_next returned.
   `failure`: NULL, or a text; then the client gets TANDEM_ENGINE_FAILED with
   it. TANDEM_INVALID_ARGUMENT: there is no such work, or it was done already.
   Other errors: as tandem_engine_run. */
TANDEM_API tandem_code tandem_engine_done(tandem_engine* engine,
                                          const char* failure);

/* In the callback: the text of the failure that the callback then returns. If
   the callback returns 0, the text is discarded. */
TANDEM_API tandem_code tandem_engine_fail(tandem_engine* engine,
                                          const char* text);
/* Answers a CALL with an Envelope whose payload is the method's answer; its
   method and correlation id are ignored. A method of the engine's own: with the
   answer's bytes. The thread that serves the engine:
   in the callback, or between its calls of tandem_engine_poll or _next. So an
   engine that answers later, or works on answers in other threads, has a loop
   of its own: the other threads post their answers to it. During
   tandem_engine_run only the callback may answer.
   TANDEM_INVALID_ARGUMENT: the bytes are no such Envelope.
   TANDEM_MESSAGE_TOO_LARGE: it is an Envelope of 2 GiB or more. After both
   errors the call is still unanswered. Bytes of an own method's answer have
   neither error. If an Envelope or such an answer has more than 64 MiB, the
   caller gets TANDEM_MESSAGE_TOO_LARGE.
   TANDEM_NO_STEP_PENDING: no such call: it was answered or cancelled, or its
   caller has left. TANDEM_CONCURRENT_USE: another thread is inside a call on
   this engine, such as tandem_engine_run. */
TANDEM_API tandem_code tandem_engine_answer(tandem_engine* engine,
                                            uint64_t call,
                                            const uint8_t* envelope,
                                            uint64_t size);
/* Answers a CALL with an error and its text. As tandem_engine_answer. A DRAW:
   as tandem_engine_drawn. */
TANDEM_API tandem_code tandem_engine_refuse(tandem_engine* engine,
                                            uint64_t call, tandem_code code,
                                            const char* text);
/* Since 1.3. Answers the DRAW whose tandem_work.call is `call`: copies the
   image. Any thread, at any time.
   TANDEM_INVALID_ARGUMENT: another size than the DRAW's, or an unknown format;
   the DRAW is still unanswered.
   TANDEM_NO_STEP_PENDING: no such DRAW: it was answered, or its patience is
   over, or its caller has left. */
TANDEM_API tandem_code tandem_engine_drawn(tandem_engine* engine, uint64_t call,
                                           const tandem_image* image);

/* Stores no text of an error, since a signal handler must not allocate. Ends
   tandem_engine_run, and tandem_engine_next's wait; then there is no more
   work. Any thread, also in a callback or a signal handler. */
TANDEM_API tandem_code tandem_engine_stop(tandem_engine* engine);
/* 1 after tandem_engine_stop, else 0; also 1 for an invalid handle, and in a
   forked child. As tandem_engine_stop. */
TANDEM_API int32_t tandem_engine_stopping(tandem_engine* engine);

/* Switches a service on or off for all callers, such as "camera". Any thread,
   at any time. TANDEM_UNSUPPORTED: the engine does not have the service. */
TANDEM_API tandem_code tandem_engine_enable(tandem_engine* engine,
                                            const char* service,
                                            int32_t enabled);
/* The service of a bit: "agent", "mujoco", "telemetry", "scene", "camera",
   "viewport", "debug", and since 1.3 "own"; NULL after the last. Static. */
TANDEM_API const char* tandem_service_name(uint32_t bit);

/* What a panel shows. */
typedef struct tandem_status {
  uint32_t struct_size;
  uint32_t has_client;       /* a client holds the client lock */
  uint32_t client_pid;       /* for display */
  uint32_t attendants;       /* their number */
  uint64_t exchanges;        /* completed since the engine's start */
  uint32_t enabled_services; /* bits */
  uint32_t reserved;
  uint64_t dropped_messages; /* invalid RPC messages of the client */
  char region[256];          /* the region's name */
} tandem_status;
/* Any thread, at any time. Makes a system call. */
TANDEM_API tandem_code tandem_engine_status(tandem_engine* engine,
                                            tandem_status* status);

/* Removes the region; clients get TANDEM_PEER_GONE. TANDEM_CONCURRENT_USE: a
   call is in progress, also if that is the callback which calls this; the
   engine still exists. */
TANDEM_API tandem_code tandem_engine_destroy(tandem_engine* engine);

/* A flag of an engine's own: --NAME=NUMBER, or "NAME": NUMBER in the file of
   --config. */
typedef struct tandem_flag {
  const char* name; /* such as "wheels" */
  const char* help; /* one line */
  double* value;    /* holds the default; gets the flag's number */
} tandem_flag;

/* An engine server, as tandem.launch_engine starts it. */
typedef struct tandem_server {
  uint32_t struct_size;
  uint32_t flag_count;
  const tandem_flag* flags;
  const char* usage; /* the first lines of --help */
  void* user;        /* the first argument of the functions */
  /* Called when the flags have their values: sets obs_size and act_size, or
     fields, and, if it wants, task, description, step_secs, methods, services,
     gpu and the size of images. num_envs is set; the other fields have no
     effect. Returns NULL, or the text of an error. */
  const char* (*prepare)(void* user, tandem_engine_options* options);
  /* Does the work, as tandem_callbacks.work. NULL: `loop` takes it. */
  int32_t (*work)(void* user, const tandem_work* work);
  /* The engine's own loop, with tandem_engine_next and _done, or _poll: returns
     after tandem_engine_stopping, or when one of them fails. NULL:
     tandem_engine_run; but only `loop` gets the handle, which an engine needs
     that answers RPCs or gives texts of failures. */
  void (*loop)(void* user, tandem_engine* engine);
} tandem_server;

/* The main function of an engine server. Parses the flags --name, --num_envs,
   --seed, --services, --wait and others (--help lists them), makes the engine,
   serves until SIGINT, SIGTERM or the launcher's end, and returns the exit
   code: 0: stopped; 1: the engine or its region failed; 2: a wrong flag. Errors
   are lines on stderr. Call it once, in a process without other threads. */
TANDEM_API int tandem_serve(int argc, char** argv, const tandem_server* server);

/* --- RPCs ----------------------------------------------------------------- */

/* The RPCs of a client or an attendant, valid until that is closed. Any number
   of threads may call, also while another thread steps. */
typedef struct tandem_rpc tandem_rpc;

/* Calls a method that answers once: `envelope` has the method and its request;
   its correlation id and to_slot are ignored, so an image comes in `data`.
   Blocks. The answer is an Envelope in new memory, which the program frees by
   tandem_free. Errors: the engine's; TANDEM_STEP_TIMEOUT, TANDEM_PEER_GONE,
   TANDEM_CLIENT_CLOSED;
   TANDEM_MESSAGE_TOO_LARGE: an Envelope of more than 64 MiB;
   TANDEM_INVALID_ARGUMENT: no Envelope, or a method that answers with a
   stream. */
TANDEM_API tandem_code tandem_rpc_call(tandem_rpc* rpc, const uint8_t* envelope,
                                       uint64_t size, double timeout_secs,
                                       uint8_t** answer, uint64_t* answer_size);
/* Since 1.3. Calls a method of the engine's own, by its name. Blocks. The
   answer is in new memory, which the program frees by tandem_free. Errors: as
   tandem_rpc_call; TANDEM_INVALID_ARGUMENT: no method has the name, and the
   text lists them. */
TANDEM_API tandem_code tandem_rpc_call_own(tandem_rpc* rpc, const char* name,
                                           const void* request, uint64_t size,
                                           double timeout_secs,
                                           uint8_t** answer,
                                           uint64_t* answer_size);
/* Opens a stream: calls a method of hazel_rpc.fbs whose name begins with
   Stream. Does not wait; errors of the engine come with its first item.
   TANDEM_INVALID_ARGUMENT: no Envelope, or a method that answers once: use
   tandem_rpc_call. TANDEM_RING_FULL: the engine has too many unread calls.
   TANDEM_MESSAGE_TOO_LARGE: as tandem_rpc_call. to_slot is ignored, too. */
TANDEM_API tandem_code tandem_rpc_open(tandem_rpc* rpc, const uint8_t* envelope,
                                       uint64_t size, uint64_t* stream);
/* Waits for the stream's next item: an Envelope, freed by tandem_free. `item`
   becomes NULL at the stream's end. After TANDEM_STEP_TIMEOUT the stream is
   still open. */
TANDEM_API tandem_code tandem_rpc_next(tandem_rpc* rpc, uint64_t stream,
                                       double timeout_secs, uint8_t** item,
                                       uint64_t* item_size);
/* Ends a stream. A second call has no effect. */
TANDEM_API tandem_code tandem_rpc_close(tandem_rpc* rpc, uint64_t stream);

/* --- Clients -------------------------------------------------------------- */

typedef struct tandem_client tandem_client;

enum {
  TANDEM_AUTORESET_SAME_STEP = 0,
  TANDEM_AUTORESET_NEXT_STEP = 1,
  TANDEM_AUTORESET_DISABLED = 2
};
enum { TANDEM_WAIT_ADAPTIVE = 0, TANDEM_WAIT_SPIN = 1, TANDEM_WAIT_BLOCK = 2 };

typedef struct tandem_client_options {
  uint32_t struct_size;
  uint32_t autoreset;
  const char* name;    /* NULL: LUCKY_SHM_NAME, else "tandem" */
  double timeout_secs; /* of the attach; 0: 10 */
  uint32_t wait;
  uint32_t reserved;
} tandem_client_options;

/* Waits for an engine that serves the region, and attaches. Errors:
   TANDEM_NOT_READY, TANDEM_STEP_TIMEOUT, TANDEM_ALREADY_ATTACHED,
   TANDEM_LAYOUT_MISMATCH, TANDEM_ACCESS_DENIED, TANDEM_ENGINE_FAILED. */
TANDEM_API tandem_code tandem_client_attach(
    const tandem_client_options* options, tandem_client** client);
/* Finds an array by name: "obs", "actions", "rewards", "dones", "terminateds",
   "truncateds", "resets", "final_obs", "infos", "final_infos", "images". It is
   valid until tandem_client_reconnect or tandem_client_close, and it belongs to
   the engine between send and recv.
   Since 1.2, if the region has fields (docs/protocol.md, "Fields"): "obs/PATH",
   "final_obs/PATH" and "action/PATH" for each of them, where PATH is a JSON
   pointer without its first "/", such as "obs/image"; "obs/" and so on for an
   observation or action that is one array; "reward64", "status",
   "episode_return", "episode_length". "obs", "final_obs" and "actions" have no
   elements then, unless they are float32 rows. TANDEM_UNSUPPORTED: a field of
   more than TANDEM_MAX_DIMENSIONS dimensions. */
TANDEM_API tandem_code tandem_client_array(tandem_client* client,
                                           const char* name,
                                           tandem_array* array);
/* The task's spaces, infos and time limit, as JSON. Returns the bytes without
   the NUL, and copies them as tandem_last_error does. */
TANDEM_API uint64_t tandem_client_description(tandem_client* client, char* text,
                                              uint64_t size);

/* Requests a step with num_envs * act_size actions, all finite; NULL: those in
   the array "actions". If actions are fields, the program writes them in place,
   and `actions` is NULL. TANDEM_INVALID_ACTION, TANDEM_STEP_PENDING,
   TANDEM_PEER_GONE: nothing was sent. */
TANDEM_API tandem_code tandem_client_send(tandem_client* client,
                                          const float* actions, uint64_t count);
/* Requests a reset of these environments; the others keep their state. */
TANDEM_API tandem_code tandem_client_send_reset(tandem_client* client,
                                                const tandem_reset* resets,
                                                uint32_t count);
/* Waits for the results of what was sent. After TANDEM_STEP_TIMEOUT the
   exchange is still pending. TANDEM_PEER_GONE, TANDEM_BROKEN_PEER: reconnect or
   close. TANDEM_ENGINE_FAILED: the arrays have no results. */
TANDEM_API tandem_code tandem_client_recv(tandem_client* client,
                                          double timeout_secs);
/* A send, then a recv. */
TANDEM_API tandem_code tandem_client_step(tandem_client* client,
                                          const float* actions, uint64_t count,
                                          double timeout_secs);
/* Attaches again, to the engine that now has the name. All environments are
   reset. TANDEM_LAYOUT_MISMATCH: task, sizes or layout changed. RPCs that wait
   get TANDEM_CLIENT_CLOSED. */
TANDEM_API tandem_code tandem_client_reconnect(tandem_client* client,
                                               double timeout_secs);
TANDEM_API tandem_rpc* tandem_client_rpc(tandem_client* client);
/* TANDEM_CONCURRENT_USE: a step is in progress in another thread; the client
   still exists. RPCs of other threads get TANDEM_CLIENT_CLOSED. */
TANDEM_API tandem_code tandem_client_close(tandem_client* client);

/* --- Attendants ----------------------------------------------------------- */

/* Calls an engine's RPCs in addition to its client: a control GUI, a
   gateway. */
typedef struct tandem_attendant tandem_attendant;

typedef struct tandem_attendant_options {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;    /* NULL: LUCKY_SHM_NAME, else "tandem" */
  const char* label;   /* for people, at most 55 bytes; NULL: "libtandem" */
  double timeout_secs; /* of the attach; 0: 10 */
} tandem_attendant_options;

/* Takes one of the engine's four slots. TANDEM_ALREADY_ATTACHED: all are taken.
   Other errors: as tandem_client_attach. */
TANDEM_API tandem_code tandem_attendant_attach(
    const tandem_attendant_options* options, tandem_attendant** attendant);
TANDEM_API tandem_rpc* tandem_attendant_rpc(tandem_attendant* attendant);
/* Leaves the slot: streams and a pause of this attendant end. */
TANDEM_API tandem_code tandem_attendant_close(tandem_attendant* attendant);

#ifdef __cplusplus
}
#endif

#endif /* TANDEM_H_ */
