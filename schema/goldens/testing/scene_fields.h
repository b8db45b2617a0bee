// Every field of a scene's header, of a snapshot's and of a row, in order: its
// writer and its meaning. The form is that of lrbc_fields.h.
//
//   #define FIELD(name, writer, meaning) ...
//   TANDEM_SCENE_FIELDS(FIELD)

#pragma once

// clang-format off: one field, one line where it fits
#define TANDEM_SCENE_FIELDS(FIELD)                                          \
  FIELD(magic, "engine", "the letters TSCN")                                \
  FIELD(version, "engine", "of this layout: 1")                             \
  FIELD(header_bytes, "engine",                                             \
        "of this header; its first byte is the writer's lock byte")         \
  FIELD(generation, "engine", "from 1; grows with each scene of an engine") \
  FIELD(num_envs, "engine", "environments of the engine")                   \
  FIELD(nodes, "engine", "nodes of the GLB that move")                      \
  FIELD(max_rows, "engine", "rows of the largest snapshot")                 \
  FIELD(row_bytes, "engine", "bytes of a row: a multiple of 8")             \
  FIELD(glb_offset, "engine", "of the GLB, from the segment's start")       \
  FIELD(glb_bytes, "engine", "of the GLB")                                  \
  FIELD(flan_offset, "engine", "of the ring of snapshots")                  \
  FIELD(flan_bytes, "engine", "of the ring")

#define TANDEM_SNAPSHOT_HEAD_FIELDS(FIELD, RESERVED)                  \
  FIELD(exchange, "engine", "the region's frame_seq at this instant") \
  FIELD(monotonic_ns, "engine", "CLOCK_MONOTONIC, nanoseconds")       \
  FIELD(rows, "engine", "environments in this snapshot")              \
  RESERVED(reserved_20)

#define TANDEM_SCENE_ROW_FIELDS(FIELD)                                      \
  FIELD(env, "engine", "the environment")                                   \
  FIELD(flags, "engine",                                                    \
        "bit 0: return and reward are unknown; bit 1: sim_time is unknown") \
  FIELD(episode, "engine", "of this environment, from 1")                   \
  FIELD(step, "engine", "in the episode")                                   \
  FIELD(sim_time, "engine", "seconds in the episode")                       \
  FIELD(episode_return, "engine", "sum of the episode's rewards so far")    \
  FIELD(reward, "engine", "of the last step")
// clang-format on
