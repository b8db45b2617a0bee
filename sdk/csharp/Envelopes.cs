// Envelopes: the helpers for the bytes of Envelopes (schema/messages/hazel_rpc.fbs).
//
// Two callers of an engine may use the same correlation id, so the engine numbers its calls. The transport writes that
// number into a request's correlation_id, and reads it from the answer.

using System;
using FlatBuffers;
using tandem.rpc;

namespace Tandem
{
    internal static class Envelopes
    {
        private const int CorrelationIdField = 1;  // its id in the table

        internal static EnvelopeT Error(ErrorCode code, string text)
        {
            return new EnvelopeT { ErrorCode = (ushort)code, ErrorMessage = text };
        }

        // Replaces the correlation id, which is in the bytes unless it is 0. A request's is not 0.
        internal static void SetCorrelationId(byte[] envelope, ulong number)
        {
            var buffer = new ByteBuffer(envelope);
            int table = buffer.GetInt(0);
            int vtable = table - buffer.GetInt(table);
            int entry = 4 + 2 * CorrelationIdField;
            int offset = entry < buffer.GetShort(vtable) ? buffer.GetShort(vtable + entry) : 0;
            if (offset == 0)
                throw new TandemException(ErrorCode.InvalidArgument, "correlation_id: expected a number, found 0");
            buffer.PutUlong(table + offset, number);
        }

        internal static ulong CorrelationIdOf(ReadOnlySpan<byte> envelope)
        {
            return Envelope.GetRootAsEnvelope(new ByteBuffer(envelope.ToArray())).CorrelationId;
        }

        // Answers a call with an Envelope: with its error if it has one, else with its payload.
        internal static void Send(Engine engine, ulong call, ReadOnlySpan<byte> bytes)
        {
            Envelope envelope = Envelope.GetRootAsEnvelope(new ByteBuffer(bytes.ToArray()));
            if (envelope.ErrorCode == 0)
            {
                engine.Answer(call, bytes);
            }
            else
            {
                engine.Refuse(call, (ErrorCode)envelope.ErrorCode, envelope.ErrorMessage);
            }
        }
    }
}
