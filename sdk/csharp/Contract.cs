// Contract: what an environment draws its physics from, at each reset. hazel_rpc.fbs, SimulationContract, has the names
// of its fields, their units and meaning.
//
// Data flow: a caller's ResetAgent -> the library -> Work.ContractAt -> the engine draws its physics.
// Lifetime: a copy, which may be kept.
//
//   Contract contract = work.ContractAt(i);  // null: the task's own physics
//   if (contract != null && contract.Begins) _draws[env] = new Random((int)contract.Seed);
//   float[] friction = contract?.Values("friction_range");  // {lowest, highest}; null: not part of the contract

using System.Collections.Generic;

namespace Tandem
{
    /// <summary>The ranges of an environment's physics; only those that EngineServices.ContractFields names.</summary>
    public sealed unsafe class Contract
    {
        private readonly Dictionary<string, float[]> _values = new Dictionary<string, float[]>();
        private readonly Dictionary<string, string> _texts = new Dictionary<string, string>();

        internal Contract(tandem_contract* contract)
        {
            Begins = contract->begins != 0;
            Seed = contract->seed;
            for (int i = 0; i < contract->range_count; ++i)
            {
                tandem_range* range = contract->ranges + i;
                string name = Utf8.Text(range->name);
                if (range->text != null) _texts[name] = Utf8.Text(range->text);
                var values = new float[range->count];
                for (int k = 0; k < values.Length; ++k) values[k] = range->values[k];
                _values[name] = values;
            }
        }

        /// <summary>The first reset by this contract: the random stream of its draws begins, from the seed. Else the
        /// stream continues.</summary>
        public bool Begins { get; private set; }
        /// <summary>Of the random stream.</summary>
        public ulong Seed { get; private set; }

        /// <summary>The names of the contract's fields.</summary>
        public IReadOnlyCollection<string> Names => _values.Keys;

        /// <summary>A range's lowest and highest number; or a noise, a probability: one number or three. null: the
        /// contract does not have the field.</summary>
        public float[] Values(string name)
        {
            float[] values;
            return _values.TryGetValue(name, out values) ? values : null;
        }

        /// <summary>Of "terrain_type"; null: the contract does not have it.</summary>
        public string Text(string name)
        {
            string text;
            return _texts.TryGetValue(name, out text) ? text : null;
        }
    }
}
