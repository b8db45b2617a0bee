// Data flow: the agents' OnState writes StateBuffer -> ExternalAgentRegistry.PublishState -> client;
// client -> ExternalAgentRegistry.WaitAndApplyExternalActions -> ActionBuffer -> the agents.
// It is the part of LuckyEngine's AgentBatch that the transport needs; an engine with a class of its own gives its
// arrays to the transport.

using System;

namespace Tandem
{
    /// <summary>The agents that an external trainer controls, one for each environment, in arrays on the
    /// heap.</summary>
    public sealed class AgentBatch
    {
        /// <summary>Makes the arrays of `count` agents.</summary>
        public AgentBatch(int count, int stateSize, int actionSize)
        {
            Count = count;
            StateBuffer = new float[count * stateSize];
            ActionBuffer = new float[count * actionSize];
            Rewards = new float[count];
            Dones = new byte[count];
            Truncateds = new byte[count];
        }

        /// <summary>The number of agents.</summary>
        public int Count { get; private set; }
        /// <summary>Observations, [Count * stateSize], which the agents write.</summary>
        public float[] StateBuffer { get; private set; }
        /// <summary>Actions, [Count * actionSize], which the agents read.</summary>
        public float[] ActionBuffer { get; private set; }
        /// <summary>Rewards, [Count].</summary>
        public float[] Rewards { get; private set; }
        /// <summary>Terminations, [Count]: 0 or 1.</summary>
        public byte[] Dones { get; private set; }
        /// <summary>Truncations, [Count]: 0 or 1.</summary>
        public byte[] Truncateds { get; private set; }

        /// <summary>Starts new episodes, and writes the agents' rows of StateBuffer.</summary>
        public Action<ResetRequest> ResetAgent { get; set; }
    }
}
