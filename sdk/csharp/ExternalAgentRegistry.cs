// Data flow: WaitAndApplyExternalActions: client -> ActionBuffer, Contracts; PublishState: StateBuffer, Rewards, Dones,
// Infos -> client.
// Both use SharedMemoryTransport.Instance, and have no effect without one.
// Threads: the engine's.
//
//   if (ExternalAgentRegistry.WaitAndApplyExternalActions(batch, 0.1)) {
//     Simulate(SharedMemoryTransport.Instance.PendingEnvs, batch);
//     ExternalAgentRegistry.PublishState(batch);
//   }

using System;

namespace Tandem
{
    /// <summary>The two calls of an engine's frame that exchange data with an external trainer.</summary>
    public static class ExternalAgentRegistry
    {
        /// <summary>Opens when actions have arrived.</summary>
        public static ExternalActionGate Gate { get; } = new ExternalActionGate();

        /// <summary>Waits for a step, and copies its actions into the batch. Resets on the way are done by
        /// batch.ResetAgent, and published. false: no step in time, or the engine stops. A second call before
        /// PublishState returns true at once.</summary>
        public static bool WaitAndApplyExternalActions(AgentBatch batch, double timeoutSecs)
        {
            SharedMemoryTransport transport = SharedMemoryTransport.Instance;
            if (transport == null) return false;
            while (true)
            {
                if (!transport.WaitForAction(transport.FrameSeq + 1, timeoutSecs)) return false;
                if (transport.PendingKind == WorkKind.Step) break;
                Reset(transport.PendingWork, batch);
                PublishState(batch);
            }
            transport.ReadActions(batch.ActionBuffer);
            Gate.Open();
            return true;
        }

        /// <summary>Ends the pending work with the batch's state. No effect if none is pending.</summary>
        public static void PublishState(AgentBatch batch)
        {
            SharedMemoryTransport transport = SharedMemoryTransport.Instance;
            if (transport == null || transport.PendingKind == WorkKind.None) return;
            transport.WriteObservations(batch.StateBuffer);
            transport.WriteRewards(batch.Rewards);
            transport.WriteDones(batch.Dones);
            transport.WriteTruncateds(batch.Truncateds);
            if (batch.Infos.Length > 0) transport.WriteArray<double>("infos", batch.Infos);
            Gate.Close();
            transport.IncrementFrameSeq();
        }

        private static void Reset(Work work, AgentBatch batch)
        {
            ResetRequest[] resets = work.Resets.ToArray();
            for (int i = 0; i < resets.Length; ++i)
            {
                ResetRequest reset = resets[i];
                if (reset.Env >= batch.Count)
                {
                    throw new ArgumentException("expected a batch with an agent for each environment, found "
                        + batch.Count + " agents and environment " + reset.Env);
                }
                batch.Contracts[reset.Env] = work.ContractAt(i);
                batch.ResetAgent?.Invoke(reset);
            }
        }
    }
}
