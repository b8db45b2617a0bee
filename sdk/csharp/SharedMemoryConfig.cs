// Data flow: the program -> Engine.Create, SharedMemoryTransport.Create, or EngineServer.Prepare ->
// tandem_engine_options.
//
//   var config = new SharedMemoryConfig { Name = "demo", NumEnvs = 16, ObsSize = 8, ActSize = 2 };

using System;
using tandem.rpc;

namespace Tandem
{
    /// <summary>Bit i is the service i of tandem_service_name.</summary>
    [Flags]
    public enum Services
    {
        /// <summary>No service.</summary>
        None = 0,
        /// <summary>Contracts of agents.</summary>
        Agent = 1,
        /// <summary>Joints, controls and states of a model.</summary>
        Mujoco = 2,
        /// <summary>Streams of values.</summary>
        Telemetry = 4,
        /// <summary>Entities and their places.</summary>
        Scene = 8,
        /// <summary>Images.</summary>
        Camera = 16,
        /// <summary>What the engine's window shows.</summary>
        Viewport = 32,
        /// <summary>Marks that viewers draw.</summary>
        Debug = 64,
        /// <summary>Methods of the engine's own.</summary>
        Own = 128,
        /// <summary>All eight.</summary>
        All = 255
    }

    /// <summary>The sizes of an engine's region, and what the engine says about itself.</summary>
    public sealed class SharedMemoryConfig
    {
        /// <summary>Of the region: /dev/shm/NAME. null: the environment variable LUCKY_SHM_NAME, else
        /// "tandem".</summary>
        public string Name { get; set; }

        /// <summary>At most 63 bytes; null: "engine".</summary>
        public string Task { get; set; }

        /// <summary>Spaces, infos and time limit, as JSON: docs/protocol.md, "Infos and the description". null: boxes
        /// without bounds.</summary>
        public string Description { get; set; }

        /// <summary>1 or more.</summary>
        public int NumEnvs { get; set; } = 1;

        /// <summary>float32 values of an observation; 1 or more, or 0 if Fields has it.</summary>
        public int ObsSize { get; set; }
        /// <summary>float32 values of an action; 1 or more, or 0 if Fields has it.</summary>
        public int ActSize { get; set; }

        /// <summary>Observations or actions of other types and shapes: all parts of the one, or of both. Such an engine
        /// has no real time, single steps and resets by attendants.</summary>
        public Field[] Fields { get; set; } = new Field[0];

        /// <summary>Pixels of an RGB image beside each observation, which the engine writes in Work.Array("images"); 0:
        /// none.</summary>
        public int ImageWidth { get; set; }
        /// <summary>As ImageWidth.</summary>
        public int ImageHeight { get; set; }

        /// <summary>KiB of an image in each slot for requested images; 0: no slots. A caller reads an image that fits
        /// in place, and any other one as bytes. An EngineServer has a flag for it.</summary>
        public int ImageSlotKib { get; set; }

        /// <summary>What the engine has besides steps; null: nothing.</summary>
        public EngineServices EngineServices { get; set; }

        /// <summary>The size and rate of frames for viewers, if EngineServices.DrawsFrames; null: none. An EngineServer
        /// has the flag --frames.</summary>
        public FrameConfig Frames { get; set; }

        /// <summary>Arrays on a GPU; null: none.</summary>
        public GpuConfig Gpu { get; set; }

        /// <summary>Environment i starts with the seed + i. null: the library chooses.</summary>
        public ulong? Seed { get; set; }

        /// <summary>Simulated seconds of a step, finite; 0: unknown.</summary>
        public double StepSecs { get; set; }

        /// <summary>Those that answer at the start.</summary>
        public Services EnabledServices { get; set; } = Services.All;

        /// <summary>The most items per second of a service's streams, such as "camera=10,telemetry=200": each 0.001 to
        /// 1000. null: 60.</summary>
        public string StreamHz { get; set; }

        /// <summary>KiB of each of the two RPC rings: a power of two, 4 to 1048576. 0: 512.</summary>
        public int RpcRingKib { get; set; }

        /// <summary>The RPCs that the engine answers itself: RpcDispatcher.Methods.</summary>
        public MethodId[] Methods { get; set; } = new MethodId[0];

        /// <summary>The methods of the engine's own: RpcDispatcher.OwnMethods.</summary>
        public OwnMethod[] OwnMethods { get; set; } = new OwnMethod[0];

        // Fills the options; their pointers are valid until the memory's Dispose. `user`: as EngineServices.Native.
        internal unsafe void Fill(tandem_engine_options* options, UnmanagedMemory memory, void* user)
        {
            options->struct_size = (uint)sizeof(tandem_engine_options);
            options->num_envs = Positive(NumEnvs, nameof(NumEnvs));
            options->obs_size = Size(ObsSize, nameof(ObsSize));
            options->act_size = Size(ActSize, nameof(ActSize));
            options->name = memory.Text(Name);
            options->task = memory.Text(Task);
            options->description = memory.Text(Description);
            options->seed = Seed.GetValueOrDefault();
            options->has_seed = Seed.HasValue ? 1u : 0u;
            options->disabled_services = (uint)(Services.All & ~EnabledServices);
            options->step_secs = StepSecs;
            options->stream_hz = memory.Text(StreamHz);
            options->rpc_ring_kib = Count(RpcRingKib, nameof(RpcRingKib));
            options->methods = (ushort*)memory.Allocate(Methods.Length * sizeof(ushort));
            options->method_count = (uint)Methods.Length;
            for (int i = 0; i < Methods.Length; ++i) options->methods[i] = (ushort)Methods[i];
            options->fields = (tandem_field*)memory.Allocate(Fields.Length * sizeof(tandem_field));
            options->field_count = (uint)Fields.Length;
            for (int i = 0; i < Fields.Length; ++i) Fields[i].Fill(options->fields + i, memory);
            options->image_width = Count(ImageWidth, nameof(ImageWidth));
            options->image_height = Count(ImageHeight, nameof(ImageHeight));
            options->image_slot_kib = Count(ImageSlotKib, nameof(ImageSlotKib));
            if (EngineServices != null || OwnMethods.Length > 0)
            {
                options->services = (EngineServices ?? new EngineServices()).Native(OwnMethods, memory, user);
            }
            if (Gpu != null) options->gpu = Gpu.Native(memory);
            if (Frames != null) options->frames = Frames.Native(memory);
        }

        internal static uint Count(int value, string name)
        {
            if (value >= 0) return (uint)value;
            throw new TandemException(ErrorCode.InvalidArgument, name + ": expected 0 or more, found " + value);
        }

        private uint Size(int value, string name)
        {
            return Fields.Length > 0 ? Count(value, name) : Positive(value, name);
        }

        private static uint Positive(int value, string name)
        {
            if (value > 0) return (uint)value;
            throw new TandemException(ErrorCode.InvalidArgument, name + ": expected 1 or more, found " + value);
        }
    }
}
