// EditorRpcApi: what an editor's panel shows and switches. Static methods with plain arguments, so that a bridge from
// C++ (Coral) can call them.
//
// Data flow: the panel -> these methods -> the running RpcHost -> the engine. Without a running host they return "not
// running" values, and switches have no effect.
// Threads: any; the host sets itself in Start and Stop.

namespace Tandem
{
    /// <summary>What an editor's panel shows and switches.</summary>
    public static class EditorRpcApi
    {
        private static volatile RpcHost s_host;

        /// <summary>The running host; null: none.</summary>
        public static RpcHost Host
        {
            get { return s_host; }
            internal set { s_host = value; }
        }

        /// <summary>Whether a host serves an engine.</summary>
        public static bool IsRunning => Engine != null;

        /// <summary>Of the region; "" if no host is running.</summary>
        public static string SharedMemoryName => Status?.Region ?? "";

        /// <summary>null: no host is running. Makes a system call.</summary>
        public static EngineStatus Status
        {
            get
            {
                try
                {
                    return Engine?.Status;
                }
                catch (System.ObjectDisposedException)  // stopped since
                {
                    return null;
                }
            }
        }

        /// <summary>Of the connected client; 0: none.</summary>
        public static int GetClientPid()
        {
            EngineStatus status = Status;
            return status != null && status.HasClient ? status.ClientPid : 0;
        }

        /// <summary>The number of services.</summary>
        public static int GetServiceCount() => EngineStatus.ServiceNames.Count;

        /// <summary>"agent", "mujoco" and so on.</summary>
        public static string GetServiceName(int service) => EngineStatus.ServiceNames[service];

        /// <summary>Whether a service answers; false for a number that is no service.</summary>
        public static bool IsServiceEnabled(int service)
        {
            EngineStatus status = Status;
            return status != null && ((int)status.EnabledServices >> service & 1) != 0;
        }

        /// <summary>For all callers. false: no host is running, or the engine does not have the service.</summary>
        public static bool SetServiceEnabled(int service, bool enabled)
        {
            try
            {
                Engine engine = Engine;
                if (engine == null) return false;
                engine.Enable(GetServiceName(service), enabled);
                return true;
            }
            catch (TandemException e) when (e.Code == ErrorCode.Unsupported || e.Code == ErrorCode.ClientClosed)
            {
                return false;
            }
            catch (System.ObjectDisposedException)
            {
                return false;
            }
        }

        private static Engine Engine => Host?.Transport?.Engine;
    }
}
