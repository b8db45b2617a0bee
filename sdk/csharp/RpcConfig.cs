// RpcConfig: the region's name, the services that answer at the start, the rates of their streams, and the size of the
// RPC rings.
//
//   var config = new RpcConfig { SharedMemoryName = "LuckyEngine_" + pid };
//   config.Enable(Services.Camera, false);

namespace Tandem
{
    public sealed class RpcConfig
    {
        // null: the environment variable LUCKY_SHM_NAME, else "tandem".
        public string SharedMemoryName { get; set; }
        public Services EnabledServices { get; set; } = Services.All;

        // As SharedMemoryConfig's; null and 0: those of the engine's SharedMemoryConfig.
        public string StreamHz { get; set; }
        public int RpcRingKib { get; set; }

        public void Enable(Services services, bool enabled)
        {
            EnabledServices = enabled ? EnabledServices | services : EnabledServices & ~services;
        }
    }
}
