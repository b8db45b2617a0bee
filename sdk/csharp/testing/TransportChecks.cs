// Checks of the classes with the names of the LuckyEngine plan: transport, dispatcher, registry, host, panel.

using System;
using System.Threading;
using tandem.rpc;
using static Tandem.Testing.Checks;

namespace Tandem.Testing
{
    public static class TransportChecks
    {
        public static void EachStepIsPublishedOnce(string name)
        {
            using (var transport = new SharedMemoryTransport())
            {
                Expect(!SharedMemoryTransport.IsActive, "no active transport before Create");
                transport.Create(Config(name));
                Expect(SharedMemoryTransport.IsActive, "an active transport");
                ExpectEqual(transport, SharedMemoryTransport.Instance);
                ExpectThrow<InvalidOperationException>(() => transport.Create(Config(name)));
                float[] obs = transport.GetObservationBuffer(3, 2), actions = transport.GetActionBuffer(3, 1);
                ExpectThrow<ArgumentException>(() => transport.GetActionBuffer(3, 2));
                ExpectError(ErrorCode.NoStepPending, "", transport.IncrementFrameSeq);

                transport.SpinWaitForAction(1);
                ExpectEqual("1,1,1", string.Join(",", transport.GetResetsSpan().ToArray()));
                ExpectError(ErrorCode.NoStepPending, "", () => transport.GetRewardsSpan());
                ExpectThrow<ArgumentException>(() => transport.WriteObservations(new float[5]));
                ExpectError(ErrorCode.StepPending, "", () => transport.SpinWaitForAction(2));
                transport.WriteObservations(obs);
                transport.WriteRewards(new float[3]);
                transport.IncrementFrameSeq();
                ExpectEqual(1L, transport.ReadActionSeq());

                Thread thread = Start(() => TrainTwoSteps(name));
                transport.SpinWaitForAction(2);
                ExpectEqual(WorkKind.Step, transport.PendingKind);
                ExpectEqual(2L, transport.ReadActionSeq());
                ExpectEqual("0,0,0", string.Join(",", transport.GetResetsSpan().ToArray()));
                transport.ReadActions(actions);
                ExpectEqual("1,2,3", string.Join(",", actions));
                obs[5] = 8;
                transport.WriteObservations(obs);
                transport.WriteRewards(actions);
                transport.WriteDones(new byte[] { 0, 1, 0 });
                Span<byte> truncateds = transport.GetTruncatedsSpan();
                truncateds[2] = 1;
                transport.IncrementFrameSeq();

                // Autoreset: environments 1 and 2 are reset before the client's step ends. Row 0 is not written.
                transport.SpinWaitForAction(3);
                ExpectEqual("0,1,1", string.Join(",", transport.GetResetsSpan().ToArray()));
                transport.WriteObservations(new float[] { 9, 9, 4, 4, 4, 4 });
                transport.IncrementFrameSeq();

                transport.SpinWaitForAction(4);
                ExpectEqual("0,0,0", string.Join(",", transport.GetDonesSpan().ToArray()));
                transport.FailFrame("out of fuel");
                thread.Join();
            }
            Expect(!SharedMemoryTransport.IsActive, "no active transport after Dispose");
        }

        public static void ADisposedTransportIsRefused(string name)
        {
            var transport = new SharedMemoryTransport();
            ExpectThrow<InvalidOperationException>(() => transport.ReadActionSeq());
            ExpectThrow<InvalidOperationException>(() => transport.GetActionBuffer(3, 1));
            transport.Create(Config(name));
            transport.SpinWaitForAction(1);
            transport.Dispose();
            transport.Dispose();
            ExpectThrow<ObjectDisposedException>(() => transport.WriteObservations(new float[6]));
            ExpectThrow<ObjectDisposedException>(() => transport.PendingWork.Resets.ToArray());
            ExpectThrow<ObjectDisposedException>(() => transport.PendingWork.EnvAt(0));
            ExpectThrow<ObjectDisposedException>(() => transport.ReadActionSeq());
            ExpectThrow<ObjectDisposedException>(transport.IncrementFrameSeq);
            ArraySegment<byte> command;
            ExpectThrow<ObjectDisposedException>(() => transport.TryReceiveCommand(out command));
        }

        private static void TrainTwoSteps(string name)
        {
            using (Client client = Client.Attach(name))
            {
                client.Step(new float[] { 1, 2, 3 });
                ExpectEqual("1,2,3", string.Join(",", client.Rewards.ToArray()));
                ExpectEqual("0,1,1", string.Join(",", client.Dones.ToArray()));
                ExpectEqual("0,1,0", string.Join(",", client.Terminateds.ToArray()));
                ExpectEqual("0,0,4,4,4,4", string.Join(",", client.Obs.ToArray()));
                ExpectEqual(8f, client.Array("final_obs").Span<float>().ToArray()[5]);
                ExpectError(ErrorCode.EngineFailed, "out of fuel", () => client.Step());
            }
        }

        public static void AHandlerOfACallbackThatThrowsIsItsCallersError(string name)
        {
            int calls = 0;
            var dispatcher = new RpcDispatcher();
            dispatcher.Register(MethodId.GetSceneInfo, request => Answer(++calls));
            SharedMemoryConfig config = Config(name);
            config.Methods = dispatcher.Methods;
            Engine engine = null;
            using (engine = Engine.Create(config, work =>
            {
                if (work.Kind == WorkKind.Call) dispatcher.Answer(engine, work);
            }))
            {
                Thread thread = Start(engine.Run);
                using (Client client = Client.Attach(name)) ExpectHandlerErrors(client.Rpc);
                engine.Stop();
                thread.Join();
            }
        }

        public static void AHandlerThatThrowsIsItsCallersError(string name)
        {
            int calls = 0;
            using (var host = new RpcHost())
            {
                host.Dispatcher.Register(MethodId.GetSceneInfo, request => Answer(++calls));
                host.Start(Config(name), new RpcConfig());
                ExpectEqual(name, EditorRpcApi.SharedMemoryName);
                bool running = true;
                Thread thread = Start(() =>
                {
                    using (Client client = Client.Attach(name)) ExpectHandlerErrors(client.Rpc);
                    running = false;
                });
                while (Volatile.Read(ref running)) Frame(host);
                thread.Join();
            }
        }

        private static EnvelopeT Answer(int call)
        {
            if (call == 1) throw new ApplicationException("no scene");
            if (call == 2) throw new TandemException(ErrorCode.InvalidArgument, "env_id: expected less than 3");
            if (call == 3) return new EnvelopeT { Payload = PayloadUnion.FromTelemetryFrame(new TelemetryFrameT()) };
            return SceneAnswer("yard");
        }

        private static void ExpectHandlerErrors(Rpc rpc)
        {
            ExpectError(ErrorCode.EngineFailed, "no scene", () => SceneName(rpc));
            ExpectError(ErrorCode.InvalidArgument, "", () => SceneName(rpc));
            ExpectError(ErrorCode.EngineFailed, "GetSceneInfo", () => SceneName(rpc));
            ExpectEqual("yard", SceneName(rpc));
        }

        private static void Frame(RpcHost host)
        {
            host.Poll();
            if (host.Transport.PendingKind == WorkKind.None) host.Transport.ReadActionSeq();
            if (host.Transport.PendingKind == WorkKind.None) return;
            host.Transport.WriteObservations(new float[6]);
            host.Transport.IncrementFrameSeq();
        }

        public static void ACommandIsAnsweredLaterAndDuringAWait(string name)
        {
            using (var host = new RpcHost())
            {
                ulong waiting = 0;
                host.Dispatcher.Register(MethodId.GetSceneInfo, request =>
                {
                    waiting = request.CorrelationId;
                    return null;
                });
                host.Start(Config(name), new RpcConfig());
                while (host.Transport.ReadActionSeq() == 0) { }
                Frame(host);
                Thread thread = Start(() =>
                {
                    using (Attendant attendant = Attendant.Attach(name, "check"))
                    {
                        ExpectEqual("later", SceneName(attendant.Rpc));
                    }
                });
                while (waiting == 0) host.Transport.WaitForAction(2, 0.1);
                EnvelopeT answer = SceneAnswer("later");
                answer.CorrelationId = waiting;
                host.Transport.SendCommand(answer.SerializeToBinary());
                ExpectError(ErrorCode.NoStepPending, "answered",
                    () => host.Transport.SendCommand(answer.SerializeToBinary()));
                while (!thread.Join(0)) host.Poll();
            }
        }

        public static void TheRegistryStepsABatch(string name)
        {
            var batch = new AgentBatch(3, 2, 1);
            batch.ResetAgent = reset => batch.StateBuffer[2 * reset.Env] = 0;
            Expect(!ExternalAgentRegistry.WaitAndApplyExternalActions(batch, 0), "no effect without a transport");
            using (var host = new RpcHost())
            {
                host.Start(Config(name), new RpcConfig());
                bool running = true;
                Thread thread = Start(() =>
                {
                    using (Client client = Client.Attach(name))
                    {
                        client.Reset();
                        for (int step = 1; step <= 3; ++step)
                        {
                            client.Step(new float[] { 1, 2, 3 });
                            ExpectEqual(3f * step, client.Obs[4]);
                        }
                    }
                    running = false;
                });
                while (Volatile.Read(ref running))
                {
                    if (!ExternalAgentRegistry.WaitAndApplyExternalActions(batch, 0.05)) continue;
                    Expect(ExternalAgentRegistry.Gate.ActionReady, "an open gate");
                    foreach (int env in SharedMemoryTransport.Instance.PendingEnvs)
                    {
                        batch.StateBuffer[2 * env] += batch.ActionBuffer[env];
                    }
                    ExternalAgentRegistry.PublishState(batch);
                    Expect(!ExternalAgentRegistry.Gate.ActionReady, "a closed gate");
                }
                thread.Join();
            }
        }

        public static void ThePanelShowsAndSwitches(string name)
        {
            ExpectEqual("", EditorRpcApi.SharedMemoryName);
            Expect(!EditorRpcApi.IsRunning && !EditorRpcApi.SetServiceEnabled(0, true), "no effect without a host");
            using (var host = new RpcHost())
            {
                host.Dispatcher.Register(MethodId.GetSceneInfo, request => SceneAnswer("yard"));
                var config = new RpcConfig { SharedMemoryName = name };
                config.Enable(Services.Agent, false);
                host.Start(Config(null), config);
                while (host.Transport.ReadActionSeq() == 0) { }
                Frame(host);
                Expect(host.IsRunning && EditorRpcApi.IsRunning, "a running host");
                ExpectEqual(name, EditorRpcApi.SharedMemoryName);
                ExpectEqual(7, EditorRpcApi.GetServiceCount());
                ExpectEqual("scene", EditorRpcApi.GetServiceName(3));
                Expect(!EditorRpcApi.IsServiceEnabled(0), "agent is off");
                Expect(EditorRpcApi.IsServiceEnabled(3), "scene is on");
                Expect(EditorRpcApi.SetServiceEnabled(0, true), "a switch");
                while (!EditorRpcApi.IsServiceEnabled(0)) host.Poll();
                Expect(!EditorRpcApi.SetServiceEnabled(1, true), "no mujoco to switch");
                using (Client client = AttachMeanwhile(name, host))
                {
                    Expect(EditorRpcApi.GetClientPid() > 0, "a client's pid");
                }
                int posted = 0;
                Start(() => host.MainThread.Post(() => ++posted)).Join();
                host.Poll();
                ExpectEqual(1, posted);
                host.Stop();
                host.Stop();
                Expect(!host.IsRunning && !EditorRpcApi.IsRunning && EditorRpcApi.Status == null, "a stopped host");
                host.Start(Config(null), config);  // again
            }
        }

        private static Client AttachMeanwhile(string name, RpcHost host)
        {
            Client client = null;
            Thread thread = Start(() => client = Client.Attach(name));
            while (!thread.Join(0)) Frame(host);
            return client;
        }
    }
}
