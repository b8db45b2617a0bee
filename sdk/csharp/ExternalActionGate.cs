// ExternalActionGate: whether the actions of the next step have arrived.
//
// Data flow: ExternalAgentRegistry opens it when action_seq has grown by a step, and closes it when the step is
// published; the physics loop, also in another thread, waits for ActionReady.
//
//   if (gate.ActionReady) StepPhysics();

using System.Threading;

namespace Tandem
{
    public sealed class ExternalActionGate
    {
        private readonly ManualResetEventSlim _ready = new ManualResetEventSlim(false);

        // Any thread.
        public bool ActionReady => _ready.IsSet;

        // Blocks until ActionReady. false: not in time. Any thread.
        public bool Wait(int timeoutMilliseconds)
        {
            return _ready.Wait(timeoutMilliseconds);
        }

        // The engine's thread.
        public void Open()
        {
            _ready.Set();
        }

        public void Close()
        {
            _ready.Reset();
        }
    }
}
