// Data flow: any thread -> Post -> the main thread, once a frame -> Pump.
//
//   dispatcher.Post(() => camera.Enabled = true);  // any thread
//   dispatcher.Pump();                             // the main thread

using System;
using System.Collections.Concurrent;

namespace Tandem
{
    /// <summary>Work that other threads pass to the engine's main thread.</summary>
    public sealed class RpcMainThreadDispatcher
    {
        private readonly ConcurrentQueue<Action> _work = new ConcurrentQueue<Action>();

        /// <summary>Does not wait for the work.</summary>
        public void Post(Action work)
        {
            if (work == null) throw new ArgumentNullException(nameof(work));
            _work.Enqueue(work);
        }

        /// <summary>Executes what was posted before this call, in order. An exception of the work leaves Pump; the rest
        /// stays for the next call.</summary>
        public void Pump()
        {
            Action work;
            for (int left = _work.Count; left > 0 && _work.TryDequeue(out work); --left) work();
        }
    }
}
