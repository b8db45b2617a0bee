// Checks of Engine, Client and Rpc: errors, the order of Dispose, and the garbage collector.

using System;
using System.Runtime.CompilerServices;
using System.Threading;
using tandem.rpc;
using static Tandem.Testing.Checks;

namespace Tandem.Testing
{
    public static class EngineChecks
    {
        public static void ACallbackServesAClient(string name)
        {
            using (Engine engine = Engine.Create(Config(name), Checks.Simulate))
            {
                Thread thread = Start(engine.Run);
                using (Client client = Client.Attach(name))
                {
                    client.Reset(seed: 7);
                    ExpectEqual(2f, client.Obs[4]);
                    client.Step(new float[] { 1, 2, 3 });
                    ExpectEqual(3f, client.Rewards[2]);
                    ExpectEqual("obs", client.Array("obs").Name);
                    ExpectEqual("3,2", string.Join(",", client.Array("obs").Shape));
                    Expect(client.Description.Contains("{"), "a description");
                    ExpectError(ErrorCode.InvalidArgument, "", () => client.Array("obs").Span<byte>());
                    ExpectError(ErrorCode.InvalidArgument, "", () => client.Images.ToArray());
                    ExpectError(ErrorCode.InvalidAction, "", () => client.Step(new[] { 1, float.NaN, 3 }));
                    Expect(engine.Status.HasClient, "a client");
                }
                engine.Stop();
                thread.Join();
            }
        }

        public static void AnExceptionOfACallbackIsTheClientsError(string name)
        {
            int steps = 0;
            Serve(name, work =>
            {
                if (work.Kind == WorkKind.Step && ++steps == 2) throw new ApplicationException("the wheel broke");
                Checks.Simulate(work);
            }, line => { throw new ApplicationException("the log failed"); }, client =>
            {
                client.Step(new float[3]);
                var error = ExpectThrow<EngineFailedException>(() => client.Step(new float[3]));
                Expect(error.Message.Contains("the wheel broke"), "the exception's text, found " + error.Message);
                client.Reset();
                client.Step(new float[] { 5, 5, 5 });
                ExpectEqual(5f, client.Rewards[0]);
            });
        }

        public static void AnExceptionOfAnyTypeStaysInsideTheCallback(string name)
        {
            var errors = new Exception[]
            {
                new NullReferenceException(), new Exception("a\0b"), new OutOfMemoryException(),
                new TandemException(ErrorCode.Unsupported, "no brakes")
            };
            int steps = 0;
            Serve(name, work =>
            {
                if (work.Kind == WorkKind.Step) throw errors[steps++ % errors.Length];
            }, null, client =>
            {
                for (int i = 0; i < errors.Length; ++i)
                {
                    ExpectThrow<EngineFailedException>(() => client.Step(new float[3]));
                    client.Reset();
                }
            });
        }

        public static void DisposeTwiceHasNoEffect(string name)
        {
            Engine engine = Engine.Create(Config(name), Checks.Simulate);
            RegionArray obs = engine.Array("obs");
            engine.Dispose();
            engine.Dispose();
            Expect(engine.IsStopping, "a stopped engine");
            ExpectThrow<ObjectDisposedException>(() => engine.Poll());
            ExpectThrow<ObjectDisposedException>(engine.Run);
            ExpectThrow<ObjectDisposedException>(() => engine.Next());
            ExpectThrow<ObjectDisposedException>(() => engine.Done());
            ExpectThrow<ObjectDisposedException>(engine.Stop);
            ExpectThrow<ObjectDisposedException>(() => engine.Array("obs"));
            ExpectThrow<ObjectDisposedException>(() => obs.Span<float>());
            ExpectThrow<ObjectDisposedException>(() => Console.WriteLine(engine.Status));
        }

        public static void ADisposedClientIsRefused(string name)
        {
            using (Engine engine = Engine.Create(Config(name), Checks.Simulate))
            {
                Thread thread = Start(engine.Run);
                Client client = Client.Attach(name);
                Attendant attendant = Attendant.Attach(name, "check");
                RegionArray obs = client.Array("obs");
                Rpc rpc = client.Rpc;
                for (int i = 0; i < 2; ++i)
                {
                    client.Dispose();
                    attendant.Dispose();
                }
                ExpectThrow<ObjectDisposedException>(() => client.Step());
                ExpectThrow<ObjectDisposedException>(() => client.Obs.ToArray());
                ExpectThrow<ObjectDisposedException>(() => obs.Span<float>());
                ExpectThrow<ObjectDisposedException>(() => rpc.Call(SceneRequest()));
                ExpectThrow<ObjectDisposedException>(() => attendant.Rpc.Call(SceneRequest()));
                Client.Attach(name).Dispose();
                engine.Stop();
                thread.Join();
            }
        }

        public static void ArraysOfBeforeAReconnectAreRefused(string name)
        {
            Serve(name, Checks.Simulate, null, client =>
            {
                RegionArray obs = client.Array("obs");
                client.Reconnect();
                ExpectThrow<InvalidOperationException>(() => obs.Span<float>());
                client.Step(new float[] { 1, 1, 1 });
                ExpectEqual(1f, client.Rewards[0]);
            });
        }

        public static void DisposeEndsARunOfAnotherThread(string name)
        {
            Engine engine = Engine.Create(Config(name), Checks.Simulate);
            Thread thread = Start(engine.Run);
            Client client = Client.Attach(name);
            engine.Dispose();
            thread.Join();
            ExpectThrow<PeerGoneException>(() => client.Step(new float[3]));
            client.Dispose();
            OpenAndClose(name);
        }

        public static void DisposeInTheCallbackEndsTheRun(string name)
        {
            Engine engine = null;
            engine = Engine.Create(Config(name), work =>
            {
                Checks.Simulate(work);
                if (work.Kind == WorkKind.Step) engine.Dispose();
            });
            Thread thread = Start(engine.Run);
            using (Client client = Client.Attach(name))
            {
                client.Send(new float[3]);
                thread.Join();
            }
            OpenAndClose(name);
        }

        public static void ACollectedEngineDoesNotCrash(string name)
        {
            Forget(name);
            for (int i = 0; i < 5; ++i)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
            // The region stays until the process ends; its engine does not answer.
            ExpectThrow<TandemException>(() => Client.Attach(name, timeoutSecs: 0.2));
            ExpectThrow<AlreadyAttachedException>(() => OpenAndClose(name));
        }

        public static void CallbacksSurviveTheCollector(string name)
        {
            Serve(name, work =>
            {
                GC.Collect();
                Checks.Simulate(work);
            }, line => GC.Collect(), client =>
            {
                for (int step = 0; step < 100; ++step)
                {
                    client.Step(new float[] { step, 0, 0 });
                    ExpectEqual((float)step, client.Rewards[0]);
                }
            });
        }

        public static void WrongOptionsAreExplained(string name)
        {
            var error = ExpectThrow<TandemException>(() => Engine.Create(new SharedMemoryConfig { Name = name }));
            Expect(error.Code == ErrorCode.InvalidArgument && error.Text.Contains("ObsSize"), error.Message);
            SharedMemoryConfig config = Config(name);
            config.Description = "{";
            ExpectError(ErrorCode.InvalidArgument, "", () => Engine.Create(config));
            config = Config(name);
            config.RpcRingKib = -4;
            ExpectError(ErrorCode.InvalidArgument, "RpcRingKib", () => Engine.Create(config));
            ExpectThrow<ArgumentException>(() => Client.Attach("a\0b"));
            ExpectThrow<TandemException>(() => Client.Attach(name, timeoutSecs: 0.01));
            using (Engine engine = Engine.Create(Config(name), Checks.Simulate))
            {
                engine.Poll();
                ExpectThrow<AlreadyAttachedException>(() => OpenAndClose(name));
            }
        }

        public static void AStreamEndsWithDispose(string name)
        {
            using (Engine engine = Engine.Create(Config(name), Checks.Simulate))
            {
                Thread thread = Start(engine.Run);
                using (Client client = Client.Attach(name))
                {
                    var request = new EnvelopeT
                    {
                        Method = MethodId.StreamTelemetry,
                        Payload = PayloadUnion.FromStreamTelemetryRequest(new StreamTelemetryRequestT())
                    };
                    ExpectError(ErrorCode.InvalidArgument, "tandem_rpc_open", () => client.Rpc.Call(request));
                    ExpectError(ErrorCode.InvalidArgument, "tandem_rpc_call", () => client.Rpc.Open(SceneRequest()));
                    using (RpcStream stream = client.Rpc.Open(request))
                    {
                        // The engine has no telemetry: the error comes with the first item.
                        ExpectError(ErrorCode.Unsupported, "", () => stream.Next());
                        stream.Dispose();
                    }
                }
                engine.Stop();
                thread.Join();
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Forget(string name)
        {
            Start(() => Engine.Create(Config(name), Checks.Simulate, line => { }).Poll()).Join();
        }

        // The region has its name after the first reset, which is a part of the first Poll.
        private static void OpenAndClose(string name)
        {
            using (Engine engine = Engine.Create(Config(name), Checks.Simulate)) engine.Poll();
        }
    }
}
