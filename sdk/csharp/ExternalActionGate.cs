// Data flow: ExternalAgentRegistry opens it when action_seq has grown by a step, and closes it when the step is
// published; the physics loop, also in another thread, waits for ActionReady.
//
//   if (gate.ActionReady) StepPhysics();

using System.Threading;

namespace Tandem
{
    /// <summary>Whether the actions of the next step have arrived.</summary>
    public sealed class ExternalActionGate
    {
        private readonly ManualResetEventSlim _ready = new ManualResetEventSlim(false);

        /// <summary>Any thread.</summary>
        public bool ActionReady => _ready.IsSet;

        /// <summary>Blocks until ActionReady. false: not in time. Any thread.</summary>
        public bool Wait(int timeoutMilliseconds) => _ready.Wait(timeoutMilliseconds);

        /// <summary>The engine's thread.</summary>
        public void Open() => _ready.Set();

        /// <summary>The actions have been used; ActionReady is false.</summary>
        public void Close() => _ready.Reset();
    }
}
