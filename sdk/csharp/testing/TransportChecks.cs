// Checks of the classes with the names of the LuckyEngine plan: transport, dispatcher, registry, host, panel.

using System;
using System.Collections.Generic;
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
                int cleared = 0;
                host.Transport.ClientCleared += () => throw new ApplicationException("expected by this check");
                host.Transport.ClientCleared += () => ++cleared;
                bool running = true;
                Thread thread = Start(() =>
                {
                    using (Client client = Client.Attach(name))
                    {
                        client.Reset(); // only effects of a client are cleared
                        ExpectHandlerErrors(client.Rpc);
                    }
                    using (Client next = Client.Attach(name)) next.Reset();
                    running = false;
                });
                while (Volatile.Read(ref running)) Frame(host);
                thread.Join();
                Expect(cleared > 0, "the second handler was called");
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

        public static void ImagesAreDrawnInAFrameLoop(string name)
        {
            using (var host = new RpcHost())
            {
                host.Start(ServiceChecks.Cameras(name), new RpcConfig());
                CaptureBridge captures = host.Transport.Captures;
                int requested = 0;
                captures.Requested += request => ++requested;
                bool running = true;
                Thread thread = Start(() =>
                {
                    using (Client client = Client.Attach(name)) ExpectImages(client.Rpc);
                    running = false;
                });
                while (captures.Wanted.Length == 0) Frame(host);
                DrawRequest first = captures.Wanted[0];
                ExpectEqual(1, captures.Wanted.Length);
                ExpectError(ErrorCode.InvalidArgument, "unanswered", () => captures.Publish(first, new byte[23]));
                ExpectEqual(first.Number, captures.Wanted[0].Number);
                Expect(captures.Publish(first, new byte[32], PixelFormat.Rgba8), "a caller");
                Expect(!captures.Publish(first, new byte[24]), "no caller after the answer");
                while (captures.Wanted.Length == 0) Frame(host);
                Expect(captures.Refuse(captures.Wanted[0], ErrorCode.Unsupported, "dark"), "a caller");
                ExpectEqual(0, captures.Wanted.Length);
                while (Volatile.Read(ref running)) Frame(host);
                thread.Join();
                ExpectEqual(2, requested);
            }
        }

        private static void ExpectImages(Rpc rpc)
        {
            EnvelopeT request = ServiceChecks.CameraRequest("rear", 2);
            ExpectEqual(24, rpc.Call(request).Payload.AsNamedImageFrame().Frame.Data.Count);
            ExpectError(ErrorCode.Unsupported, "dark", () => rpc.Call(request));
        }

        // Shows environment 2, in grey 7.
        internal static void ServeFrames(string name)
        {
            SharedMemoryConfig config = Config(name);
            config.EngineServices = new EngineServices { DrawsFrames = true };
            config.Frames = new FrameConfig { Width = 4, Height = 2, Envs = new[] { 2 }, Hz = 200 };
            using (var host = new RpcHost())
            {
                host.Start(config, new RpcConfig());
                bool attached = false;
                while (!attached || host.Transport.Engine.Status.HasClient)
                {
                    attached |= host.Transport.Engine.Status.HasClient;
                    Frame(host);
                    foreach (DrawRequest wanted in host.Transport.Captures.Wanted)
                    {
                        ExpectEqual("Frame 2 4x2",
                            wanted.Purpose + " " + wanted.Env + " " + wanted.Width + "x" + wanted.Height);
                        var rgb = new byte[24];
                        rgb.AsSpan().Fill(7);
                        host.Transport.Captures.Publish(wanted, rgb);
                    }
                    Thread.Sleep(1);
                }
            }
        }

        public static void OwnMethodsAreAnsweredInAFrameLoop(string name)
        {
            using (var host = new RpcHost())
            {
                ServiceChecks.RegisterMethods(host.Dispatcher);
                host.Start(Config(name), new RpcConfig());
                bool running = true;
                var later = new ManualResetEventSlim();
                Thread thread = Start(() =>
                {
                    using (Client client = Client.Attach(name))
                    using (Attendant attendant = Attendant.Attach(name, "check"))
                    {
                        ServiceChecks.ExpectMethods(client.Rpc);
                        ExpectEqual("9", string.Join(",", attendant.Rpc.CallOwn("echo", new byte[] { 9 })));
                        running = false;
                        later.Wait();
                        ExpectEqual("8", string.Join(",", attendant.Rpc.CallOwn("echo", new byte[] { 9 }, 60)));
                    }
                });
                while (Volatile.Read(ref running)) Frame(host);
                host.Dispatcher.Transport = null;
                later.Set();
                OwnCall call;
                while (!host.Transport.TryReceiveOwnCall(out call)) Thread.Yield();
                ExpectEqual("echo", call.Method);
                host.Transport.Engine.Answer(call.Number, new byte[] { 8 });
                while (!thread.Join(0)) host.Transport.ReadActionSeq();
            }
        }

        public static void ArraysAreWrittenByName(string name)
        {
            using (var transport = new SharedMemoryTransport())
            {
                SharedMemoryConfig config = Config(name);
                config.ObsSize = 0;
                config.ImageWidth = config.ImageHeight = 1;
                config.Fields = new[] { new Field("obs/count", ElementType.Int32, 2) };
                transport.Create(config);
                ExpectError(ErrorCode.NoStepPending, "", () => transport.WriteArray<int>("obs/count", new int[6]));
                transport.SpinWaitForAction(1);
                transport.WriteArray<int>("obs/count", new[] { 1, 2, 3, 4, 5, 6 });
                transport.WriteArray<byte>("images", new byte[] { 1, 1, 1, 2, 2, 2, 3, 3, 3 });
                transport.WriteArray<float>("rewards", new float[3]);  // not part of a reset
                ExpectThrow<ArgumentException>(() => transport.WriteArray<int>("obs/count", new int[5]));
                ExpectError(ErrorCode.InvalidArgument, "Int32",
                    () => transport.WriteArray<float>("obs/count", new float[6]));
                ExpectError(ErrorCode.InvalidArgument, "obs/count",
                    () => transport.WriteArray<int>("obs/cuont", new int[6]));
                transport.IncrementFrameSeq();
                Thread thread = Start(() =>
                {
                    using (Client client = Client.Attach(name))
                    {
                        client.SendReset(new[] { new ResetRequest(1) });
                        client.Recv();
                        ExpectEqual("1,2,9,9,5,6", string.Join(",", client.Array("obs/count").Span<int>().ToArray()));
                        ExpectEqual("1,1,1,2,2,2,3,3,3", string.Join(",", client.Images.ToArray()));
                    }
                });
                transport.SpinWaitForAction(2);
                transport.WriteArray<int>("obs/count", new[] { 9, 9, 9, 9, 9, 9 });
                transport.IncrementFrameSeq();
                while (!thread.Join(0)) transport.ReadActionSeq();
            }
        }

        public static void TheRegistryHasContractsAndInfos(string name)
        {
            var batch = new AgentBatch(3, 2, 1, infoSize: 1);
            batch.ResetAgent = reset =>
            {
                Contract contract = batch.Contracts[reset.Env];
                batch.Infos[reset.Env] = contract == null ? -1
                    : 100 * contract.Values("friction_range")[1] + contract.Seed + (contract.Begins ? 0.5 : 0);
                if (contract == null) return;
                ExpectEqual("friction_range,terrain_type", string.Join(",", contract.Names));
                ExpectEqual("ice", contract.Text("terrain_type"));
                Expect(contract.Text("x") == null && contract.Values("mass_scale_range") == null, "no other fields");
            };
            using (var host = new RpcHost())
            {
                SharedMemoryConfig config = Config(name);
                config.Description = Description(2, "x");
                config.EngineServices = new EngineServices
                {
                    ContractFields = new[] { "friction_range", "terrain_type" }
                };
                host.Start(config, new RpcConfig());
                bool running = true;
                Thread thread = Start(() =>
                {
                    using (Client client = Client.Attach(name)) ExpectContracts(client);
                    running = false;
                });
                while (Volatile.Read(ref running))
                {
                    if (ExternalAgentRegistry.WaitAndApplyExternalActions(batch, 0.05))
                        ExternalAgentRegistry.PublishState(batch);
                }
                thread.Join();
                ExpectThrow<ArgumentException>(() =>
                {
                    using (var transport = new SharedMemoryTransport())
                    {
                        host.Stop();
                        transport.Create(Config(name));
                        ExternalAgentRegistry.WaitAndApplyExternalActions(new AgentBatch(2, 2, 1), 1);
                    }
                });
            }
        }

        private static void ExpectContracts(Client client)
        {
            Func<string> infos = () => string.Join(" ", client.Array("infos").Span<double>().ToArray());
            client.Reset();
            ExpectEqual("-1 -1 -1", infos());
            var contract = new SimulationContractT
            {
                FrictionRange = new List<float> { 0.5f, 2 }, TerrainType = "ice",
                MassScaleRange = new List<float> { 1, 2 }
            };
            EnvelopeT answer = client.Rpc.Call(new EnvelopeT
            {
                Method = MethodId.ResetAgent,
                Payload = PayloadUnion.FromResetAgentRequest(new ResetAgentRequestT
                {
                    EnvIds = new List<uint> { 0, 2 }, Seed = 40, AtNextReset = true,
                    SimulationContract = contract
                })
            });
            ExpectEqual("mass_scale_range", string.Join(",", answer.Payload.AsResetAgentResponse().UnusedFields));
            client.Reset();
            ExpectEqual("240.5 -1 242.5", infos());
            client.Reset();
            ExpectEqual("240 -1 242", infos());
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
                ExpectEqual(8, EditorRpcApi.GetServiceCount());
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
