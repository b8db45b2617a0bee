// Data flow: Start -> SharedMemoryTransport; Poll, once a frame: RPCs -> handlers, and posted work.
//
// | state   | legal                                        | next state |
// |---------|----------------------------------------------|------------|
// | stopped | Dispatcher.Register, Start, Stop             | running    |
// | running | Poll, Transport, Stop                        | stopped    |
//
// Threads: the engine's main thread; MainThread.Post: any.
//
//   host.Dispatcher.Register(MethodId.GetSceneInfo, DescribeScene);
//   host.Start(sizes, new RpcConfig { SharedMemoryName = "demo" });
//   while (running) { host.Poll(); Frame(host.Transport); }
//   host.Stop();

using System;

namespace Tandem
{
    /// <summary>A transport, a dispatcher and a main-thread queue, for an engine that starts and stops
    /// serving.</summary>
    public sealed class RpcHost : IDisposable
    {
        /// <summary>The handlers of the engine's RPCs.</summary>
        public RpcDispatcher Dispatcher { get; } = new RpcDispatcher();
        /// <summary>The handlers of the engine's RPCs.</summary>
        public RpcMainThreadDispatcher MainThread { get; } = new RpcMainThreadDispatcher();

        /// <summary>null while stopped.</summary>
        public SharedMemoryTransport Transport { get; private set; }

        /// <summary>Whether there is a transport.</summary>
        public bool IsRunning => Transport != null;

        /// <summary>Makes the region, with the sizes of `engine`, and what `rpc` sets. Errors: as Engine.Create;
        /// the host is then stopped. InvalidOperationException: it is running.</summary>
        public void Start(SharedMemoryConfig engine, RpcConfig rpc)
        {
            if (IsRunning) throw new InvalidOperationException("the host is running; call Stop first");
            engine.Name = rpc.SharedMemoryName ?? engine.Name;
            engine.EnabledServices = rpc.EnabledServices;
            engine.StreamHz = rpc.StreamHz ?? engine.StreamHz;
            if (rpc.RpcRingKib != 0) engine.RpcRingKib = rpc.RpcRingKib;
            engine.Methods = Dispatcher.Methods;
            engine.OwnMethods = Dispatcher.OwnMethods;
            var transport = new SharedMemoryTransport();
            transport.Create(engine);
            Transport = transport;
            Dispatcher.Transport = transport;
            EditorRpcApi.Host = this;
        }

        /// <summary>Once a frame. Does not block.</summary>
        public void Poll()
        {
            Dispatcher.Poll();
            MainThread.Pump();
        }

        /// <summary>Removes the region. No effect while stopped.</summary>
        public void Stop()
        {
            if (!IsRunning) return;
            if (EditorRpcApi.Host == this) EditorRpcApi.Host = null;
            Dispatcher.Transport = null;
            Transport.Dispose();
            Transport = null;
        }

        /// <summary>As Stop.</summary>
        public void Dispose() => Stop();
    }
}
