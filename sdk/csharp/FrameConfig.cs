// Data flow: SharedMemoryConfig.Frames -> the library asks for images while a viewer is open -> work of the kind Draw.
//
//   config.EngineServices = new EngineServices { DrawsFrames = true };
//   config.Frames = new FrameConfig { Width = 320, Height = 240, Hz = 30 };

namespace Tandem
{
    /// <summary>The size and rate of frames for viewers.</summary>
    public sealed class FrameConfig
    {
        /// <summary>Pixels of one environment's image.</summary>
        public int Width { get; set; }
        /// <summary>As Width.</summary>
        public int Height { get; set; }
        /// <summary>The environments that are shown; null: the first four.</summary>
        public int[] Envs { get; set; }
        /// <summary>Frames per second, at most; 0: 60.</summary>
        public double Hz { get; set; }

        internal unsafe tandem_frames* Native(UnmanagedMemory memory)
        {
            var frames = (tandem_frames*)memory.Allocate(sizeof(tandem_frames));
            frames->struct_size = (uint)sizeof(tandem_frames);
            frames->width = SharedMemoryConfig.Count(Width, nameof(Width));
            frames->height = SharedMemoryConfig.Count(Height, nameof(Height));
            frames->hz = Hz;
            if (Envs == null) return frames;
            frames->env_count = (uint)Envs.Length;
            frames->envs = (uint*)memory.Allocate(Envs.Length * sizeof(uint));
            for (int i = 0; i < Envs.Length; ++i) frames->envs[i] = SharedMemoryConfig.Count(Envs[i], nameof(Envs));
            return frames;
        }
    }
}
