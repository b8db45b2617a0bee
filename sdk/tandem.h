/* tandem.h: the C interface of libtandem.so.1. An engine, a client or an
   attendant of Tandem in any language that can call C.

   Length: the whole C interface, one file that programs can copy.

   Conventions
   - Functions return a tandem_code: TANDEM_OK, or an error whose text
     tandem_last_error gives. No function throws, and none ends the process.
   - Handles are opaque. A call with a closed or invalid handle returns
     TANDEM_CLIENT_CLOSED. NULL is TANDEM_INVALID_ARGUMENT, except for the
     functions that close: they accept NULL.
   - Every struct but tandem_reset and tandem_flag begins with struct_size,
   which the program sets to sizeof the struct. Later versions only append
   fields. A field of 0 or NULL is the default. A struct longer than this
   library's is accepted if the unknown fields are 0.
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
#define TANDEM_ABI_MINOR 2

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
  TANDEM_WORK_CLEAR = 4
};

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
} tandem_work;

/* Called by the thread that calls tandem_engine_poll or tandem_engine_run. */
typedef struct tandem_callbacks {
  uint32_t struct_size;
  uint32_t reserved;
  void* user; /* the first argument of the functions */
  /* Does the work. Returns 0; any other number of a RESET or STEP is a failure:
     the client gets TANDEM_ENGINE_FAILED with the text of tandem_engine_fail.
     It may call tandem_engine_array, _fail, _answer, _refuse, _status, _enable
     and _stop. */
  int32_t (*work)(void* user, const tandem_work* work);
  /* An event for people, such as a client that attaches. NULL: none. */
  void (*log)(void* user, const char* line);
} tandem_callbacks;

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
   5, in this order. Any thread, at any time.
   TANDEM_INVALID_ARGUMENT: no such array; the text lists the names. */
TANDEM_API tandem_code tandem_engine_array(tandem_engine* engine,
                                           const char* name,
                                           tandem_array* array);

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
   method and correlation id are ignored. The thread that serves the engine:
   in the callback, or between its calls of tandem_engine_poll or _next. So an
   engine that answers later, or works on answers in other threads, has a loop
   of its own: the other threads post their answers to it. During
   tandem_engine_run only the callback may answer.
   TANDEM_INVALID_ARGUMENT: the bytes are no such Envelope.
   TANDEM_MESSAGE_TOO_LARGE: they are 2 GiB or more. After both errors the call
   is still unanswered. If the answer has more than 64 MiB, the caller gets
   TANDEM_MESSAGE_TOO_LARGE.
   TANDEM_NO_STEP_PENDING: no such call: it was answered or cancelled, or its
   caller has left. TANDEM_CONCURRENT_USE: another thread is inside a call on
   this engine, such as tandem_engine_run. */
TANDEM_API tandem_code tandem_engine_answer(tandem_engine* engine,
                                            uint64_t call,
                                            const uint8_t* envelope,
                                            uint64_t size);
/* Answers a CALL with an error and its text. As tandem_engine_answer. */
TANDEM_API tandem_code tandem_engine_refuse(tandem_engine* engine,
                                            uint64_t call, tandem_code code,
                                            const char* text);

/* Stores no text of an error, since a signal handler must not allocate. Ends
   tandem_engine_run, and tandem_engine_next's wait; then there is no more
   work. Any thread, also in a callback or a signal handler. */
TANDEM_API tandem_code tandem_engine_stop(tandem_engine* engine);
/* 1 after tandem_engine_stop, else 0; also 1 for an invalid handle. As
   tandem_engine_stop. */
TANDEM_API int32_t tandem_engine_stopping(tandem_engine* engine);

/* Switches a service on or off for all callers, such as "camera". Any thread,
   at any time. TANDEM_UNSUPPORTED: the engine does not have the service. */
TANDEM_API tandem_code tandem_engine_enable(tandem_engine* engine,
                                            const char* service,
                                            int32_t enabled);
/* The service of a bit: "agent", "mujoco", "telemetry", "scene", "camera",
   "viewport", "debug"; NULL after the last. Static. */
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
  /* Called when the flags have their values: sets obs_size, act_size and, if it
     wants, task, description, step_secs and methods. num_envs is set; the other
     fields have no effect. Returns NULL, or the text of an error. */
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
   TANDEM_MESSAGE_TOO_LARGE: the request, or its answer, of more than 64 MiB;
   TANDEM_INVALID_ARGUMENT: no Envelope, or a method that answers with a
   stream. */
TANDEM_API tandem_code tandem_rpc_call(tandem_rpc* rpc, const uint8_t* envelope,
                                       uint64_t size, double timeout_secs,
                                       uint8_t** answer, uint64_t* answer_size);
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
