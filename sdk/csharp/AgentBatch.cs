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
        public AgentBatch(int count, int stateSize, int actionSize, int infoSize = 0)
        {
            Count = count;
            StateBuffer = new float[count * stateSize];
            ActionBuffer = new float[count * actionSize];
            Rewards = new float[count];
            Dones = new byte[count];
            Truncateds = new byte[count];
            Infos = new double[count * infoSize];
            Contracts = new Contract[count];
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
        /// <summary>Infos, [Count * infoSize], which the agents write in steps and resets.</summary>
        public double[] Infos { get; private set; }
        /// <summary>The contract of each agent's last reset, [Count]; null: the task's own physics.
        /// ExternalAgentRegistry sets it before ResetAgent.</summary>
        public Contract[] Contracts { get; private set; }

        /// <summary>Starts new episodes by Contracts, and writes the agents' rows of StateBuffer and Infos.</summary>
        public Action<ResetRequest> ResetAgent { get; set; }
    }
}
