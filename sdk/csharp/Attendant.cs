// Data flow: Rpc.Call -> one of the engine's four slots -> the engine's handler.
// Lifetime: Dispose leaves the slot; streams and a pause of this attendant end.
//
//   using (Attendant panel = Attendant.Attach("demo", "panel")) panel.Rpc.Call(request);

using System;

namespace Tandem
{
    /// <summary>Calls an engine's RPCs in addition to its client, such as a control GUI in another process.</summary>
    public sealed unsafe class Attendant : IDisposable
    {
        private readonly TandemHandle _handle;

        /// <summary>`label`: for people, at most 55 bytes. AlreadyAttached: all slots are taken. Other errors: as
        /// Client.Attach.</summary>
        public static Attendant Attach(string name = null, string label = null, double timeoutSecs = 10)
        {
            Native.CheckVersion();
            fixed (byte* nameBytes = Utf8.Bytes(name), labelBytes = Utf8.Bytes(label))
            {
                tandem_attendant_options options = default(tandem_attendant_options);
                options.struct_size = (uint)sizeof(tandem_attendant_options);
                options.name = nameBytes;
                options.label = labelBytes;
                options.timeout_secs = timeoutSecs;
                IntPtr attendant;
                TandemException.Check(Native.tandem_attendant_attach(&options, out attendant));
                return new Attendant(attendant);
            }
        }

        private Attendant(IntPtr attendant)
        {
            _handle = new TandemHandle(attendant, Native.tandem_attendant_close);
            Rpc = new Rpc(Native.tandem_attendant_rpc(_handle), _handle);
        }

        /// <summary>The engine's RPCs.</summary>
        public Rpc Rpc { get; private set; }

        /// <summary>Twice: no effect.</summary>
        public void Dispose() => _handle.Dispose();
    }
}
