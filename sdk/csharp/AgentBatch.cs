// AgentBatch: the agents that an external trainer controls, one for each environment, in arrays on the heap.
//
// Data flow: the agents' OnState writes StateBuffer -> ExternalAgentRegistry.PublishState -> client;
// client -> ExternalAgentRegistry.WaitAndApplyExternalActions -> ActionBuffer -> the agents.
// It is the part of LuckyEngine's AgentBatch that the transport needs; an engine with a class of its own gives its
// arrays to the transport.

using System;

namespace Tandem
{
    public sealed class AgentBatch
    {
        public AgentBatch(int count, int stateSize, int actionSize)
        {
            Count = count;
            StateBuffer = new float[count * stateSize];
            ActionBuffer = new float[count * actionSize];
            Rewards = new float[count];
            Dones = new byte[count];
            Truncateds = new byte[count];
        }

        public int Count { get; private set; }
        public float[] StateBuffer { get; private set; }
        public float[] ActionBuffer { get; private set; }
        public float[] Rewards { get; private set; }
        public byte[] Dones { get; private set; }
        public byte[] Truncateds { get; private set; }

        // Starts new episodes, and writes the agents' rows of StateBuffer.
        public Action<ResetRequest> ResetAgent { get; set; }
    }
}
