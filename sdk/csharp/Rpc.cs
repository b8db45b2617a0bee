// Rpc: the RPCs of a client or an attendant. RpcStream: an open stream of answers.
//
// Data flow: EnvelopeT -> Call -> the engine's handler -> EnvelopeT.
// Threads: any number at a time, also while another thread steps.
// Lifetime: until the Dispose of its client or attendant; then ObjectDisposedException, or ClientClosed in a call that
// waits.
//
//   EnvelopeT answer = client.Rpc.Call(new EnvelopeT {
//     Method = MethodId.GetSceneInfo, Payload = PayloadUnion.FromGetSceneInfoRequest(new GetSceneInfoRequestT()) });
//   Console.WriteLine(answer.Payload.AsGetSceneInfoResponse().SceneName);

using System;
using System.Runtime.InteropServices;
using tandem.rpc;

namespace Tandem
{
    /// <summary>The RPCs of a client or an attendant.</summary>
    public sealed unsafe class Rpc
    {
        private readonly IntPtr _rpc;
        private readonly TandemHandle _owner;

        internal Rpc(IntPtr rpc, TandemHandle owner)
        {
            _rpc = rpc;
            _owner = owner;
        }

        /// <summary>Calls a method that answers once, and blocks until the answer. `request` has the method and its
        /// payload; its correlation id is ignored. Errors: the engine's; StepTimeout, PeerGone, ClientClosed;
        /// MessageTooLarge (the request or its answer); InvalidArgument (such as a method that answers with a
        /// stream).</summary>
        public EnvelopeT Call(EnvelopeT request, double timeoutSecs = 10)
        {
            return EnvelopeT.DeserializeFromBinary(Call(request.SerializeToBinary(), timeoutSecs));
        }

        /// <summary>The same with the bytes of Envelopes.</summary>
        public byte[] Call(ReadOnlySpan<byte> request, double timeoutSecs = 10)
        {
            _owner.ThrowIfClosed(nameof(Rpc));
            fixed (byte* bytes = &MemoryMarshal.GetReference(request))
            {
                IntPtr answer;
                ulong size;
                TandemException.Check(
                    Native.tandem_rpc_call(_rpc, bytes, (ulong)request.Length, timeoutSecs, out answer, out size));
                return Taken(answer, size);
            }
        }

        /// <summary>Calls a method of the engine's own, by its name, and blocks until the answer's bytes. Errors: as
        /// Call; InvalidArgument: no method has the name, and the text lists them. Unsupported: the engine has
        /// none.</summary>
        public byte[] CallOwn(string name, ReadOnlySpan<byte> request, double timeoutSecs = 10)
        {
            _owner.ThrowIfClosed(nameof(Rpc));
            fixed (byte* bytes = &MemoryMarshal.GetReference(request))
            {
                IntPtr answer;
                ulong size;
                TandemException.Check(Native.tandem_rpc_call_own(_rpc, Utf8.Bytes(name), bytes, (ulong)request.Length,
                    timeoutSecs, out answer, out size));
                return Taken(answer, size);
            }
        }

        /// <summary>Opens a stream: a method whose name begins with Stream. Does not wait; errors of the engine come
        /// with the first item. InvalidArgument: the method answers once; use Call.</summary>
        public RpcStream Open(EnvelopeT request)
        {
            _owner.ThrowIfClosed(nameof(Rpc));
            byte[] bytes = request.SerializeToBinary();
            ulong stream;
            fixed (byte* first = bytes)
            {
                TandemException.Check(Native.tandem_rpc_open(_rpc, first, (ulong)bytes.Length, out stream));
            }
            return new RpcStream(this, stream);
        }

        internal byte[] Next(ulong stream, double timeoutSecs)
        {
            _owner.ThrowIfClosed(nameof(Rpc));
            IntPtr item;
            ulong size;
            TandemException.Check(Native.tandem_rpc_next(_rpc, stream, timeoutSecs, out item, out size));
            return item == IntPtr.Zero ? null : Taken(item, size);
        }

        // Has no effect if the client has left.
        internal void Close(ulong stream)
        {
            if (!_owner.IsClosed) Native.tandem_rpc_close(_rpc, stream);
        }

        private static byte[] Taken(IntPtr memory, ulong size)
        {
            try
            {
                return new ReadOnlySpan<byte>((void*)memory, checked((int)size)).ToArray();
            }
            finally
            {
                Native.tandem_free((void*)memory);
            }
        }
    }

    /// <summary>Threads: one at a time.</summary>
    public sealed class RpcStream : IDisposable
    {
        private readonly Rpc _rpc;
        private readonly ulong _stream;

        internal RpcStream(Rpc rpc, ulong stream)
        {
            _rpc = rpc;
            _stream = stream;
        }

        /// <summary>Waits for the next item. null: the stream has ended. StepTimeout: it is still open.</summary>
        public EnvelopeT Next(double timeoutSecs = 10)
        {
            byte[] item = _rpc.Next(_stream, timeoutSecs);
            return item == null ? null : EnvelopeT.DeserializeFromBinary(item);
        }

        /// <summary>Ends the stream at the engine, too. Twice: no effect.</summary>
        public void Dispose() => _rpc.Close(_stream);
    }
}
