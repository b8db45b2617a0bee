// Every field of a FLAN ring's header and of a slot, in order: its writer
// and its meaning. The form is that of lrbc_fields.h.
//
//   #define FIELD(name, writer, meaning) ...
//   TANDEM_FLAN_FIELDS(FIELD)

#pragma once

// clang-format off: one field, one line where it fits
#define TANDEM_FLAN_FIELDS(FIELD)                                             \
  FIELD(magic, "writer", "the letters FLAN")                                  \
  FIELD(version, "writer", "of this layout: 1")                               \
  FIELD(                                                                      \
      flags, "writer",                                                        \
      "bit 0: the writer has left; its first byte is the writer's lock byte") \
  FIELD(capacity, "writer", "slots")                                          \
  FIELD(slot_size, "writer", "bytes: 16 + payload_size")                      \
  FIELD(payload_size, "writer", "bytes: a frame and the metadata room")       \
  FIELD(width, "writer", "pixels")                                            \
  FIELD(height, "writer", "pixels")                                           \
  FIELD(channels, "writer", "bytes of a pixel")                               \
  FIELD(format, "writer", "CRC-32 of the format's name: RGB, RGBA or BYTES")  \
  FIELD(head, "writer", "frames published")                                   \
  FIELD(tail, "nobody", "unused; its first byte is the readers' lock byte")   \
  FIELD(last_reward, "writer", "of the newest frame")                         \
  FIELD(rolling_return, "writer", "likewise")                                 \
  FIELD(step_rate_hz, "writer", "likewise")

#define TANDEM_FLAN_SLOT_FIELDS(FIELD)                              \
  FIELD(seq, "writer",                                              \
        "2h + 1 while frame h is written, 2h + 2 once it is whole") \
  FIELD(frame_len, "writer", "bytes of the frame, which follows")   \
  FIELD(metadata_len, "writer", "bytes of its metadata, which follow it")
// clang-format on
