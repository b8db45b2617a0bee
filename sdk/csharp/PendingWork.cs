// PendingWork: the work that a transport has taken and not yet done, and the rows of the region that belong to it.
//
// Data flow: Work -> Begin -> Write -> End. Lifetime of its spans: until End.
// Threads: the transport's.

using System;

namespace Tandem
{
    internal sealed class PendingWork
    {
        private readonly EngineArrays _arrays;
        private readonly int[] _envs;
        private readonly byte[] _resets;
        private tandem_work _work;  // its kind is None if no work is pending

        internal PendingWork(Engine engine)
        {
            _arrays = engine.Arrays;
            _envs = new int[engine.NumEnvs];
            _resets = new byte[engine.NumEnvs];
        }

        internal WorkKind Kind => (WorkKind)_work.kind;

        internal Work Work => new Work(_work, _arrays);

        internal ReadOnlySpan<int> Envs => new ReadOnlySpan<int>(_envs, 0, (int)_work.count);

        // 1 for each environment to reset.
        internal byte[] Resets => _resets;

        // Sets a step's rewards, terminateds and truncateds to 0, for engines that do not write all of them.
        internal void Begin(Work work)
        {
            _work = work.Native;
            Array.Clear(_resets, 0, _resets.Length);
            for (int i = 0; i < work.Count; ++i)
            {
                _envs[i] = work.EnvAt(i);
                if (work.Kind == WorkKind.Reset) _resets[_envs[i]] = 1;
            }
            if (work.Kind != WorkKind.Step) return;
            for (int i = 0; i < work.Count; ++i)
            {
                work.Rewards.Slice(_envs[i], 1).Clear();
                work.Terminateds.Slice(_envs[i], 1).Clear();
                work.Truncateds.Slice(_envs[i], 1).Clear();
            }
        }

        internal void End()
        {
            Require();
            _work = default(tandem_work);
        }

        internal void Require()
        {
            if (Kind != WorkKind.None) return;
            throw new TandemException(ErrorCode.NoStepPending,
                "expected work that ReadActionSeq has taken, found none; "
                + "wait until ReadActionSeq returns another number");
        }

        // Copies this work's rows, each of `size` elements, from an array of all environments.
        internal void Write<T>(ReadOnlySpan<T> from, Span<T> to, int size)
        {
            if (from.Length != to.Length)
            {
                throw new ArgumentException("expected " + to.Length + " elements, found " + from.Length);
            }
            if (Envs.Length == _envs.Length)
            {
                from.CopyTo(to);
                return;
            }
            for (int i = 0; i < Envs.Length; ++i)
            {
                from.Slice(_envs[i] * size, size).CopyTo(to.Slice(_envs[i] * size, size));
            }
        }
    }
}
