// Work: what an engine has to do, with the arrays of this work.
//
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
    public enum WorkKind
    {
        None = 0,
        Reset = 1,
        Step = 2,
        Call = 3,
        Clear = 4
    }

    // An environment to reset. With a seed, its random stream starts again from the seed; without one, it continues.
    public readonly struct ResetRequest
    {
        private readonly uint _env;
        private readonly uint _hasSeed;
        private readonly ulong _seed;

        public ResetRequest(int env, ulong? seed = null)
        {
            _env = checked((uint)env);
            _hasSeed = seed.HasValue ? 1u : 0u;
            _seed = seed.GetValueOrDefault();
        }

        public int Env => (int)_env;

        public ulong? Seed => _hasSeed != 0 ? _seed : (ulong?)null;
    }

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

        public WorkKind Kind => (WorkKind)_work.kind;

        // Environments of a Reset or Step.
        public int Count => (int)_work.count;

        // Of a Reset, else empty.
        public ReadOnlySpan<ResetRequest> Resets =>
            new ReadOnlySpan<ResetRequest>(Native.resets, Native.resets == null ? 0 : Count);

        // Of a Step, ascending; else empty.
        public ReadOnlySpan<int> Envs => new ReadOnlySpan<int>(Native.envs, Native.envs == null ? 0 : Count);

        // The environment `i` of a Reset or Step, 0 <= i < Count.
        public int EnvAt(int i)
        {
            tandem_work work = Native;
            if ((uint)i >= work.count) throw new ArgumentOutOfRangeException(nameof(i));
            return work.resets != null ? work.resets[i].Env : (int)work.envs[i];
        }

        // The arrays of all environments; empty: not part of this work.
        public Span<float> Obs => Elements<float>(_arrays.Obs);

        public ReadOnlySpan<float> Actions => Elements<float>(_arrays.Actions);

        public Span<float> Rewards => Elements<float>(_arrays.Rewards);

        public Span<byte> Terminateds => Elements<byte>(_arrays.Terminateds);

        public Span<byte> Truncateds => Elements<byte>(_arrays.Truncateds);

        // float32 or float64: see the description. Empty also if the engine has no infos.
        public Span<T> Infos<T>() where T : struct
        {
            return _arrays.Infos == null ? Span<T>.Empty : Elements<T>(_arrays.Infos);
        }

        // The row of one environment.
        public Span<float> ObsOf(int env)
        {
            return Obs.Slice(env * _arrays.ObsSize, _arrays.ObsSize);
        }

        public ReadOnlySpan<float> ActionsOf(int env)
        {
            return Actions.Slice(env * _arrays.ActSize, _arrays.ActSize);
        }

        // Of a Call.
        public MethodId Method => (MethodId)_work.method;

        // Of a Call: the number that Engine.Answer takes.
        public ulong CallNumber => _work.call;

        // Of a Call: an Envelope that the library has verified.
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
