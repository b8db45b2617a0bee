// StoreIfOther: keeps a word that rarely changes in both sides' caches.
//
// Data flow: as a relaxed store. But a store takes the cache line away from the
// other side, a load that finds the value there already does not.
//
//   StoreIfOther(&header->exchange_kind, 0);

#ifndef TANDEM_TRANSPORT_SESSION_STORE_IF_OTHER_H_
#define TANDEM_TRANSPORT_SESSION_STORE_IF_OTHER_H_

#include <atomic>
#include <type_traits>

#include "schema/layout/shared_word.h"

namespace tandem {

template <typename T>
void StoreIfOther(SharedWord<T>* word, std::type_identity_t<T> value) {
  // relaxed: the caller's next release publishes it.
  if (word->load(std::memory_order_relaxed) == value) return;
  // relaxed: as above.
  word->store(value, std::memory_order_relaxed);
}

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SESSION_STORE_IF_OTHER_H_
