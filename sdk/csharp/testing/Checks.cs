// Checks: the tests of this assembly, for tests/sdk/csharp_test.py.
//
//   mono Checks.exe             prints the names of the checks
//   mono Checks.exe CHECK NAME  runs one with the region NAME; exit code 0 and "ok": it passed
//   mono Checks.exe Server FLAGS serves as a ServicesServer
//   mono Checks.exe Gpu FLAGS   serves as a GpuServer
//   mono Checks.exe Fields NAME runs FieldChecks with the engine of the region NAME; prints "ok"
//   mono Checks.exe Frames NAME serves frames until a client has left; prints "ok"
//   mono Checks.exe Structs     prints "struct size field:offset ..." for each struct of NativeStructs.cs

using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;
using System.Threading;
using tandem.rpc;

namespace Tandem.Testing
{
    public static class Checks
    {
        public static int Main(string[] args)
        {
            var checks = new Dictionary<string, MethodInfo>();
            foreach (Type type in new[] { typeof(EngineChecks), typeof(ServiceChecks), typeof(TransportChecks) })
            {
                foreach (MethodInfo method in type.GetMethods(BindingFlags.Static | BindingFlags.Public))
                {
                    checks.Add(method.Name, method);
                }
            }
            if (args.Length == 0)
            {
                foreach (string name in checks.Keys) Console.WriteLine(name);
                return 0;
            }
            if (args[0] == "Server" || args[0] == "Gpu")
            {
                EngineServer server = args[0] == "Gpu" ? (EngineServer)new GpuServer() : new ServicesServer();
                var flags = new string[args.Length - 1];
                Array.Copy(args, 1, flags, 0, flags.Length);
                return server.Serve(flags, "An engine for a test.");
            }
            if (args[0] == "Structs")
            {
                PrintStructs();
                return 0;
            }
            if (args[0] == "Fields")
            {
                FieldChecks.Run(args[1]);
            }
            else if (args[0] == "Frames")
            {
                TransportChecks.ServeFrames(args[1]);
            }
            else
            {
                checks[args[0]].Invoke(null, new object[] { args[1] });
            }
            Console.WriteLine("ok");
            return 0;
        }

        internal static void Expect(bool condition, string what)
        {
            if (!condition) throw new Exception("expected " + what);
        }

        internal static void ExpectEqual(object expected, object found)
        {
            if (!Equals(expected, found)) throw new Exception("expected '" + expected + "', found '" + found + "'");
        }

        internal static T ExpectThrow<T>(Action action) where T : Exception
        {
            try
            {
                action();
            }
            catch (T e)
            {
                return e;
            }
            throw new Exception("expected " + typeof(T).Name + ", found no exception");
        }

        internal static void ExpectError(ErrorCode code, string text, Action action)
        {
            var error = ExpectThrow<TandemException>(action);
            ExpectEqual(code, error.Code);
            Expect(error.Text.Contains(text), "'" + text + "' in '" + error.Text + "'");
        }

        internal static SharedMemoryConfig Config(string name)
        {
            return new SharedMemoryConfig { Name = name, Task = "Check", NumEnvs = 3, ObsSize = 2, ActSize = 1 };
        }

        // A task without bounds, with infos that each reset sets.
        internal static string Description(int obsSize, params string[] infos)
        {
            Func<int, string> box = size => "{\"type\": \"Box\", \"shape\": [" + size
                + "], \"low\": [\"-inf\"], \"high\": [\"inf\"], \"dtype\": \"float32\"}";
            string[] lines = Array.ConvertAll(infos, info => "{\"name\": \"" + info
                + "\", \"length\": null, \"dtype\": \"float64\", \"at_reset\": true}");
            return "{\"observation_space\": " + box(obsSize) + ", \"action_space\": " + box(1)
                + ", \"max_episode_steps\": 0, \"infos\": [" + string.Join(", ", lines) + "]}";
        }

        // Observations are the number of the environment; rewards are the actions.
        internal static void Simulate(Work work)
        {
            Span<float> obs = work.Obs, rewards = work.Rewards;
            for (int i = 0; i < work.Count; ++i)
            {
                int env = work.EnvAt(i);
                obs[2 * env] = env;
                if (work.Kind == WorkKind.Step) rewards[env] = work.ActionsOf(env)[0];
            }
        }

        // Runs `body` in a thread, whose exception ends the process.
        internal static Thread Start(Action body)
        {
            var thread = new Thread(() => body());
            thread.Start();
            return thread;
        }

        // Serves `body`, a client's program, by an engine with callbacks.
        internal static void Serve(string name, WorkHandler simulate, Action<string> log, Action<Client> body)
        {
            Serve(Config(name), simulate, body, null, log);
        }

        // `ready` gets the engine before it serves.
        internal static void Serve(SharedMemoryConfig config, WorkHandler simulate, Action<Client> body,
            Action<Engine> ready = null, Action<string> log = null)
        {
            using (Engine engine = Engine.Create(config, simulate, log))
            {
                ready?.Invoke(engine);
                Thread thread = Start(engine.Run);
                using (Client client = Client.Attach(config.Name)) body(client);
                engine.Stop();
                thread.Join();
            }
        }

        internal static EnvelopeT SceneRequest()
        {
            return new EnvelopeT
            {
                Method = MethodId.GetSceneInfo,
                Payload = PayloadUnion.FromGetSceneInfoRequest(new GetSceneInfoRequestT())
            };
        }

        internal static EnvelopeT SceneAnswer(string name)
        {
            return new EnvelopeT
            {
                Payload = PayloadUnion.FromGetSceneInfoResponse(new GetSceneInfoResponseT { SceneName = name })
            };
        }

        internal static string SceneName(Rpc rpc)
        {
            return rpc.Call(SceneRequest()).Payload.AsGetSceneInfoResponse().SceneName;
        }

        private static void PrintStructs()
        {
            foreach (Type type in typeof(Engine).Assembly.GetTypes())
            {
                string name = type == typeof(ResetRequest) ? "tandem_reset" : type.Name;
                if (!name.StartsWith("tandem_", StringComparison.Ordinal) || !type.IsValueType) continue;
                string line = name + " " + Marshal.SizeOf(type);
                foreach (FieldInfo field in type.GetFields(
                    BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic))
                {
                    line += " " + InC(field.Name) + ":" + Marshal.OffsetOf(type, field.Name);
                }
                Console.WriteLine(line);
            }
        }

        // _hasSeed -> has_seed.
        private static string InC(string field)
        {
            return Regex.Replace(field.TrimStart('_'), "[A-Z]", letter => "_" + letter.Value.ToLowerInvariant());
        }
    }
}
