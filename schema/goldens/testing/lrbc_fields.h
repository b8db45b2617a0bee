// Every field of the LRBC header, of an attendant's slot, of an image slot, of
// a record of the table of fields, of the workers' header and slots, and of a
// ring's header, in order: its writer and its meaning. These texts are defined
// only here.
//
// Data flow: this table -> listing.cc takes offsets and types from the structs
// -> lrbc_v1.txt.
// A field is FIELD(name, writer, meaning) or RESERVED(name). goldens_test fails
// if the tables omit a byte or contain one twice.
//
// Length: one table of all fields.
//
//   #define FIELD(name, writer, meaning) ...
//   #define RESERVED(name) ...
//   TANDEM_LRBC_FIELDS(FIELD, RESERVED)

#pragma once

// clang-format off: one field, one line where it fits
#define TANDEM_LRBC_FIELDS(FIELD, RESERVED)                                    \
  FIELD(magic, "engine",                                                       \
        "0x4C524243: the letters LRBC from the high byte down")                \
  FIELD(version, "engine", "of this layout: 1")                                \
  FIELD(server_pid, "engine",                                                  \
        "label for people; its first byte is the engine's lock byte")          \
  FIELD(client_pid, "client",                                                  \
        "label for people; its first byte is the client's lock byte; 0: none " \
        "yet")                                                                 \
  FIELD(mode, "engine", "0 training, 1 inference")                             \
  RESERVED(reserved_17)                                                        \
  FIELD(num_envs, "engine", "environments")                                    \
  FIELD(obs_size, "engine",                                                    \
        "float32 values of an environment's observation; 0: only in fields")   \
  FIELD(act_size, "engine",                                                    \
        "float32 values of an environment's action; 0: only in fields")        \
  RESERVED(reserved_32)                                                        \
  FIELD(frame_seq, "engine", "number of the exchange whose results are out")   \
  RESERVED(reserved_136)                                                       \
  FIELD(action_seq, "client",                                                  \
        "number of the exchange whose actions are out; frame_seq or one more") \
  RESERVED(reserved_264)                                                       \
  FIELD(obs_offset, "engine",                                                  \
        "from the region's start to float32[num_envs, obs_size]; 64-byte "     \
        "aligned, as all offsets")                                             \
  FIELD(act_offset, "engine",                                                  \
        "to float32[num_envs, act_size], written by the client")               \
  FIELD(rewards_offset, "engine", "to float32[num_envs]")                      \
  FIELD(dones_offset, "engine",                                                \
        "to uint8[num_envs]: the episode is over, for whatever reason")        \
  FIELD(resets_offset, "engine",                                               \
        "to uint8[num_envs], written by the client, cleared by the engine: "   \
        "bit 0 reset, bit 1 with its seed; bit 2 alone: neither reset nor "    \
        "step")                                                                \
  FIELD(cmd_s2c_offset, "engine",                                              \
        "to the command ring that the engine writes and the client reads")     \
  FIELD(cmd_c2s_offset, "engine",                                              \
        "to the command ring that the client writes and the engine reads")     \
  FIELD(cmd_ring_size, "engine",                                               \
        "bytes of data in each ring, behind its 128 bytes of header; a power " \
        "of two")                                                              \
  RESERVED(reserved_444)                                                       \
  FIELD(image_offset, "engine",                                                \
        "to uint8[num_envs, image_height, image_width, image_channels]; 0: "   \
        "none")                                                                \
  FIELD(image_width, "engine", "pixels")                                       \
  FIELD(image_height, "engine", "pixels")                                      \
  FIELD(image_channels, "engine", "bytes of a pixel")                          \
  RESERVED(reserved_468)                                                       \
  FIELD(gpu_available, "engine", "1: the observations are on a GPU as well")   \
  FIELD(gpu_obs_mode, "engine", "0 CPU, 1 CUDA_IPC, 2 VULKAN_EXTERNAL")        \
  RESERVED(reserved_474)                                                       \
  FIELD(gpu_obs_handle, "engine",                                              \
        "of the GPU allocation: mode 1 a CUipcMemHandle, mode 2 a "            \
        "descriptor")                                                          \
  FIELD(gpu_device_id, "engine",                                               \
        "the engine's number for the device; the UUID is the truth")           \
  RESERVED(reserved_544)                                                       \
  FIELD(region_size, "engine", "bytes, equal to the file's")                   \
  FIELD(feature_bits, "engine",                                                \
        "extensions kept: 1 arrays, 2 session, 4 step times, 8 infos, 16 "     \
        "frames, 32 images, 64 commands, 128 attendants, 256 image slots, "    \
        "512 fields, 1024 workers, 2048 subsets, 4096 GPU arrays, "            \
        "8192 identity, 16384 core sharing, 32768 own run, 65536 final "       \
        "images")                                                              \
  FIELD(generation, "engine",                                                  \
        "nanoseconds since the Unix epoch at birth: tells a restarted "        \
        "engine's region")                                                     \
  FIELD(header_size, "engine", "bytes of this header")                         \
  FIELD(info_size, "engine", "float64 values per environment in infos")        \
  FIELD(truncateds_offset, "engine",                                           \
        "to uint8[num_envs]: the episode was cut short")                       \
  FIELD(terminateds_offset, "engine",                                          \
        "to uint8[num_envs]: the episode reached a terminal state")            \
  FIELD(final_obs_offset, "engine",                                            \
        "to float32[num_envs, obs_size]: an ended episode's last observation") \
  FIELD(reset_seeds_offset, "engine",                                          \
        "to uint64[num_envs], written by the client")                          \
  FIELD(infos_offset, "engine",                                                \
        "to infos, final_infos f64[num_envs, info_size], JSON; 0: none")       \
  FIELD(infos_size, "engine", "bytes")                                         \
  FIELD(flan_offset, "engine", "to a FLAN frame ring; 0: none")                \
  FIELD(flan_size, "engine", "bytes")                                          \
  FIELD(gpu_device_uuid, "engine",                                             \
        "of the device that holds the observations")                           \
  FIELD(gpu_alloc_offset, "engine",                                            \
        "from the GPU allocation's start to the observations; mode 2: to the " \
        "images")                                                              \
  FIELD(gpu_alloc_size, "engine", "bytes of the GPU allocation")               \
  FIELD(gpu_event_handle, "engine",                                            \
        "of the event recorded when the observations are complete; mode 2: "   \
        "zero")                                                                \
  FIELD(task, "engine", "what the engine runs, NUL-terminated")                \
  FIELD(layout_crc32, "engine", "CRC-32 of bytes 20..127, then 384..895")      \
  RESERVED(reserved_900)                                                       \
  FIELD(attendants_offset, "engine",                                           \
        "to the slots of attendants, each with two command rings behind it")   \
  FIELD(attendant_ring_size, "engine",                                         \
        "bytes of data in each of these rings; a power of two")                \
  FIELD(attendants_crc32, "engine", "CRC-32 of bytes 904..915")                \
  FIELD(image_slots_offset, "engine",                                          \
        "to the slots of requested images: two of the client, then two of "    \
        "each attendant")                                                      \
  FIELD(image_slot_bytes, "engine", "bytes of an image in each of them")       \
  FIELD(image_slots_crc32, "engine", "CRC-32 of bytes 920..931")               \
  FIELD(fields_offset, "engine", "to the table of fields; 0: none")            \
  FIELD(field_count, "engine", "records of the table, 256 bytes each")         \
  FIELD(fields_crc32, "engine",                                                \
        "CRC-32 of bytes 936..947, then of all records")                       \
  FIELD(workers_offset, "engine", "to the workers' section; 0: none")          \
  FIELD(num_workers, "engine",                                                 \
        "slots of the section, 4096 bytes each, behind its 1024 bytes of "     \
        "header")                                                              \
  FIELD(workers_crc32, "engine",                                               \
        "CRC-32 of bytes 952..963, then of the first 8 bytes of each slot")    \
  FIELD(gpu_arrays_offset, "engine",                                           \
        "to the table of arrays in the GPU allocation; 0: none")               \
  FIELD(gpu_array_count, "engine", "records of the table, 256 bytes each")     \
  FIELD(gpu_flags, "engine",                                                   \
        "1: the region's observations and images are written, too")            \
  FIELD(gpu_arrays_crc32, "engine",                                            \
        "CRC-32 of bytes 968..983, then of all records")                       \
  FIELD(identity, "engine", "random; names bells on systems without futexes")  \
  RESERVED(reserved_1004)                                                      \
  FIELD(exchange_kind, "client",                                               \
        "0 step, 1 reset only; published by action_seq")                       \
  FIELD(autoreset_mode, "client",                                              \
        "0 same step, 1 next step, 2 disabled; published by attach_request")   \
  FIELD(attach_request, "client",                                              \
        "a new client's hello; compared for equality only")                    \
  FIELD(frame_request, "client",                                               \
        "asks for a frame of the state as it is; compared for equality only")  \
  FIELD(                                                                       \
      attendant_bell, "attendants",                                            \
      "calls of any attendant so far; tells the engine to look at the slots")  \
  FIELD(client_core, "client",                                                 \
        "1 + the core of the thread that waits for results; 0: unknown")       \
  RESERVED(reserved_1048)                                                      \
  FIELD(attach_ack, "engine", "the hello that the engine welcomed")            \
  FIELD(exchange_status, "engine",                                             \
        "error code of the exchange; published by frame_seq")                  \
  FIELD(error_text, "engine",                                                  \
        "of exchange_status, NUL-terminated; published by frame_seq")          \
  FIELD(frame_answer, "engine",                                                \
        "the frame_request whose frame is in the frame ring")                  \
  FIELD(services, "engine",                                                    \
        "that answer calls: 1 agent, 2 mujoco, 4 telemetry, 8 scene, 16 "      \
        "camera, 32 viewport, 64 debug")                                       \
  FIELD(engine_doorbell, "client",                                             \
        "rings so far; the futex that the engine sleeps on")                   \
  RESERVED(reserved_1412)                                                      \
  FIELD(engine_sleepers, "engine",                                             \
        "how many of its threads sleep, or are about to")                      \
  FIELD(engine_core, "engine",                                                 \
        "1 + the core on which it sleeps, the client's; 0: none")              \
  FIELD(early_wakes, "engine",                                                 \
        "how often it polled before a request that it forecast")               \
  FIELD(early_hits, "engine", "how often the request came meanwhile")          \
  RESERVED(reserved_1560)                                                      \
  FIELD(client_doorbell, "engine",                                             \
        "rings so far; the futex that the client sleeps on")                   \
  RESERVED(reserved_1668)                                                      \
  FIELD(client_sleepers, "client",                                             \
        "how many of its threads sleep, or are about to")                      \
  RESERVED(reserved_1796)                                                      \
  FIELD(engine_phase, "engine",                                                \
        "Phase in the top 4 bits, CLOCK_MONOTONIC nanoseconds of its start "   \
        "below")                                                               \
  FIELD(image_step, "engine", "frame_seq that the images belong to")           \
  FIELD(dropped_messages, "engine",                                            \
        "entries of this client's that were no envelopes, or had no id")       \
  FIELD(attendant_pause_ns, "engine",                                          \
        "all ended pauses of attendants together; the client's deadlines "     \
        "leave them out")                                                      \
  RESERVED(reserved_1952)                                                      \
  FIELD(client_phase, "client", "as engine_phase")                             \
  FIELD(own_seq, "client",                                                     \
        "grows; odd while the five words below are written")                   \
  FIELD(own_present, "client",                                                 \
        "1: the client computes rewards itself; 0: they are the engine's")     \
  FIELD(own_episodes, "client", "ended, of all environments")                  \
  FIELD(own_last_reward, "client", "mean of all environments")                 \
  FIELD(own_rolling_return, "client",                                          \
        "mean of the last 100 episodes; before one has ended, of the current " \
        "ones so far")                                                         \
  FIELD(own_episode_length, "client",                                          \
        "mean of the same episodes, in steps; 0: none has ended")              \
  RESERVED(reserved_2104)                                                      \
  FIELD(engine_step_times.total_ns, "engine",                                  \
        "sum, from actions taken to results out")                              \
  FIELD(engine_step_times.counts, "engine",                                    \
        "histogram of the same: 4 buckets an octave from 128 ns to 8.6 s")     \
  RESERVED(reserved_3016)                                                      \
  FIELD(client_round_trips.total_ns, "client",                                 \
        "sum, from actions out to results seen")                               \
  FIELD(client_round_trips.counts, "client", "histogram of the same")          \
  RESERVED(reserved_3912)

#define TANDEM_ATTENDANT_FIELDS(FIELD, RESERVED)                         \
  FIELD(pid, "attendant",                                                \
        "label for people; its first byte is the attendant's lock byte") \
  FIELD(request, "attendant",                                            \
        "odd: an attendant's number; even: none, or it has left")        \
  FIELD(label, "attendant", "UTF-8 text for people, NUL-terminated")     \
  RESERVED(reserved_64)                                                  \
  FIELD(ack, "engine", "the request that the engine acknowledged")       \
  RESERVED(reserved_132)                                                 \
  FIELD(doorbell, "engine",                                              \
        "rings so far; the futex that the attendant sleeps on")          \
  RESERVED(reserved_260)                                                 \
  FIELD(sleepers, "attendant",                                           \
        "how many of its threads sleep, or are about to")                \
  RESERVED(reserved_388)

#define TANDEM_IMAGE_SLOT_FIELDS(FIELD, RESERVED)                      \
  FIELD(seq, "engine",                                                 \
        "2n + 1 while image n is written, 2n + 2 when it is complete") \
  RESERVED(reserved_8)                                                 \
  FIELD(released, "caller",                                            \
        "seq of the newest image that the caller no longer uses")      \
  RESERVED(reserved_136)

#define TANDEM_FIELD_RECORD_FIELDS(FIELD, RESERVED)                     \
  FIELD(offset, "engine",                                               \
        "from the start of the region, or of the GPU allocation, to "   \
        "the array [num_envs, *shape]")                                 \
  FIELD(role, "engine",                                                 \
        "1 obs, 2 final_obs, 3 action, 4 reward, 5 status, 6 "          \
        "episode_return, 7 episode_length, 8 images (on a GPU only)")   \
  FIELD(type, "engine",                                                 \
        "1 bool, 2 uint8, 3 int8, 4 uint16, 5 int16, 6 uint32, 7 "      \
        "int32, 8 uint64, 9 int64, 10 float16, 11 float32, 12 float64") \
  FIELD(dims, "engine", "used elements of shape")                       \
  RESERVED(reserved_11)                                                 \
  FIELD(shape, "engine", "of one environment's value; the rest zero")   \
  FIELD(path, "engine",                                                 \
        "JSON pointer into the space, UTF-8, NUL-terminated, the rest " \
        "zero")                                                         \
  RESERVED(reserved_240)

// The bytes of gpu_obs_handle with gpu_obs_mode 2.
#define TANDEM_GPU_FILE_HANDLE_FIELDS(FIELD, RESERVED)                 \
  FIELD(fd, "engine",                                                  \
        "number of the allocation's opaque descriptor in the process " \
        "server_pid, below 2^31")                                      \
  FIELD(flags, "engine", "1: a dedicated allocation")                  \
  RESERVED(reserved_8)

#define TANDEM_WORKERS_HEADER_FIELDS(FIELD, RESERVED)                      \
  FIELD(order, "supervisor",                                               \
        "number of the last order; compared for equality only")            \
  FIELD(order_kind, "supervisor",                                          \
        "0 hold, 1 go, 2 reset, 3 seeded reset, 4 finish, 5 count, 6 "     \
        "message, 7 stop; published by order")                             \
  FIELD(order_value, "supervisor",                                         \
        "go: the autoreset mode; seeded reset: the first seed; finish: "   \
        "the exchange; count: exchanges completed; published by order")    \
  RESERVED(reserved_16)                                                    \
  FIELD(publisher, "workers",                                              \
        "winner of the last election: a worker's index, or 65535 for the " \
        "supervisor, plus 65536 times the exchange's number")              \
  RESERVED(reserved_136)                                                   \
  FIELD(end_code, "supervisor",                                            \
        "error code of the region's end; 0: it does not end")              \
  FIELD(end_text, "supervisor", "of end_code, NUL-terminated; published by it")

#define TANDEM_WORKER_SLOT_FIELDS(FIELD, RESERVED)                       \
  FIELD(rows.first_env, "engine", "first environment of this worker")    \
  FIELD(rows.num_envs, "engine", "number of its environments")           \
  FIELD(pid, "worker",                                                   \
        "label for people; its first byte is the worker's lock byte")    \
  FIELD(ack, "worker", "the last order that it carried out")             \
  RESERVED(reserved_16)                                                  \
  FIELD(done, "worker", "the last exchange that it has completed")       \
  FIELD(lane_done, "worker", "the last lane that it has completed")      \
  FIELD(failed_exchange, "worker",                                       \
        "the last exchange that failed; 0: none; published by done")     \
  FIELD(failed_lane, "worker",                                           \
        "the last lane that failed; 0: none; published by lane_done")    \
  RESERVED(reserved_160)                                                 \
  FIELD(phase, "worker", "as engine_phase")                              \
  FIELD(steps, "worker", "steps of environments so far")                 \
  FIELD(busy_ns, "worker", "nanoseconds in exchanges, lanes and resets") \
  FIELD(env, "worker", "the environment in work")                        \
  RESERVED(reserved_284)                                                 \
  FIELD(lane_go, "client",                                               \
        "the lane whose actions are out; lane_done or one more")         \
  RESERVED(reserved_392)                                                 \
  FIELD(error_env, "worker", "the environment of the last failure")      \
  FIELD(error_bytes, "worker", "bytes of error_text")                    \
  FIELD(error_text, "worker", "UTF-8: the end of the failure's text")

#define TANDEM_RING_FIELDS(FIELD, RESERVED)                         \
  FIELD(write_pos, "ring's writer",                                 \
        "bytes of entries and skips published so far, modulo 2^32") \
  RESERVED(reserved_4)                                              \
  FIELD(read_pos, "ring's reader",                                  \
        "bytes of them read and free again, modulo 2^32")           \
  RESERVED(reserved_68)
// clang-format on
