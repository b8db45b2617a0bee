// Data flow: SharedMemoryTransport.TryReceiveCommand -> the handler -> SendCommand; or a work callback -> Answer.
// Order: Register all handlers, then pass Methods to the engine's SharedMemoryConfig, then Poll in each frame. Errors:
// an exception of a handler is the caller's error: a TandemException with its code, another one as EngineFailed.
// Threads: the engine's.
//
//   dispatcher.Register(MethodId.GetSceneInfo, request => new EnvelopeT { Payload =
//     PayloadUnion.FromGetSceneInfoResponse(new GetSceneInfoResponseT { SceneName = "yard" }) });
//   dispatcher.Poll();  // once a frame

using System;
using System.Collections.Generic;
using FlatBuffers;
using tandem.rpc;

namespace Tandem
{
    /// <summary>Answers an engine's RPCs by handlers, one for each MethodId.</summary>
    public sealed class RpcDispatcher
    {
        private readonly Dictionary<MethodId, Func<Envelope, EnvelopeT>> _handlers =
            new Dictionary<MethodId, Func<Envelope, EnvelopeT>>();

        private SharedMemoryTransport _transport;

        /// <summary>What Poll takes calls from.</summary>
        public SharedMemoryTransport Transport
        {
            get { return _transport; }
            set
            {
                _transport = value;
                if (value != null) value.AnswerCommands = Poll;
            }
        }

        /// <summary>The methods with a handler.</summary>
        public MethodId[] Methods
        {
            get
            {
                var methods = new MethodId[_handlers.Count];
                _handlers.Keys.CopyTo(methods, 0);
                return methods;
            }
        }

        /// <summary>The handler returns an Envelope with the method's answer. null: it answers later, by
        /// SharedMemoryTransport.SendCommand with the request's correlation id.</summary>
        public void Register(MethodId method, Func<Envelope, EnvelopeT> handler)
        {
            if (handler == null) throw new ArgumentNullException(nameof(handler));
            _handlers[method] = handler;
        }

        /// <summary>Answers the calls that have arrived. Does not block.</summary>
        public void Poll()
        {
            if (_transport == null) return;
            ArraySegment<byte> command;
            while (_transport.TryReceiveCommand(out command))
            {
                Envelope request = Envelope.GetRootAsEnvelope(new ByteBuffer(command.Array, command.Offset));
                Deliver(request, AnswerTo(request), answer => _transport.SendCommand(answer));
            }
        }

        /// <summary>Answers a call of an engine with a work callback. Such an engine answers at once: null is an
        /// error.</summary>
        public void Answer(Engine engine, Work call)
        {
            Envelope request = Envelope.GetRootAsEnvelope(new ByteBuffer(call.Envelope.ToArray()));
            EnvelopeT answer = AnswerTo(request)
                ?? Envelopes.Error(ErrorCode.EngineFailed,
                    request.Method + ": expected an answer of its handler, found null");
            ulong number = call.CallNumber;
            Deliver(request, answer, bytes => Envelopes.Send(engine, number, bytes));
        }

        private static void Deliver(Envelope request, EnvelopeT answer, Action<byte[]> send)
        {
            if (answer == null) return;
            answer.CorrelationId = request.CorrelationId;
            try
            {
                send(answer.SerializeToBinary());
            }
            catch (TandemException e) when (e.Code == ErrorCode.InvalidArgument || e.Code == ErrorCode.MessageTooLarge)
            {
                ErrorCode code = e.Code == ErrorCode.InvalidArgument ? ErrorCode.EngineFailed : e.Code;
                answer = Envelopes.Error(code, request.Method + ": its handler's answer: " + e.Text);
                answer.CorrelationId = request.CorrelationId;
                send(answer.SerializeToBinary());
            }
            catch (TandemException e) when (e.Code == ErrorCode.NoStepPending)  // the caller has left
            {
            }
        }

        private EnvelopeT AnswerTo(Envelope request)
        {
            Func<Envelope, EnvelopeT> handler;
            if (!_handlers.TryGetValue(request.Method, out handler))
            {
                return Envelopes.Error(ErrorCode.Unsupported, request.Method + ": this engine has no handler for it");
            }
            try
            {
                return handler(request);
            }
            catch (TandemException e) when (e.Code != ErrorCode.Ok)
            {
                return Envelopes.Error(e.Code, e.Text);
            }
            catch (Exception e)
            {
                return Envelopes.Error(ErrorCode.EngineFailed, Engine.TextOf(e));
            }
        }
    }
}
