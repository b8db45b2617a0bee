// EngineServer: an engine as a program, as tandem.launch_engine starts it. The base class of such an engine.
//
// Data flow: command line -> tandem_serve -> Prepare -> Loop -> OnReset, OnStep, the dispatcher's handlers -> exit
// code.
// Order: AddFlag and Dispatcher.Register, then Serve, once in a process. Serve calls Prepare, then Loop.
// Threads: all methods are called by the thread that calls Serve.
// Exceptions: in Prepare: the server ends with exit code 2 and the text. In OnReset, OnStep: the client gets
// EngineFailed. In a handler: its caller gets an error. In Loop: exit code 1.
//
//   static int Main(string[] args) { return new MyEngine().Serve(args, "What this engine is."); }

using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Tandem
{
    /// <summary>A flag of the engine's own: --NAME=NUMBER.</summary>
    public sealed class Flag
    {
        internal Flag(string name, string help, double value)
        {
            Name = name;
            Help = help;
            Value = value;
        }

        /// <summary>The flag's name, without dashes.</summary>
        public string Name { get; private set; }
        /// <summary>What --help prints.</summary>
        public string Help { get; private set; }

        /// <summary>The default until Prepare.</summary>
        public double Value { get; internal set; }
    }

    /// <summary>An engine as a program, as tandem.launch_engine starts it.</summary>
    public abstract unsafe class EngineServer
    {
        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate byte* PrepareFunction(IntPtr user, tandem_engine_options* options);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int WorkFunction(IntPtr user, tandem_work* work);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void LoopFunction(IntPtr user, IntPtr engine);

        // Static: pointers to them are never stale.
        private static readonly PrepareFunction s_prepare = OnPrepare;
        private static readonly WorkFunction s_work = OnWork;
        private static readonly LoopFunction s_loop = OnLoop;

        private readonly List<Flag> _flags = new List<Flag>();
        private readonly UnmanagedMemory _memory = new UnmanagedMemory();
        private tandem_flag* _nativeFlags;
        private Engine _engine;
        private Exception _loopError;

        /// <summary>The handlers of the engine's own RPCs.</summary>
        protected RpcDispatcher Dispatcher { get; } = new RpcDispatcher();

        /// <summary>Sets ObsSize, ActSize and, if it wants, Task, Description and StepSecs. NumEnvs is set; the other
        /// properties have no effect. The flags have their values.</summary>
        protected abstract void Prepare(SharedMemoryConfig config);
        /// <summary>Resets the environments of `work`, and writes their observations.</summary>
        protected abstract void OnReset(Work work);
        /// <summary>Steps the environments of `work`, and writes their results.</summary>
        protected abstract void OnStep(Work work);

        /// <summary>Undoes what the last client's RPCs have changed.</summary>
        protected virtual void OnClear() { }

        /// <summary>Serves until engine.IsStopping. An engine with a loop of its own overrides it:
        /// SharedMemoryTransport.Over(engine).</summary>
        protected virtual void Loop(Engine engine) => engine.Run();

        /// <summary>Before Serve.</summary>
        protected Flag AddFlag(string name, string help, double value)
        {
            var flag = new Flag(name, help, value);
            _flags.Add(flag);
            return flag;
        }

        /// <summary>Serves until SIGINT, SIGTERM or the launcher's end. Returns the exit code: 0: stopped; 1: the
        /// engine or its region failed; 2: a wrong flag. Errors are lines on stderr.</summary>
        public int Serve(string[] args, string usage)
        {
            try
            {
                Native.CheckVersion();
            }
            catch (TandemException e)
            {
                Console.Error.WriteLine("tandem error: " + e.Message);
                return 1;
            }
            GCHandle self = GCHandle.Alloc(this);
            try
            {
                tandem_server server = default(tandem_server);
                server.struct_size = (uint)sizeof(tandem_server);
                server.flag_count = (uint)_flags.Count;
                server.flags = _nativeFlags = NativeFlags();
                server.usage = _memory.Text(usage);
                server.user = (void*)GCHandle.ToIntPtr(self);
                server.prepare = (void*)Marshal.GetFunctionPointerForDelegate(s_prepare);
                server.work = (void*)Marshal.GetFunctionPointerForDelegate(s_work);
                server.loop = (void*)Marshal.GetFunctionPointerForDelegate(s_loop);
                byte** argv = (byte**)_memory.Allocate((args.Length + 2) * sizeof(byte*));
                argv[0] = _memory.Text(GetType().Name);
                for (int i = 0; i < args.Length; ++i) argv[i + 1] = _memory.Text(args[i]);
                int code = Native.tandem_serve(args.Length + 1, argv, &server);
                if (code != 0 || _loopError == null) return code;
                Console.Error.WriteLine("tandem error: the engine's loop: " + _loopError);
                return 1;
            }
            finally
            {
                self.Free();
                _memory.Dispose();
            }
        }

        private tandem_flag* NativeFlags()
        {
            var flags = (tandem_flag*)_memory.Allocate(_flags.Count * sizeof(tandem_flag));
            for (int i = 0; i < _flags.Count; ++i)
            {
                flags[i].name = _memory.Text(_flags[i].Name);
                flags[i].help = _memory.Text(_flags[i].Help);
                flags[i].value = (double*)_memory.Allocate(sizeof(double));
                *flags[i].value = _flags[i].Value;
            }
            return flags;
        }

        [MonoPInvokeCallback(typeof(PrepareFunction))]
        private static byte* OnPrepare(IntPtr user, tandem_engine_options* options)
        {
            EngineServer self = null;
            try
            {
                self = (EngineServer)GCHandle.FromIntPtr(user).Target;
                for (int i = 0; i < self._flags.Count; ++i) self._flags[i].Value = *self._nativeFlags[i].value;
                var config = new SharedMemoryConfig { NumEnvs = checked((int)options->num_envs) };
                self.Prepare(config);
                config.Methods = self.Dispatcher.Methods;
                config.Fill(options, self._memory);
                return null;
            }
            catch (Exception e)
            {
                return self._memory.Text(Engine.TextOf(e).Replace('\0', ' '));
            }
        }

        [MonoPInvokeCallback(typeof(LoopFunction))]
        private static void OnLoop(IntPtr user, IntPtr handle)
        {
            EngineServer self = null;
            try
            {
                self = (EngineServer)GCHandle.FromIntPtr(user).Target;
                using (self._engine = new Engine(handle, self.Do)) self.Loop(self._engine);
            }
            catch (Exception e)
            {
                if (self != null) self._loopError = e;
            }
        }

        [MonoPInvokeCallback(typeof(WorkFunction))]
        private static int OnWork(IntPtr user, tandem_work* work)
        {
            try
            {
                return ((EngineServer)GCHandle.FromIntPtr(user).Target)._engine.Called(work);
            }
            catch (Exception)
            {
                return 1;
            }
        }

        private void Do(Work work)
        {
            switch (work.Kind)
            {
                case WorkKind.Reset:
                    OnReset(work);
                    break;
                case WorkKind.Step:
                    OnStep(work);
                    break;
                case WorkKind.Call:
                    Dispatcher.Answer(_engine, work);
                    break;
                case WorkKind.Clear:
                    OnClear();
                    break;
            }
        }
    }
}
