// SharedMemoryConfig: the sizes of an engine's region, and what the engine says about itself.
//
// Data flow: the program -> Engine.Create, SharedMemoryTransport.Create, or EngineServer.Prepare ->
// tandem_engine_options.
//
//   var config = new SharedMemoryConfig { Name = "demo", NumEnvs = 16, ObsSize = 8, ActSize = 2 };

using System;
using tandem.rpc;

namespace Tandem
{
    // Bit i is the service i of tandem_service_name.
    [Flags]
    public enum Services
    {
        None = 0,
        Agent = 1,
        Mujoco = 2,
        Telemetry = 4,
        Scene = 8,
        Camera = 16,
        Viewport = 32,
        Debug = 64,
        All = 127
    }

    public sealed class SharedMemoryConfig
    {
        // Of the region: /dev/shm/NAME. null: the environment variable LUCKY_SHM_NAME, else "tandem".
        public string Name { get; set; }

        // At most 63 bytes; null: "engine".
        public string Task { get; set; }

        // Spaces, infos and time limit, as JSON: docs/protocol.md, "Infos and the description". null: boxes without
        // bounds.
        public string Description { get; set; }

        // 1 or more.
        public int NumEnvs { get; set; } = 1;

        // float32 values of an observation and of an action; 1 or more.
        public int ObsSize { get; set; }
        public int ActSize { get; set; }

        // Environment i starts with the seed + i. null: the library chooses.
        public ulong? Seed { get; set; }

        // Simulated seconds of a step, finite; 0: unknown.
        public double StepSecs { get; set; }

        // Those that answer at the start.
        public Services EnabledServices { get; set; } = Services.All;

        // The most items per second of a service's streams, such as "camera=10,telemetry=200": each 0.001 to 1000.
        // null: 60.
        public string StreamHz { get; set; }

        // KiB of each of the two RPC rings: a power of two, 4 to 1048576. 0: 512.
        public int RpcRingKib { get; set; }

        // The RPCs that the engine answers itself: RpcDispatcher.Methods.
        public MethodId[] Methods { get; set; } = new MethodId[0];

        // Fills the options; their pointers are valid until the memory's Dispose.
        internal unsafe void Fill(tandem_engine_options* options, UnmanagedMemory memory)
        {
            options->struct_size = (uint)sizeof(tandem_engine_options);
            options->num_envs = Positive(NumEnvs, nameof(NumEnvs));
            options->obs_size = Positive(ObsSize, nameof(ObsSize));
            options->act_size = Positive(ActSize, nameof(ActSize));
            options->name = memory.Text(Name);
            options->task = memory.Text(Task);
            options->description = memory.Text(Description);
            options->seed = Seed.GetValueOrDefault();
            options->has_seed = Seed.HasValue ? 1u : 0u;
            options->disabled_services = (uint)(Services.All & ~EnabledServices);
            options->step_secs = StepSecs;
            options->stream_hz = memory.Text(StreamHz);
            options->rpc_ring_kib = RpcRingKib == 0 ? 0 : Positive(RpcRingKib, nameof(RpcRingKib));
            options->methods = (ushort*)memory.Allocate(Methods.Length * sizeof(ushort));
            options->method_count = (uint)Methods.Length;
            for (int i = 0; i < Methods.Length; ++i) options->methods[i] = (ushort)Methods[i];
        }

        private static uint Positive(int value, string name)
        {
            if (value > 0) return (uint)value;
            throw new TandemException(ErrorCode.InvalidArgument, name + ": expected 1 or more, found " + value);
        }
    }
}
