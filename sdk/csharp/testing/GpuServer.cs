// GpuServer: an engine server whose observation, a field, is on a GPU, too, by the driver in LD_LIBRARY_PATH.
//
//   mono Checks.exe Gpu --name demo --num_envs 2

using System;
using System.Runtime.InteropServices;

namespace Tandem.Testing
{
    internal sealed class GpuServer : EngineServer
    {
        private const string Driver = "libcuda.so.1";
        private const string Obs = "obs/counts";
        private const int ObsSize = 2;

        private IntPtr _context;
        private float[] _obs;  // the steps of the episode, and the last action

        [DllImport(Driver)] private static extern int cuInit(uint flags);
        [DllImport(Driver)] private static extern int cuDevicePrimaryCtxRetain(out IntPtr context, int device);
        [DllImport(Driver)] private static extern int cuCtxPushCurrent_v2(IntPtr context);
        [DllImport(Driver)] private static extern int cuCtxPopCurrent_v2(out IntPtr context);
        [DllImport(Driver)]
        private static extern int cuMemcpyHtoDAsync_v2(ulong to, float[] from, UIntPtr bytes, IntPtr stream);

        protected override void Prepare(SharedMemoryConfig config)
        {
            config.Task = "GpuCounter";
            config.Fields = new[] { new Field(Obs, ElementType.Float32, ObsSize) };
            config.ActSize = 1;
            config.Gpu = new GpuConfig();
            _obs = new float[ObsSize * config.NumEnvs];
            Check(cuInit(0));
            Check(cuDevicePrimaryCtxRetain(out _context, 0));
        }

        protected override void OnReset(Work work)
        {
            for (int i = 0; i < work.Count; ++i) Observe(work, work.EnvAt(i), 0, (work.Resets[i].Seed ?? 0) % 9973);
            Copy();
        }

        protected override void OnStep(Work work)
        {
            Span<float> rewards = work.Rewards;
            foreach (int env in work.Envs)
            {
                Observe(work, env, _obs[ObsSize * env] + 1, work.Actions[env]);
                rewards[env] = work.Actions[env];
                work.Terminateds.Slice(env, 1).Clear();
                work.Truncateds.Slice(env, 1).Clear();
            }
            Copy();
        }

        private void Observe(Work work, int env, float steps, float number)
        {
            _obs[ObsSize * env] = steps;
            _obs[ObsSize * env + 1] = number;
            _obs.AsSpan(ObsSize * env, ObsSize).CopyTo(work.ArrayOf<float>(Obs, env));
        }

        // On the legacy stream, for which clients wait.
        private void Copy()
        {
            GpuArray obs = Engine.GpuArray(Obs);
            Check(cuCtxPushCurrent_v2(_context));
            Check(cuMemcpyHtoDAsync_v2((ulong)obs.Address, _obs, (UIntPtr)(ulong)obs.Bytes, IntPtr.Zero));
            Check(cuCtxPopCurrent_v2(out _));
        }

        private static void Check(int result) => Checks.Expect(result == 0, "a call of the driver: " + result);
    }
}
