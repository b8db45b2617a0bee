// Data flow: a caller's Rpc.CallOwn -> SharedMemoryTransport.TryReceiveOwnCall -> the engine -> Engine.Answer or
// Engine.Refuse with its Number, now or later, by the thread that serves the engine.
//
//   while (transport.TryReceiveOwnCall(out OwnCall call)) transport.Engine.Answer(call.Number, Do(call.Request));

namespace Tandem
{
    /// <summary>A call of a method of the engine's own; a copy.</summary>
    public sealed class OwnCall
    {
        internal OwnCall(Work call)
        {
            Number = call.CallNumber;
            Method = call.OwnMethod;
            Request = call.Envelope.ToArray();
        }

        /// <summary>What Engine.Answer and Engine.Refuse take.</summary>
        public ulong Number { get; private set; }
        /// <summary>The method's name.</summary>
        public string Method { get; private set; }
        /// <summary>The request's bytes.</summary>
        public byte[] Request { get; private set; }
    }
}
