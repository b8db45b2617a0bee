// Data flow: a client -> the region -> Next, or the work callback -> the program -> Done -> the client.
// Calls: either Next and Done, from the engine's own loop; or a callback, and Run or Poll.
//
// | state    | legal                                          | next state                            |
// |----------|------------------------------------------------|---------------------------------------|
// | idle     | Next, Poll, Run                                | working after a Reset or Step of Next |
// | working  | Next (it returns only calls), Done             | idle after Done                       |
// | disposed | Dispose; the rest throws ObjectDisposedException | disposed                            |
//
// Answer, Refuse, Drawn, Array, Status, Enable and Stop are legal in all states but the last, and in the callback.
// Threads: one at a time, except Array, GpuArray, Drawn, RefuseDraw, Status, Enable, Stop, IsStopping and Dispose: any,
// at any time.
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
    public sealed unsafe class Engine : IDisposable, IRegionOwner, IServedEngine
    {
        private readonly TandemHandle _handle;
        private readonly WorkHandler _work;
        private readonly Action<string> _log;
        private readonly EngineServices _services;
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
            _services = config.EngineServices?.Copy();
            // Weak: the calls come only inside of Next, Done, Run and Poll, which keep this object alive.
            GCHandle self = GCHandle.Alloc(this, GCHandleType.Weak);
            try
            {
                using (var memory = new UnmanagedMemory())
                {
                    tandem_engine_options options = default(tandem_engine_options);
                    config.Fill(&options, memory, (void*)GCHandle.ToIntPtr(self));
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
            _arrays = new EngineArrays(Array, Find("infos", mayLack: true));
        }

        // The engine of tandem_serve, which closes it.
        internal Engine(IntPtr borrowed, WorkHandler work)
        {
            _handle = new TandemHandle(borrowed, handle => 0);
            _work = work;
            _arrays = new EngineArrays(Array, Find("infos", mayLack: true));
        }

        /// <summary>The number of environments.</summary>
        public int NumEnvs => _arrays.NumEnvs;

        /// <summary>Values of an environment's observation.</summary>
        public int ObsSize => _arrays.ObsSize;

        /// <summary>Values of an environment's action.</summary>
        public int ActSize => _arrays.ActSize;

        internal EngineArrays Arrays => _arrays;

        Engine IServedEngine.Engine => this;
        EngineServices IServedEngine.Services => _services;

        int IRegionOwner.MappingNumber
        {
            get
            {
                _handle.ThrowIfClosed(nameof(Engine));
                return 0;
            }
        }

        /// <summary>Finds an array: "obs", "actions", "rewards", "terminateds", "truncateds", "infos", "images", and
        /// the fields by their names.</summary>
        public RegionArray Array(string name) => Find(name, mayLack: false);

        private RegionArray Find(string name, bool mayLack)
        {
            tandem_array array = default(tandem_array);
            array.struct_size = (uint)sizeof(tandem_array);
            int code = Native.tandem_engine_array(_handle, Utf8.Bytes(name), &array);
            // No exception: this is called within tandem_serve, and Wine 8 ends a program that unwinds there.
            if (mayLack && code == (int)ErrorCode.InvalidArgument) return null;
            TandemException.Check(code);
            return new RegionArray(name, ref array, this);
        }

        /// <summary>Finds an array on the GPU: "obs", "rewards", "images", or a field's name. Unsupported: the engine
        /// has none, or the driver is missing: the text says so.</summary>
        public GpuArray GpuArray(string name)
        {
            tandem_array array = default(tandem_array);
            array.struct_size = (uint)sizeof(tandem_array);
            TandemException.Check(Native.tandem_engine_gpu_array(_handle, Utf8.Bytes(name), &array));
            return new GpuArray(ref array);
        }

        /// <summary>The CUDA stream on which the engine writes these arrays, a cudaStream_t; clients wait for what is
        /// on it when a step is done. Zero: the legacy default stream. Unsupported: as GpuArray.</summary>
        public void SetGpuStream(IntPtr stream)
        {
            TandemException.Check(Native.tandem_engine_gpu_stream(_handle, stream));
        }

        /// <summary>Viewers get the new file of EngineServices.Scene. Any thread. Unsupported: it has none.</summary>
        public void SceneChanged() => TandemException.Check(Native.tandem_engine_scene_changed(_handle));

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
            GC.KeepAlive(this);
            return new Work(work, _arrays);
        }

        /// <summary>Ends the Reset or Step of Next. With a failure, the client gets EngineFailed with its
        /// text.</summary>
        public void Done(string failure = null)
        {
            TandemException.Check(Native.tandem_engine_done(_handle, Utf8.Bytes(failure)));
            GC.KeepAlive(this);
        }

        /// <summary>Answers a Call with an Envelope that has the method's answer; of an OwnMethod, with the answer's
        /// bytes. Errors: InvalidArgument (no such Envelope; the call is unanswered), NoStepPending (it was answered or
        /// cancelled, or its caller has left), ConcurrentUse (another thread is inside a call, such as Run: post the
        /// answer to a loop of your own with Next or Poll).</summary>
        public void Answer(ulong call, ReadOnlySpan<byte> envelope)
        {
            byte none = 0;  // an empty span may have no address
            fixed (byte* bytes = &MemoryMarshal.GetReference(envelope))
            {
                TandemException.Check(Native.tandem_engine_answer(
                    _handle, call, envelope.IsEmpty ? &none : bytes, (ulong)envelope.Length));
            }
        }

        /// <summary>Answers a Call with an error. Errors: NoStepPending, as Answer.</summary>
        public void Refuse(ulong call, ErrorCode code, string text)
        {
            TandemException.Check(Native.tandem_engine_refuse(_handle, call, (int)code, Utf8.Bytes(text ?? "")));
        }

        /// <summary>Answers a Draw with an image of its size; copies it. `stride`: bytes from a row to the next one in
        /// memory; 0: rows without gaps. `bottomUp`: the lowest row is first in memory. false: no caller waits for it,
        /// or it was answered. InvalidArgument: another size or kind; the draw is unanswered.</summary>
        public bool Drawn(DrawRequest draw, ReadOnlySpan<byte> pixels, PixelFormat format = PixelFormat.Rgb8,
            int stride = 0, bool bottomUp = false)
        {
            long tight = (long)draw.Width * (format == PixelFormat.Rgb8 ? 3 : 4);
            long row = stride == 0 ? tight : stride, lowest = row * (draw.Height - 1);
            if (row < tight || pixels.Length < lowest + tight)
            {
                throw new TandemException(ErrorCode.InvalidArgument, "pixels: expected " + draw.Width + "x"
                    + draw.Height + " of " + format + ", " + tight * draw.Height + " bytes without gaps, found "
                    + pixels.Length + " bytes with rows of " + row + "; the draw is unanswered");
            }
            fixed (byte* first = &MemoryMarshal.GetReference(pixels))
            {
                tandem_image image = default(tandem_image);
                image.struct_size = (uint)sizeof(tandem_image);
                image.format = (uint)format;
                image.width = (uint)draw.Width;
                image.height = (uint)draw.Height;
                image.data = bottomUp ? first + lowest : first;
                image.stride = bottomUp ? -row : row;
                return WasWanted(Native.tandem_engine_drawn(_handle, draw.Number, &image));
            }
        }

        /// <summary>The same with distances in metres, the top row first; infinity: nothing there.</summary>
        public bool Drawn(DrawRequest draw, ReadOnlySpan<float> metres)
        {
            return Drawn(draw, MemoryMarshal.AsBytes(metres), PixelFormat.Depth32F);
        }

        /// <summary>Answers a Draw with an error and its text. false: as Drawn.</summary>
        public bool RefuseDraw(DrawRequest draw, ErrorCode code, string text)
        {
            return WasWanted(Native.tandem_engine_refuse(_handle, draw.Number, (int)code, Utf8.Bytes(text ?? "")));
        }

        private static bool WasWanted(int code)
        {
            if (code == (int)ErrorCode.NoStepPending) return false;
            TandemException.Check(code);
            return true;
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

        // The same for an error. `work` is null in a function of the services.
        internal int Fail(tandem_work* work, Exception error)
        {
            try
            {
                byte[] text = Utf8.Bytes(TextOf(error));
                if (work != null && (work->kind == (uint)WorkKind.Call || work->kind == (uint)WorkKind.Draw))
                {
                    Native.tandem_engine_refuse(_handle, work->call, (int)CodeOf(error), text);
                }
                else if (work != null && work->kind == (uint)WorkKind.Clear)
                {
                    SayFailed("OnClear", error);
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

        // For a failure that has no caller.
        internal static void SayFailed(string what, Exception error)
        {
            Console.Error.WriteLine(what + " failed: " + TextOf(error));
        }

        internal static string TextOf(Exception error)
        {
            var known = error as TandemException;
            try
            {
                return (known != null ? known.Text : error.GetType().Name + ": " + error.Message).Replace('\0', ' ');
            }
            catch (Exception)  // of the exception's own Message
            {
                return error.GetType().Name;
            }
        }

        internal static ErrorCode CodeOf(Exception error)
        {
            var known = error as TandemException;
            return known != null && known.Code != ErrorCode.Ok ? known.Code : ErrorCode.EngineFailed;
        }
    }
}
