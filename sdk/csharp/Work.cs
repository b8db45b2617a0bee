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
// | Reset | Resets, ContractAt             | Obs, Infos                                                        |
// | Step  | Envs, Actions                  | Obs, Rewards, Terminateds, Truncateds, Infos                      |
// | Call  | Method, Envelope, CallNumber; OwnMethod | nothing: Engine.Answer or Engine.Refuse, now or later    |
// | Clear | nothing                        | nothing: it undoes what the last client's RPCs have changed       |
// | Draw  | Draw                           | nothing: Engine.Drawn or Engine.RefuseDraw, now or in any thread  |
//
// Array<T>(name) has the images and typed fields of the observation, and of the action.

using System;
using System.Collections.Generic;
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
        Clear = 4,
        /// <summary>To draw an image.</summary>
        Draw = 5
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

        /// <summary>An array by its name, in all environments: "images", uint8[num_envs, height, width, 3]; a field,
        /// such as "obs/image" or "action/"; and those above. Empty: not part of this work. InvalidArgument: no such
        /// array; the text lists the names. Or T is not its element type.</summary>
        public Span<T> Array<T>(string name) where T : struct => Elements<T>(_arrays.Named(name));

        /// <summary>The row of one environment in Array(name).</summary>
        public Span<T> ArrayOf<T>(string name, int env) where T : struct
        {
            Span<T> all = Array<T>(name);
            int size = all.Length / _arrays.NumEnvs;
            return all.Slice(env * size, size);
        }

        /// <summary>The contract of Resets[i]; null: it has none.</summary>
        public Contract ContractAt(int i)
        {
            tandem_work work = Native;
            if ((uint)i >= work.count) throw new ArgumentOutOfRangeException(nameof(i));
            return work.contracts == null || work.contracts[i] == null ? null : new Contract(work.contracts[i]);
        }

        /// <summary>Of a Draw.</summary>
        public DrawRequest Draw =>
            Native.draw == null ? default(DrawRequest) : new DrawRequest(_work.call, _work.draw);

        /// <summary>The row of one environment.</summary>
        public Span<float> ObsOf(int env) => Obs.Slice(env * _arrays.ObsSize, _arrays.ObsSize);

        /// <summary>An environment's actions, [act_size].</summary>
        public ReadOnlySpan<float> ActionsOf(int env) => Actions.Slice(env * _arrays.ActSize, _arrays.ActSize);

        /// <summary>Of a Call.</summary>
        public MethodId Method => (MethodId)_work.method;

        /// <summary>Of a Call: the number that Engine.Answer takes.</summary>
        public ulong CallNumber => _work.call;

        /// <summary>Of a Call of a method of the engine's own: its name; else null.</summary>
        public string OwnMethod => Utf8.Text(Native.name);

        /// <summary>Of a Call: an Envelope that the library has verified; of an OwnMethod: the request's
        /// bytes.</summary>
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
        private readonly Func<string, RegionArray> _find;
        private readonly Dictionary<string, RegionArray> _named = new Dictionary<string, RegionArray>();

        // `infos`: null if the engine has none.
        internal EngineArrays(Func<string, RegionArray> find, RegionArray infos)
        {
            _find = find;
            Obs = find("obs");
            Actions = find("actions");
            Rewards = find("rewards");
            Terminateds = find("terminateds");
            Truncateds = find("truncateds");
            Infos = infos;
        }

        // Any thread.
        internal RegionArray Named(string name)
        {
            lock (_named)
            {
                RegionArray array;
                if (!_named.TryGetValue(name, out array)) _named.Add(name, array = _find(name));
                return array;
            }
        }

        internal int NumEnvs => Obs.Shape[0];

        internal int ObsSize => Obs.Shape[1];

        internal int ActSize => Actions.Shape[1];
    }
}
