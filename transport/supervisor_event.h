// SupervisorEvent: what the supervisor of a region with workers waits for.
//
// Data flow: clients, attendants and workers -> Next of a SupervisorHost.
//
//   case SupervisorEvent::kWorkersReady: host->Open(); break;

#ifndef TANDEM_TRANSPORT_SUPERVISOR_EVENT_H_
#define TANDEM_TRANSPORT_SUPERVISOR_EVENT_H_

#include <cstdint>

namespace tandem {

enum class [[nodiscard]] SupervisorEvent : uint8_t{
    kWorkersReady,     // each has carried out ResetWorkers
    kClientArrived,    // AcknowledgeAttach; the workers have reset already
    kClientLeft,       // the same. Also if the next client was refused
    kWorkersAnswered,  // each has acknowledged MessageWorkers
    kWorkerDied,       // dead_worker(): End, or ReplaceWorker and start another
    kInput,            // the descriptor of WatchInput is readable
    kFrameWanted,      // a client asks for a frame
    kRpcs,             // a client has written into its RPC ring
    kAttendants,       // an attendant has written, or may have left
    kBrokenClient,     // action_seq was invalid; the client gets an error
    kTimedOut,         // the deadline passed
    kInterrupted,      // a signal handler ran; check your flags, call again
    kStopRequested,    // each later Next returns it, too
};

}  // namespace tandem

#endif  // TANDEM_TRANSPORT_SUPERVISOR_EVENT_H_
