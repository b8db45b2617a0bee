// Data flow: SharedMemoryTransport.TryReceiveCommand -> the handler -> SendCommand; TryReceiveOwnCall -> the handler ->
// Engine.Answer; or a work callback -> Answer.
// Order: Register all handlers, then pass Methods and OwnMethods to the engine's SharedMemoryConfig, then Poll in each
// frame. Errors: an exception of a handler is the caller's error: a TandemException with its code, another one as
// EngineFailed.
// Threads: the engine's.
//
//   dispatcher.Register(MethodId.GetSceneInfo, request => new EnvelopeT { Payload =
//     PayloadUnion.FromGetSceneInfoResponse(new GetSceneInfoResponseT { SceneName = "yard" }) });
//   dispatcher.Register("set_weather", request => SetWeather(request));  // bytes in and out
//   dispatcher.Poll();  // once a frame

using System;
using System.Collections.Generic;
using FlatBuffers;
using tandem.rpc;

namespace Tandem
{
    /// <summary>Answers an engine's RPCs by handlers: one for each MethodId, and one for each method of the engine's
    /// own.</summary>
    public sealed class RpcDispatcher
    {
        private readonly Dictionary<MethodId, Func<Envelope, EnvelopeT>> _handlers =
            new Dictionary<MethodId, Func<Envelope, EnvelopeT>>();
        private readonly List<OwnMethod> _ownMethods = new List<OwnMethod>();
        private readonly Dictionary<string, Func<byte[], byte[]>> _ownHandlers =
            new Dictionary<string, Func<byte[], byte[]>>();

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

        /// <summary>The methods of the engine's own.</summary>
        public OwnMethod[] OwnMethods => _ownMethods.ToArray();

        /// <summary>Adds a method of the engine's own: the handler gets the request's bytes, and returns the answer's.
        /// It answers at once; an engine that answers later takes the calls by SharedMemoryTransport.TryReceiveOwnCall.
        /// `name`: 1 to 63 bytes. `help`: one line. `contentType` null: "application/octet-stream". ArgumentException:
        /// the name has a handler.</summary>
        public void Register(string name, Func<byte[], byte[]> handler, string help = null, string contentType = null)
        {
            if (handler == null) throw new ArgumentNullException(nameof(handler));
            _ownHandlers.Add(name, handler);
            _ownMethods.Add(new OwnMethod(name, help, contentType));
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
            OwnCall call;
            while (_transport.TryReceiveOwnCall(out call)) Answer(_transport.Engine, call);
        }

        /// <summary>Answers a call of an engine with a work callback. Such an engine answers at once: null is an
        /// error.</summary>
        public void Answer(Engine engine, Work call)
        {
            if (call.OwnMethod != null)
            {
                Answer(engine, new OwnCall(call));
                return;
            }
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

        private void Answer(Engine engine, OwnCall call)
        {
            byte[] answer = null;
            Exception failure = null;
            try
            {
                Func<byte[], byte[]> handler;
                if (!_ownHandlers.TryGetValue(call.Method, out handler))
                    throw new TandemException(ErrorCode.Unsupported, NoHandler(call.Method));
                answer = handler(call.Request);
                if (answer == null)
                    throw new TandemException(ErrorCode.EngineFailed, call.Method + ": expected bytes, found null");
            }
            catch (Exception e)
            {
                failure = e;
            }
            try
            {
                if (failure == null) engine.Answer(call.Number, answer);
                else engine.Refuse(call.Number, Engine.CodeOf(failure), Engine.TextOf(failure));
            }
            catch (TandemException e) when (e.Code == ErrorCode.NoStepPending)  // the caller has left
            {
            }
        }

        private static string NoHandler(string method) => method + ": this engine has no handler for it";

        private EnvelopeT AnswerTo(Envelope request)
        {
            Func<Envelope, EnvelopeT> handler;
            if (!_handlers.TryGetValue(request.Method, out handler))
            {
                return Envelopes.Error(ErrorCode.Unsupported, NoHandler(request.Method.ToString()));
            }
            try
            {
                return handler(request);
            }
            catch (Exception e)
            {
                return Envelopes.Error(Engine.CodeOf(e), Engine.TextOf(e));
            }
        }
    }
}
