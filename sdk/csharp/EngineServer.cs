// EngineServer: an engine as a program, as tandem.launch_engine starts it. The base class of such an engine.
//
// Data flow: command line -> tandem_serve -> Prepare -> Loop -> OnReset, OnStep, OnDraw, the methods of services, the
// dispatcher's handlers -> exit code.
// Order: AddFlag and Dispatcher.Register, then Serve, once in a process. Serve calls Prepare, then Loop.
// Threads: all methods are called by the thread that calls Serve.
// Exceptions: in Prepare: the server ends with exit code 2 and the text. In OnReset, OnStep: the client gets
// EngineFailed. In a handler, OnDraw or a method of a service: its caller gets an error. In Loop: exit code 1.
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
    public abstract unsafe class EngineServer : IServedEngine
    {
        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate byte* PrepareFunction(IntPtr user, tandem_engine_options* options);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void LoopFunction(IntPtr user, IntPtr engine);

        // Static: pointers to them are never stale.
        private static readonly PrepareFunction s_prepare = OnPrepare;
        private static readonly LoopFunction s_loop = OnLoop;

        private readonly List<Flag> _flags = new List<Flag>();
        private readonly UnmanagedMemory _memory = new UnmanagedMemory();
        private tandem_flag* _nativeFlags;
        private EngineServices _services;
        private Exception _loopError;

        /// <summary>The handlers of the engine's own RPCs, and of its own methods.</summary>
        protected RpcDispatcher Dispatcher { get; } = new RpcDispatcher();

        /// <summary>The engine, in Loop and what it calls; else null.</summary>
        protected Engine Engine { get; private set; }

        Engine IServedEngine.Engine => Engine;
        EngineServices IServedEngine.Services => _services;

        /// <summary>Sets ObsSize and ActSize, or Fields, and, if it wants, Task, Description, StepSecs, EngineServices,
        /// Gpu, ImageWidth and ImageHeight. NumEnvs is set, and EngineServices is empty; the other properties have no
        /// effect. The flags have their values.</summary>
        protected abstract void Prepare(SharedMemoryConfig config);
        /// <summary>Resets the environments of `work`, and writes their observations.</summary>
        protected abstract void OnReset(Work work);
        /// <summary>Steps the environments of `work`, and writes their results.</summary>
        protected abstract void OnStep(Work work);

        /// <summary>Undoes what the last client's RPCs have changed.</summary>
        protected virtual void OnClear() { }

        /// <summary>Draws the image, and answers by Engine.Drawn: now, or later in any thread.</summary>
        protected virtual void OnDraw(DrawRequest draw)
        {
            Engine.RefuseDraw(draw, ErrorCode.Unsupported, "this engine does not draw");
        }

        // The functions of EngineServices. A service is available if the engine overrides its method.

        /// <summary>As EngineServices.Transform.</summary>
        protected virtual EntityTransform OnTransform(int env, int entity) => null;
        /// <summary>As EngineServices.Move.</summary>
        protected virtual void OnMove(int env, int entity, EntityTransform transform) { }
        /// <summary>As EngineServices.Joints.</summary>
        protected virtual void OnJoints(int env, Span<float> positions, Span<float> velocities) { }
        /// <summary>As EngineServices.Controls.</summary>
        protected virtual void OnControls(int env, Span<float> controls) { }
        /// <summary>As EngineServices.SetControl.</summary>
        protected virtual void OnSetControl(int env, int actuator, float value) { }
        /// <summary>As EngineServices.ShowMarks.</summary>
        protected virtual void OnShowMarks(int env, Mark[] marks) { }
        /// <summary>As EngineServices.Scene.</summary>
        protected virtual byte[] OnScene() => null;
        /// <summary>As EngineServices.Poses.</summary>
        protected virtual void OnPoses(int env, Span<float> poses) { }
        /// <summary>As EngineServices.SaveState.</summary>
        protected virtual byte[] OnSaveState(int env) => null;
        /// <summary>As EngineServices.LoadState.</summary>
        protected virtual void OnLoadState(int env, byte[] state) { }

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
                server.work = EngineCallbacks.Work;
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
                var config = new SharedMemoryConfig
                {
                    NumEnvs = checked((int)options->num_envs),
                    EngineServices = new EngineServices()
                };
                self.Prepare(config);
                config.Methods = self.Dispatcher.Methods;
                config.OwnMethods = self.Dispatcher.OwnMethods;
                config.EngineServices = self._services = self.WithMethods(config.EngineServices);
                config.Fill(options, self._memory, (void*)user);
                return null;
            }
            catch (Exception e)
            {
                return self._memory.Text(Engine.TextOf(e));
            }
        }

        [MonoPInvokeCallback(typeof(LoopFunction))]
        private static void OnLoop(IntPtr user, IntPtr handle)
        {
            EngineServer self = null;
            try
            {
                self = (EngineServer)GCHandle.FromIntPtr(user).Target;
                using (self.Engine = new Engine(handle, self.Do)) self.Loop(self.Engine);
            }
            catch (Exception e)
            {
                if (self != null) self._loopError = e;
            }
            finally
            {
                if (self != null) self.Engine = null;
            }
        }

        // A copy of the services, with the overridden methods as those functions that are not set.
        private EngineServices WithMethods(EngineServices given)
        {
            EngineServices services = given == null ? new EngineServices() : given.Copy();
            services.Transform = services.Transform ?? Overridden<Func<int, int, EntityTransform>>(OnTransform);
            services.Move = services.Move ?? Overridden<Action<int, int, EntityTransform>>(OnMove);
            services.Joints = services.Joints ?? Overridden<JointsReader>(OnJoints);
            services.Controls = services.Controls ?? Overridden<ControlsReader>(OnControls);
            services.SetControl = services.SetControl ?? Overridden<Action<int, int, float>>(OnSetControl);
            services.ShowMarks = services.ShowMarks ?? Overridden<Action<int, Mark[]>>(OnShowMarks);
            services.Scene = services.Scene ?? Overridden<Func<byte[]>>(OnScene);
            services.Poses = services.Poses ?? Overridden<PosesWriter>(OnPoses);
            services.SaveState = services.SaveState ?? Overridden<Func<int, byte[]>>(OnSaveState);
            services.LoadState = services.LoadState ?? Overridden<Action<int, byte[]>>(OnLoadState);
            return services;
        }

        // null for a method of this class itself.
        private static T Overridden<T>(T method) where T : class
        {
            return ((Delegate)(object)method).Method.DeclaringType == typeof(EngineServer) ? null : method;
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
                    Dispatcher.Answer(Engine, work);
                    break;
                case WorkKind.Clear:
                    OnClear();
                    break;
                case WorkKind.Draw:
                    OnDraw(work.Draw);
                    break;
            }
        }
    }
}
