// Whether one FlatBuffers schema is another with additions only: what was
// written by either is read by the other, and code written for the older
// compiles with the newer.
//
// Data flow: two parsed schemas -> what is wrong with the newer, for people.
//
// `flatc --conform` sees what was moved and what changed its type or default,
// but takes what was removed or renamed for well (2.0.8); this sees both.
//
//   flatbuffers::Parser older, newer;
//   if (!older.Parse(older_text) || !newer.Parse(newer_text)) ...
//   for (const std::string& problem : NotAdditions(older, newer)) ...

#ifndef TANDEM_SCHEMA_MESSAGES_TESTING_ADDITIONS_ONLY_H_
#define TANDEM_SCHEMA_MESSAGES_TESTING_ADDITIONS_ONLY_H_

#include <string>
#include <vector>

#include "flatbuffers/idl.h"

namespace tandem {

// Each thing that `newer` has moved, changed, removed or renamed, one sentence
// for each; empty if it only added. (Not const: so are FlatBuffers' functions.)
std::vector<std::string> NotAdditions(flatbuffers::Parser& older,
                                      flatbuffers::Parser& newer);

}  // namespace tandem

#endif  // TANDEM_SCHEMA_MESSAGES_TESTING_ADDITIONS_ONLY_H_
