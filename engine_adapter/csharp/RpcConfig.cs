// RpcConfig: the region's name, and the services that answer at the start.
//
// The size of the RPC rings and the rates of streams have the library's defaults: tandem_engine_options does not have
// them.
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

        public void Enable(Services services, bool enabled)
        {
            EnabledServices = enabled ? EnabledServices | services : EnabledServices & ~services;
        }
    }
}
