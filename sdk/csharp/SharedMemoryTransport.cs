// It is an Engine with Next and Done, under the names of the LuckyEngine plan. One piece of work is pending at a time:
// a reset of some environments, or a step of some.
//
// Data flow: client -> ReadActionSeq or SpinWaitForAction take work -> ReadActions -> the engine's frames ->
// WriteObservations, WriteRewards, WriteDones -> IncrementFrameSeq -> client.
//
// | the plan's word | here                                                                                        |
// |-----------------|---------------------------------------------------------------------------------------------|
// | action_seq      | the number of pieces of work taken so far; the first one resets all environments            |
// | frame_seq       | the number of pieces of work done so far; equal to action_seq if none is pending            |
// | reset flags     | GetResetsSpan: 1 for each environment that the pending work resets; else the work is a step |
// | dones           | terminateds; WriteTruncateds for episodes that a time limit ends                            |
// | command ring    | the RPCs that the engine answers itself; the library answers all others                     |
// | CaptureBridge   | Captures: the images that callers wait for                                                  |
//
// Writes copy only the rows of the pending work. The buffers are arrays on the heap, and a write is one copy (section
// 3.3 of the plan, option A). Before a step the library's rewards, terminateds and truncateds are set to 0.
// Threads: one, except Engine's members that any thread may call.
// Errors: TandemException(NoStepPending) of methods that need pending work; InvalidOperationException before Create.
//
//   transport.Create(config);
//   float[] obs = transport.GetObservationBuffer(n, 8), actions = transport.GetActionBuffer(n, 2);
//   long seen = 0;
//   while (!transport.Engine.IsStopping) {  // once a frame
//     dispatcher.Poll();
//     if (transport.ReadActionSeq() == seen) continue;
//     seen = transport.ReadActionSeq();
//     transport.ReadActions(actions);
//     Simulate(transport.GetResetsSpan(), actions, obs);
//     transport.WriteObservations(obs);
//     transport.IncrementFrameSeq();
//   }

using System;
using System.Collections.Generic;
using System.Threading;

namespace Tandem
{
    /// <summary>An engine's side of the shared memory, for an engine with a frame loop of its own.</summary>
    public sealed class SharedMemoryTransport : IDisposable
    {
        private static SharedMemoryTransport s_instance;

        private readonly Queue<byte[]> _commands = new Queue<byte[]>();
        private readonly Queue<OwnCall> _ownCalls = new Queue<OwnCall>();
        private readonly bool _borrowed;
        private PendingWork _pending;
        private CaptureBridge _captures;
        private long _actionSeq;

        /// <summary>Makes a transport without a region.</summary>
        public SharedMemoryTransport() { }

        private SharedMemoryTransport(Engine engine)
        {
            _borrowed = true;
            Use(engine);
        }

        /// <summary>The first transport of this process that was created and not yet disposed; null: none.</summary>
        public static SharedMemoryTransport Instance => Volatile.Read(ref s_instance);
        /// <summary>Whether there is an Instance.</summary>
        public static bool IsActive => Instance != null;

        /// <summary>The engine below; null before Create.</summary>
        public Engine Engine { get; private set; }

        /// <summary>What the pending work is; None: nothing is pending.</summary>
        public WorkKind PendingKind => Pending.Kind;

        /// <summary>The environments of the pending work.</summary>
        public ReadOnlySpan<int> PendingEnvs => Pending.Envs;

        /// <summary>The number of pieces of work done so far.</summary>
        public long FrameSeq => PendingKind == WorkKind.None ? _actionSeq : _actionSeq - 1;

        /// <summary>The pending work, for seeds, contracts and arrays by name.</summary>
        public Work PendingWork => Pending.Work;

        /// <summary>The images that callers wait for.</summary>
        public CaptureBridge Captures => _captures ?? throw NotCreated();

        /// <summary>Called when what the last client's RPCs have changed is to be undone. An exception goes to standard
        /// error; the other handlers are called.</summary>
        public event Action ClientCleared;

        // Called for commands that arrive while SpinWaitForAction waits; RpcDispatcher sets it.
        internal Action AnswerCommands { get; set; }

        /// <summary>Makes the region. Errors: as Engine.Create. InvalidOperationException: it was called
        /// already.</summary>
        public void Create(SharedMemoryConfig config)
        {
            if (Engine != null) throw new InvalidOperationException("a transport creates one region");
            Use(Engine.Create(config));
        }

        /// <summary>The transport of an EngineServer's Loop. Its Dispose leaves the engine open.</summary>
        public static SharedMemoryTransport Over(Engine engine) => new SharedMemoryTransport(engine);

        /// <summary>Arrays on the heap, for WriteObservations and ReadActions. ArgumentException: other sizes than the
        /// region's.</summary>
        public float[] GetObservationBuffer(int numEnvs, int obsSize) => Buffer(numEnvs, obsSize, Opened.ObsSize);
        /// <summary>An array for ReadActions, [numEnvs * actSize].</summary>
        public float[] GetActionBuffer(int numEnvs, int actSize) => Buffer(numEnvs, actSize, Opened.ActSize);

        /// <summary>Ends the pending work: its results are the client's.</summary>
        public void IncrementFrameSeq() => Finish(null);

        /// <summary>Ends the pending work without results; the client gets EngineFailed with this text.</summary>
        public void FailFrame(string text) => Finish(text ?? "");

        /// <summary>Takes work if none is pending, and returns the number of pieces of work taken so far. Does not
        /// block.</summary>
        public long ReadActionSeq()
        {
            Take(0);
            return _actionSeq;
        }

        /// <summary>Blocks until ReadActionSeq() &gt;= expectedSeq, or until the engine stops. Answers commands by the
        /// dispatcher meanwhile; without one, it also returns when a command arrives. TandemException(StepPending):
        /// work with a lower number is pending.</summary>
        public void SpinWaitForAction(long expectedSeq) => WaitForAction(expectedSeq, double.PositiveInfinity);

        /// <summary>The same with a limit of the wait. false: not reached.</summary>
        public bool WaitForAction(long expectedSeq, double timeoutSecs)
        {
            if (PendingKind != WorkKind.None && expectedSeq > _actionSeq)
            {
                throw new TandemException(ErrorCode.StepPending,
                    "expected no pending work, found a " + PendingKind + "; call IncrementFrameSeq first");
            }
            int start = Environment.TickCount;
            double left = timeoutSecs;
            while (true)
            {
                Take(Math.Max(left, 0));
                if (HasCalls && AnswerCommands != null) AnswerCommands();
                if (_actionSeq >= expectedSeq) return true;
                left = timeoutSecs - unchecked(Environment.TickCount - start) / 1000.0;
                // Commands without a dispatcher wait for TryReceiveCommand.
                if (Engine.IsStopping || left <= 0 || HasCalls) return false;
            }
        }

        /// <summary>Memory of the pending step: one reward for each environment.</summary>
        public Span<float> GetRewardsSpan() => StepArray(PendingWork.Rewards);

        /// <summary>1: the episode terminates in this step.</summary>
        public Span<byte> GetDonesSpan() => StepArray(PendingWork.Terminateds);

        /// <summary>1: a time limit ends the episode.</summary>
        public Span<byte> GetTruncatedsSpan() => StepArray(PendingWork.Truncateds);

        /// <summary>1 for each environment that the pending work resets. On the heap; valid until the work is
        /// done.</summary>
        public Span<byte> GetResetsSpan()
        {
            Pending.Require();
            return Pending.Resets;
        }

        /// <summary>Copies the rows of the pending work from an array of all environments.</summary>
        public void WriteObservations(ReadOnlySpan<float> observations)
        {
            Pending.Require();
            Pending.Write(observations, PendingWork.Obs, Engine.ObsSize);
        }

        /// <summary>The same. No effect in a reset, which has neither rewards nor dones.</summary>
        public void WriteRewards(ReadOnlySpan<float> rewards)
        {
            Pending.Require();
            if (PendingKind == WorkKind.Step) Pending.Write(rewards, PendingWork.Rewards, 1);
        }

        /// <summary>Writes the terminations, [NumEnvs]: 0 or 1.</summary>
        public void WriteDones(ReadOnlySpan<byte> dones)
        {
            Pending.Require();
            if (PendingKind == WorkKind.Step) Pending.Write(dones, PendingWork.Terminateds, 1);
        }

        /// <summary>Writes the truncations, [NumEnvs]: 0 or 1.</summary>
        public void WriteTruncateds(ReadOnlySpan<byte> truncateds)
        {
            Pending.Require();
            if (PendingKind == WorkKind.Step) Pending.Write(truncateds, PendingWork.Truncateds, 1);
        }

        /// <summary>Copies the rows of the pending work into an array by its name: "infos", "images", a field such as
        /// "obs/image". No effect if the array is not part of the work. Errors: as Work.Array; ArgumentException:
        /// another number of elements.</summary>
        public void WriteArray<T>(string name, ReadOnlySpan<T> values) where T : struct
        {
            Pending.Require();
            Span<T> array = PendingWork.Array<T>(name);
            if (!array.IsEmpty) Pending.Write(values, array, array.Length / Engine.NumEnvs);
        }

        /// <summary>Copies the actions of all environments; 0 in a reset. They are the client's: any values, unless it
        /// is ours.</summary>
        public void ReadActions(Span<float> actions)
        {
            Pending.Require();
            if (PendingKind == WorkKind.Reset)
            {
                actions.Clear();
            }
            else
            {
                PendingWork.Actions.CopyTo(actions);
            }
        }

        /// <summary>Gives a call of one of SharedMemoryConfig.Methods: an Envelope. Does not block.</summary>
        public bool TryReceiveCommand(out ArraySegment<byte> envelope)
        {
            if (_commands.Count == 0) Take(0);
            envelope = _commands.Count == 0 ? default(ArraySegment<byte>) : new ArraySegment<byte>(_commands.Dequeue());
            return envelope.Array != null;
        }

        /// <summary>Gives a call of a method of the engine's own: bytes. Does not block.</summary>
        public bool TryReceiveOwnCall(out OwnCall call)
        {
            if (_ownCalls.Count == 0) Take(0);
            call = _ownCalls.Count == 0 ? null : _ownCalls.Dequeue();
            return call != null;
        }

        /// <summary>Answers a call, now or later: an Envelope with the correlation id of the request, and an answer or
        /// an error. Errors: InvalidArgument (another payload; the call is unanswered), NoStepPending (answered
        /// already, or its caller has left).</summary>
        public void SendCommand(ReadOnlySpan<byte> flatBufferEnvelope)
        {
            Envelopes.Send(Engine, Envelopes.CorrelationIdOf(flatBufferEnvelope), flatBufferEnvelope);
        }

        /// <summary>Removes the region; the client gets PeerGone. Twice: no effect.</summary>
        public void Dispose()
        {
            Interlocked.CompareExchange(ref s_instance, null, this);
            if (Engine != null && !_borrowed) Engine.Dispose();
        }

        private void Use(Engine engine)
        {
            Engine = engine;
            _pending = new PendingWork(engine);
            _captures = new CaptureBridge(engine);
            Interlocked.CompareExchange(ref s_instance, this, null);
        }

        private Engine Opened => Engine ?? throw NotCreated();
        private PendingWork Pending => _pending ?? throw NotCreated();

        private bool HasCalls => _commands.Count + _ownCalls.Count > 0;

        private static Exception NotCreated() => new InvalidOperationException("call Create first");

        // A failure must end neither the engine's loop nor the other handlers.
        private void Clear()
        {
            foreach (Action handler in ClientCleared?.GetInvocationList() ?? Array.Empty<Delegate>())
            {
                try
                {
                    handler();
                }
                catch (Exception e)
                {
                    Engine.SayFailed(nameof(ClientCleared), e);
                }
            }
        }

        // Takes commands and work until there is work, or until there is no more. The library gives only commands while
        // work is pending.
        private void Take(double timeoutSecs)
        {
            while (true)
            {
                Work next = Opened.Next(timeoutSecs);
                switch (next.Kind)
                {
                    case WorkKind.None:
                        return;
                    case WorkKind.Call:
                        AddCall(next);
                        break;
                    case WorkKind.Clear:
                        Clear();
                        break;
                    case WorkKind.Draw:
                        _captures.Add(next.Draw);
                        break;
                    default:
                        Pending.Begin(next);
                        ++_actionSeq;
                        return;
                }
                timeoutSecs = 0;
            }
        }

        private void AddCall(Work call)
        {
            if (call.OwnMethod != null)
            {
                _ownCalls.Enqueue(new OwnCall(call));
                return;
            }
            byte[] command = call.Envelope.ToArray();
            Envelopes.SetCorrelationId(command, call.CallNumber);
            _commands.Enqueue(command);
        }

        private void Finish(string failure)
        {
            Pending.End();
            Engine.Done(failure);
        }

        private Span<T> StepArray<T>(Span<T> array)
        {
            if (PendingKind == WorkKind.Step) return array;
            throw new TandemException(ErrorCode.NoStepPending, "expected a pending step, found " + PendingKind
                + "; only steps have rewards and dones");
        }

        private float[] Buffer(int numEnvs, int size, int expected)
        {
            if (numEnvs == Engine.NumEnvs && size == expected) return new float[numEnvs * size];
            throw new ArgumentException("expected " + Engine.NumEnvs + " environments of " + expected
                + " numbers, found " + numEnvs + " of " + size);
        }
    }
}
