// Data flow: a client -> the region -> Next, or the work callback -> the program -> Done -> the client.
// Calls: either Next and Done, from the engine's own loop; or a callback, and Run or Poll.
//
// | state    | legal                                          | next state                            |
// |----------|------------------------------------------------|---------------------------------------|
// | idle     | Next, Poll, Run                                | working after a Reset or Step of Next |
// | working  | Next (it returns only calls), Done             | idle after Done                       |
// | disposed | Dispose; the rest throws ObjectDisposedException | disposed                            |
//
// Answer, Refuse, Array, Status, Enable and Stop are legal in all states but the last, and in the callback.
// Threads: one at a time, except Array, Status, Enable, Stop, IsStopping and Dispose: any, at any time.
// Blocking: Run; Next up to its timeout; nothing else.
//
//   using (Engine engine = Engine.Create(config))
//     while (true) {
//       Work work = engine.Next(1);
//       if (work.Kind == WorkKind.Step || work.Kind == WorkKind.Reset) { Simulate(work); engine.Done(); }
//     }

using System;
using System.Runtime.InteropServices;
using tandem.rpc;

namespace Tandem
{
    /// <summary>Does the work. An exception fails it with the exception's text; it does not reach the
    /// library.</summary>
    public delegate void WorkHandler(Work work);

    /// <summary>The functions of tandem.h for engines, as an object.</summary>
    public sealed unsafe class Engine : IDisposable, IRegionOwner
    {
        private readonly TandemHandle _handle;
        private readonly WorkHandler _work;
        private readonly Action<string> _log;
        private EngineArrays _arrays;

        /// <summary>Makes an engine and its region. The first work resets every environment; then clients can attach.
        /// `log` gets events for people; it needs `work`. Errors: InvalidArgument, AlreadyAttached (the name is in
        /// use), OutOfSharedMemory, AccessDenied.</summary>
        public static Engine Create(SharedMemoryConfig config, WorkHandler work = null, Action<string> log = null)
        {
            Native.CheckVersion();
            return new Engine(config, work, log);
        }

        private Engine(SharedMemoryConfig config, WorkHandler work, Action<string> log)
        {
            _work = work;
            _log = log;
            // Weak: the callbacks come only inside of Run and Poll, which keep this object alive.
            GCHandle self = GCHandle.Alloc(this, GCHandleType.Weak);
            try
            {
                using (var memory = new UnmanagedMemory())
                {
                    tandem_engine_options options = default(tandem_engine_options);
                    config.Fill(&options, memory);
                    tandem_callbacks callbacks = EngineCallbacks.For(self, log != null);
                    IntPtr engine;
                    TandemException.Check(
                        Native.tandem_engine_create(&options, work == null ? null : &callbacks, out engine));
                    _handle = new TandemHandle(engine, handle =>
                    {
                        int code = Native.tandem_engine_destroy(handle);
                        self.Free();
                        return code;
                    });
                }
            }
            catch
            {
                self.Free();
                throw;
            }
            _arrays = new EngineArrays(Array);
        }

        // The engine of tandem_serve, which closes it.
        internal Engine(IntPtr borrowed, WorkHandler work)
        {
            _handle = new TandemHandle(borrowed, handle => 0);
            _work = work;
            _arrays = new EngineArrays(Array);
        }

        /// <summary>The number of environments.</summary>
        public int NumEnvs => _arrays.NumEnvs;

        /// <summary>Values of an environment's observation.</summary>
        public int ObsSize => _arrays.ObsSize;

        /// <summary>Values of an environment's action.</summary>
        public int ActSize => _arrays.ActSize;

        internal EngineArrays Arrays => _arrays;

        int IRegionOwner.MappingNumber
        {
            get
            {
                _handle.ThrowIfClosed(nameof(Engine));
                return 0;
            }
        }

        /// <summary>Finds an array: "obs", "actions", "rewards", "terminateds", "truncateds", "infos".</summary>
        public RegionArray Array(string name)
        {
            tandem_array array = default(tandem_array);
            array.struct_size = (uint)sizeof(tandem_array);
            TandemException.Check(Native.tandem_engine_array(_handle, Utf8.Bytes(name), &array));
            return new RegionArray(name, ref array, this);
        }

        /// <summary>With a callback: serves clients until Stop. Errors: that of the first reset, or of the region's
        /// opening.</summary>
        public void Run()
        {
            TandemException.Check(Native.tandem_engine_run(_handle));
            GC.KeepAlive(this);
        }

        /// <summary>With a callback: serves what is pending. false: there was nothing. Errors: as Run.</summary>
        public bool Poll()
        {
            int served;
            TandemException.Check(Native.tandem_engine_poll(_handle, out served));
            GC.KeepAlive(this);
            return served != 0;
        }

        /// <summary>Waits for work. Its kind is None if there is none in time, after Stop, or if a signal handler ran
        /// (Mono's collector uses signals). Errors: as Run.</summary>
        public Work Next(double timeoutSecs = 0)
        {
            tandem_work work = default(tandem_work);
            work.struct_size = (uint)sizeof(tandem_work);
            TandemException.Check(Native.tandem_engine_next(_handle, timeoutSecs, &work));
            return new Work(work, _arrays);
        }

        /// <summary>Ends the Reset or Step of Next. With a failure, the client gets EngineFailed with its
        /// text.</summary>
        public void Done(string failure = null)
        {
            TandemException.Check(Native.tandem_engine_done(_handle, Utf8.Bytes(failure)));
        }

        /// <summary>Answers a Call with an Envelope that has the method's answer. Errors: InvalidArgument (no such
        /// Envelope; the call is unanswered), NoStepPending (it was answered or cancelled, or its caller has left),
        /// ConcurrentUse (another thread is inside a call, such as Run: post the answer to a loop of your own with Next
        /// or Poll).</summary>
        public void Answer(ulong call, ReadOnlySpan<byte> envelope)
        {
            fixed (byte* bytes = &MemoryMarshal.GetReference(envelope))
            {
                TandemException.Check(Native.tandem_engine_answer(_handle, call, bytes, (ulong)envelope.Length));
            }
        }

        /// <summary>Answers a Call with an error. Errors: NoStepPending, as Answer.</summary>
        public void Refuse(ulong call, ErrorCode code, string text)
        {
            TandemException.Check(Native.tandem_engine_refuse(_handle, call, (int)code, Utf8.Bytes(text ?? "")));
        }

        /// <summary>Ends Run and Next's wait; then there is no more work.</summary>
        public void Stop() => TandemException.Check(Native.tandem_engine_stop(_handle));

        /// <summary>true after Stop, or after Dispose.</summary>
        public bool IsStopping => _handle.IsClosed || Native.tandem_engine_stopping(_handle) != 0;

        /// <summary>Switches a service for all callers, such as "camera". Unsupported: the engine does not have the
        /// service.</summary>
        public void Enable(string service, bool enabled)
        {
            TandemException.Check(Native.tandem_engine_enable(_handle, Utf8.Bytes(service), enabled ? 1 : 0));
        }

        /// <summary>Makes a system call.</summary>
        public EngineStatus Status
        {
            get
            {
                tandem_status status = default(tandem_status);
                status.struct_size = (uint)sizeof(tandem_status);
                TandemException.Check(Native.tandem_engine_status(_handle, &status));
                return new EngineStatus(ref status);
            }
        }

        /// <summary>Stops the engine and removes its region; clients get PeerGone. If a call is in progress, also in
        /// the callback that calls this, the region is removed at the end of that call. Twice: no effect.</summary>
        public void Dispose()
        {
            if (_handle.IsClosed) return;
            try
            {
                Native.tandem_engine_stop(_handle);
            }
            catch (ObjectDisposedException)  // by another thread
            {
            }
            _handle.Dispose();
        }

        // For EngineCallbacks. Returns what the callback returns to the library, and never throws.
        internal int Called(tandem_work* work)
        {
            try
            {
                _work(new Work(*work, _arrays));
                return 0;
            }
            catch (Exception e)
            {
                return Fail(work, e);
            }
        }

        internal void Logged(string line) => _log(line);

        private int Fail(tandem_work* work, Exception error)
        {
            try
            {
                byte[] text = Utf8.Bytes(TextOf(error).Replace('\0', ' '));
                if (work->kind == (uint)WorkKind.Call)
                {
                    var known = error as TandemException;
                    int code = (int)(known != null && known.Code != ErrorCode.Ok ? known.Code : ErrorCode.EngineFailed);
                    Native.tandem_engine_refuse(_handle, work->call, code, text);
                }
                else
                {
                    Native.tandem_engine_fail(_handle, text);
                }
            }
            catch (Exception)  // such as no memory; then the failure has no text
            {
            }
            return 1;
        }

        internal static string TextOf(Exception error)
        {
            var known = error as TandemException;
            return known != null ? known.Text : error.GetType().Name + ": " + error.Message;
        }
    }
}
