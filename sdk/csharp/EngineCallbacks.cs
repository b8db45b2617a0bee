// EngineCallbacks: the functions that the library calls for an Engine with a callback, or an EngineServer.
//
// Lifetime: static delegates, which exist until the AppDomain ends, so a pointer to them is never stale. Their first
// argument is a GCHandle of an IServedEngine, which is freed after the engine's end. That of an Engine is weak: the
// calls come only inside of its methods, which keep it alive.
// Exceptions: none leaves these functions; the library has no frames for them.

using System;
using System.Runtime.InteropServices;

namespace Tandem
{
    // Runtimes that compile ahead of time (Unity's IL2CPP) find callbacks by an attribute of this name.
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type) { }
    }

    internal static unsafe class EngineCallbacks
    {
        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int WorkFunction(IntPtr user, tandem_work* work);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void LogFunction(IntPtr user, byte* line);

        private static readonly WorkFunction s_work = OnWork;
        private static readonly LogFunction s_log = OnLog;

        internal static void* Work => (void*)Marshal.GetFunctionPointerForDelegate(s_work);

        internal static tandem_callbacks For(GCHandle engine, bool log)
        {
            tandem_callbacks callbacks = default(tandem_callbacks);
            callbacks.struct_size = (uint)sizeof(tandem_callbacks);
            callbacks.user = (void*)GCHandle.ToIntPtr(engine);
            callbacks.work = Work;
            if (log) callbacks.log = (void*)Marshal.GetFunctionPointerForDelegate(s_log);
            return callbacks;
        }

        [MonoPInvokeCallback(typeof(WorkFunction))]
        private static int OnWork(IntPtr user, tandem_work* work)
        {
            try
            {
                return ((IServedEngine)GCHandle.FromIntPtr(user).Target).Engine.Called(work);
            }
            catch (Exception)
            {
                return 1;
            }
        }

        [MonoPInvokeCallback(typeof(LogFunction))]
        private static void OnLog(IntPtr user, byte* line)
        {
            try
            {
                var engine = (Engine)GCHandle.FromIntPtr(user).Target;
                if (engine != null) engine.Logged(Utf8.Text(line));
            }
            catch (Exception)  // of the program's log, which has no caller to report to
            {
            }
        }
    }
}
