// Data flow: Engine.Next or the work callback -> Work -> the engine writes its rows -> Engine.Done, or the callback's
// end.
// Lifetime: a ref struct, since its memory is valid only until the work is done; that of a Call or Clear, until the
// next Next or the callback's end.
//
//   Span<float> rewards = work.Rewards;
//   foreach (int env in work.Envs) rewards[env] = Simulate(env, work.ActionsOf(env));
//
// | kind  | the engine reads               | and writes, only in the rows of EnvAt(0) to EnvAt(Count - 1)      |
// |-------|--------------------------------|-------------------------------------------------------------------|
// | Reset | Resets                         | Obs, Infos                                                        |
// | Step  | Envs, Actions                  | Obs, Rewards, Terminateds, Truncateds, Infos                      |
// | Call  | Method, Envelope, CallNumber   | nothing: Engine.Answer or Engine.Refuse, now or later             |
// | Clear | nothing                        | nothing: it undoes what the last client's RPCs have changed       |

using System;
using tandem.rpc;

namespace Tandem
{
    /// <summary>What an engine has to do; the table above has the arrays of each.</summary>
    public enum WorkKind
    {
        /// <summary>No work.</summary>
        None = 0,
        /// <summary>To reset the environments of Resets.</summary>
        Reset = 1,
        /// <summary>To step the environments of Envs.</summary>
        Step = 2,
        /// <summary>To answer an RPC.</summary>
        Call = 3,
        /// <summary>To drop what a client that left has requested.</summary>
        Clear = 4
    }

    /// <summary>An environment to reset. With a seed, its random stream starts again from the seed; without one, it
    /// continues.</summary>
    public readonly struct ResetRequest
    {
        private readonly uint _env;
        private readonly uint _hasSeed;
        private readonly ulong _seed;

        /// <summary>A request to reset `env`, with a seed or without one.</summary>
        public ResetRequest(int env, ulong? seed = null)
        {
            _env = checked((uint)env);
            _hasSeed = seed.HasValue ? 1u : 0u;
            _seed = seed.GetValueOrDefault();
        }

        /// <summary>The environment's number.</summary>
        public int Env => (int)_env;

        /// <summary>The seed; null: none.</summary>
        public ulong? Seed => _hasSeed != 0 ? _seed : (ulong?)null;
    }

    /// <summary>What an engine has to do, with the arrays of this work.</summary>
    public readonly unsafe ref struct Work
    {
        private readonly tandem_work _work;
        private readonly EngineArrays _arrays;

        internal Work(tandem_work work, EngineArrays arrays)
        {
            _work = work;
            _arrays = arrays;
        }

        // The pointers are valid until the engine's Dispose at most: then ObjectDisposedException.
        internal tandem_work Native
        {
            get
            {
                _arrays?.Obs.ThrowIfMoved();
                return _work;
            }
        }

        /// <summary>What to do.</summary>
        public WorkKind Kind => (WorkKind)_work.kind;

        /// <summary>Environments of a Reset or Step.</summary>
        public int Count => (int)_work.count;

        /// <summary>Of a Reset, else empty.</summary>
        public ReadOnlySpan<ResetRequest> Resets =>
            new ReadOnlySpan<ResetRequest>(Native.resets, Native.resets == null ? 0 : Count);

        /// <summary>Of a Step, ascending; else empty.</summary>
        public ReadOnlySpan<int> Envs => new ReadOnlySpan<int>(Native.envs, Native.envs == null ? 0 : Count);

        /// <summary>The environment `i` of a Reset or Step, 0 &lt;= i &lt; Count.</summary>
        public int EnvAt(int i)
        {
            tandem_work work = Native;
            if ((uint)i >= work.count) throw new ArgumentOutOfRangeException(nameof(i));
            return work.resets != null ? work.resets[i].Env : (int)work.envs[i];
        }

        /// <summary>The arrays of all environments; empty: not part of this work.</summary>
        public Span<float> Obs => Elements<float>(_arrays.Obs);

        /// <summary>Actions of all environments, [num_envs * act_size].</summary>
        public ReadOnlySpan<float> Actions => Elements<float>(_arrays.Actions);

        /// <summary>Rewards of all environments, [num_envs].</summary>
        public Span<float> Rewards => Elements<float>(_arrays.Rewards);

        /// <summary>Terminations of all environments, [num_envs]: 0 or 1.</summary>
        public Span<byte> Terminateds => Elements<byte>(_arrays.Terminateds);

        /// <summary>Truncations of all environments, [num_envs]: 0 or 1.</summary>
        public Span<byte> Truncateds => Elements<byte>(_arrays.Truncateds);

        /// <summary>float32 or float64: see the description. Empty also if the engine has no infos.</summary>
        public Span<T> Infos<T>() where T : struct
        {
            return _arrays.Infos == null ? Span<T>.Empty : Elements<T>(_arrays.Infos);
        }

        /// <summary>The row of one environment.</summary>
        public Span<float> ObsOf(int env) => Obs.Slice(env * _arrays.ObsSize, _arrays.ObsSize);

        /// <summary>An environment's actions, [act_size].</summary>
        public ReadOnlySpan<float> ActionsOf(int env) => Actions.Slice(env * _arrays.ActSize, _arrays.ActSize);

        /// <summary>Of a Call.</summary>
        public MethodId Method => (MethodId)_work.method;

        /// <summary>Of a Call: the number that Engine.Answer takes.</summary>
        public ulong CallNumber => _work.call;

        /// <summary>Of a Call: an Envelope that the library has verified.</summary>
        public ReadOnlySpan<byte> Envelope =>
            new ReadOnlySpan<byte>(Native.envelope, checked((int)Native.envelope_size));

        private Span<T> Elements<T>(RegionArray array) where T : struct
        {
            tandem_work work = Native;
            void* data = work.data == null ? null : work.data[array.Index];
            return data == null
                ? Span<T>.Empty
                : RegionArray.Elements<T>(data, array.ElementType, array.Bytes, array.Name);
        }
    }

    // The arrays of an engine, and its sizes.
    internal sealed class EngineArrays
    {
        internal readonly RegionArray Obs, Actions, Rewards, Terminateds, Truncateds, Infos;

        // Infos is null if the engine has none.
        internal EngineArrays(Func<string, RegionArray> find)
        {
            Obs = find("obs");
            Actions = find("actions");
            Rewards = find("rewards");
            Terminateds = find("terminateds");
            Truncateds = find("truncateds");
            try
            {
                Infos = find("infos");
            }
            catch (TandemException e) when (e.Code == ErrorCode.InvalidArgument)
            {
            }
        }

        internal int NumEnvs => Obs.Shape[0];

        internal int ObsSize => Obs.Shape[1];

        internal int ActSize => Actions.Shape[1];
    }
}
