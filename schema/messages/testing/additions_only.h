// Whether one FlatBuffers schema is another with additions only: each reads the
// messages that the other wrote, and code written for the older one compiles
// with the newer.
//
// Data flow: two parsed schemas -> the problems of the newer one, for people.
//
// `flatc --conform` (2.0.8) detects moved fields and changed types or defaults,
// but accepts removed and renamed ones; this function detects both.
//
//   flatbuffers::Parser older, newer;
//   if (!older.Parse(older_text) || !newer.Parse(newer_text)) ...
//   for (const std::string& problem : NotAdditions(older, newer)) ...

#pragma once

#include <string>
#include <vector>

#include "flatbuffers/idl.h"

namespace tandem {

// Returns a sentence for each field that `newer` has moved, changed, removed or
// renamed; empty if it only added. (Not const, as FlatBuffers' functions.)
std::vector<std::string> NotAdditions(flatbuffers::Parser& older,
                                      flatbuffers::Parser& newer);

}  // namespace tandem
