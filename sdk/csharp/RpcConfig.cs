//   var config = new RpcConfig { SharedMemoryName = "LuckyEngine_" + pid };
//   config.Enable(Services.Camera, false);

namespace Tandem
{
    /// <summary>The region's name, the services that answer at the start, the rates of their streams, and the size of
    /// the RPC rings.</summary>
    public sealed class RpcConfig
    {
        /// <summary>null: the environment variable LUCKY_SHM_NAME, else "tandem".</summary>
        public string SharedMemoryName { get; set; }
        /// <summary>The services that answer at the start.</summary>
        public Services EnabledServices { get; set; } = Services.All;

        /// <summary>As SharedMemoryConfig's; null and 0: those of the engine's SharedMemoryConfig.</summary>
        public string StreamHz { get; set; }
        /// <summary>Size of each RPC ring, in KiB; 0: as SharedMemoryConfig's.</summary>
        public int RpcRingKib { get; set; }

        /// <summary>Adds services to EnabledServices, or removes them.</summary>
        public void Enable(Services services, bool enabled)
        {
            EnabledServices = enabled ? EnabledServices | services : EnabledServices & ~services;
        }
    }
}
