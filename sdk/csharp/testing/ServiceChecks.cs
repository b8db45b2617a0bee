// Checks of what an engine has besides steps: fields, images, draws, services, methods of its own, arrays on a GPU.

using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using tandem.rpc;
using static Tandem.Testing.Checks;

namespace Tandem.Testing
{
    public static class ServiceChecks
    {
        public static void FieldsAreSpansOfTheirOwnTypes(string name)
        {
            SharedMemoryConfig config = Config(name);
            config.ObsSize = config.ActSize = 0;
            config.Fields = new[]
            {
                new Field("obs/image", ElementType.UInt8, 2, 3), new Field("obs/speed", ElementType.Float64),
                new Field("action/", ElementType.Int64)
            };
            Serve(config, work =>
            {
                Span<double> speeds = work.Array<double>("obs/speed");
                ReadOnlySpan<long> actions = work.Array<long>("action/");
                for (int i = 0; i < work.Count; ++i)
                {
                    int env = work.EnvAt(i);
                    work.ArrayOf<byte>("obs/image", env).Fill((byte)(10 + env));
                    speeds[env] = work.Kind == WorkKind.Step ? actions[env] / 4.0 : -1;
                }
            }, client =>
            {
                ExpectEqual("3,2,3", string.Join(",", client.Array("obs/image").Shape));
                client.Array("action/").Span<long>().Fill((1L << 40) + 1);
                client.Step();
                ExpectEqual(12, (int)client.Array("obs/image").Span<byte>()[17]);
                ExpectEqual(((1L << 40) + 1) / 4.0, client.Array("obs/speed").Span<double>()[2]);
                Expect(client.Description.Contains("\"uint8\""), "the spaces of the fields");
            }, engine =>
            {
                ExpectEqual(ElementType.Float64, engine.Array("obs/speed").ElementType);
                ExpectError(ErrorCode.InvalidArgument, "obs/speed", () => engine.Array("obs/sped"));
                ExpectError(ErrorCode.InvalidArgument, "Float64", () => engine.Array("obs/speed").Span<float>());
            });
        }

        public static void AnImageIsDrawnByAnotherThread(string name)
        {
            Engine drawing = null;
            var done = new ManualResetEventSlim();
            Serve(Cameras(name), work =>
            {
                if (work.Kind != WorkKind.Draw) return;
                DrawRequest draw = work.Draw;
                ExpectEqual(DrawPurpose.Camera, draw.Purpose);
                ExpectEqual("1 1 4x2", draw.Env + " " + draw.Camera + " " + draw.Width + "x" + draw.Height);
                Start(() =>
                {
                    DrawBottomUp(drawing, draw);
                    done.Set();
                });
            }, client =>
            {
                EnvelopeT answer = client.Rpc.Call(CameraRequest("rear", 1));
                done.Wait();
                ImageFrameT frame = answer.Payload.AsNamedImageFrame().Frame;
                ExpectEqual("raw", frame.Format);
                ExpectEqual("254,0,0", frame.Data[0] + "," + frame.Data[1] + "," + frame.Data[2]);
                ExpectEqual("0,0,255", frame.Data[21] + "," + frame.Data[22] + "," + frame.Data[23]);
            }, engine => drawing = engine);
        }

        // Red above blue, in rows of 5 pixels.
        private static void DrawBottomUp(Engine engine, DrawRequest draw)
        {
            var bgra = new byte[2 * 20];
            for (int x = 0; x < 4; ++x)
            {
                bgra[4 * x] = 255;
                bgra[20 + 4 * x + 2] = 254;
            }
            Action<int, PixelFormat, int> expectRefusal = (size, format, stride) => ExpectError(
                ErrorCode.InvalidArgument, "unanswered",
                () => engine.Drawn(draw, new ReadOnlySpan<byte>(bgra, 0, size), format, stride));
            expectRefusal(23, PixelFormat.Rgb8, 0);
            expectRefusal(35, PixelFormat.Bgra8, 20);
            expectRefusal(40, PixelFormat.Bgra8, 15);
            expectRefusal(40, PixelFormat.Bgra8, -20);
            expectRefusal(40, PixelFormat.Depth32F, 0);
            expectRefusal(40, (PixelFormat)9, 0);
            Expect(engine.Drawn(draw, bgra, PixelFormat.Bgra8, 20, bottomUp: true), "a caller");
            Expect(!engine.Drawn(draw, bgra, PixelFormat.Bgra8, 20), "no caller after the answer");
            Expect(!engine.RefuseDraw(draw, ErrorCode.EngineFailed, "late"), "no caller after the answer");
        }

        public static void AnExceptionOfAServiceIsItsCallersError(string name)
        {
            SharedMemoryConfig config = Config(name);
            config.EngineServices = new EngineServices
            {
                Entities = new[] { new Entity("cart") },
                Transform = (env, entity) =>
                {
                    GC.Collect();
                    if (env == 0) throw new ApplicationException("no world");
                    return new EntityTransform { Scale = new Vec3T { X = 3 } };
                }
            };
            Serve(config, Checks.Simulate, client =>
            {
                ExpectError(ErrorCode.EngineFailed, "no world", () => Entities(client, 0));
                TransformT place = Entities(client, 1)[0].Transform;
                ExpectEqual(3f, place.Scale.X);
                var to = new TransformT { Rotation = null, Scale = null };
                ExpectError(ErrorCode.Unsupported, "move", () => client.Rpc.Call(new EnvelopeT
                {
                    Method = MethodId.SetEntityTransform,
                    Payload = PayloadUnion.FromSetEntityTransformRequest(
                        new SetEntityTransformRequestT { Id = 1, Transform = to })
                }));
            }, engine =>
            {
                config.EngineServices.Transform = null;  // the engine has a copy
                ExpectError(ErrorCode.Unsupported, "", () => engine.Enable("camera", true));
                engine.Enable("scene", true);
            });
        }

        public static void OwnMethodsTakeAndReturnBytes(string name)
        {
            var dispatcher = new RpcDispatcher();
            RegisterMethods(dispatcher);
            ExpectThrow<ArgumentException>(() => dispatcher.Register("echo", request => request));
            SharedMemoryConfig config = Config(name);
            config.OwnMethods = dispatcher.OwnMethods;
            Engine answering = null;
            Serve(config, work =>
            {
                if (work.Kind == WorkKind.Call) dispatcher.Answer(answering, work);
            }, client =>
            {
                ExpectMethods(client.Rpc);
                Expect(client.Description.Contains("\"text/plain\""), "the methods in the description");
            }, engine => answering = engine);
        }

        internal static void RegisterMethods(RpcDispatcher dispatcher)
        {
            dispatcher.Register("echo", request => request, "returns it", "text/plain");
            dispatcher.Register("fails", request => { throw new ApplicationException("no\0weather"); });
            dispatcher.Register("refuses", request => { throw new TandemException(ErrorCode.InvalidAction, "no"); });
            dispatcher.Register("forgets", request => null);
        }

        internal static void ExpectMethods(Rpc rpc)
        {
            byte[] large = new byte[3 << 20];  // in pieces
            large[large.Length - 1] = 7;
            foreach (byte[] request in new[] { Encoding.UTF8.GetBytes("\0{\"rain\": 1}"), new byte[0], large })
            {
                Expect(rpc.CallOwn("echo", request).AsSpan().SequenceEqual(request), "the request's bytes");
            }
            ExpectError(ErrorCode.EngineFailed, "no weather", () => rpc.CallOwn("fails", new byte[1]));
            ExpectError(ErrorCode.InvalidAction, "no", () => rpc.CallOwn("refuses", new byte[1]));
            ExpectError(ErrorCode.EngineFailed, "found null", () => rpc.CallOwn("forgets", new byte[1]));
            ExpectError(ErrorCode.InvalidArgument, "echo", () => rpc.CallOwn("snow", new byte[1]));
        }

        public static void AGpuThatIsMissingIsNamed(string name)
        {
            using (Engine engine = Engine.Create(Config(name), Checks.Simulate))
            {
                ExpectError(ErrorCode.Unsupported, "options->gpu", () => engine.GpuArray("obs"));
                ExpectError(ErrorCode.Unsupported, "options->gpu", () => engine.SetGpuStream(IntPtr.Zero));
                ExpectError(ErrorCode.Unsupported, "", () => engine.Enable("own", true));
            }
            SharedMemoryConfig config = Config(name);
            config.Gpu = new GpuConfig { CudaDevice = 97 };  // no machine has so many
            using (Engine engine = Engine.Create(config, Checks.Simulate))
            {
                ExpectError(ErrorCode.Unsupported, "log", () => engine.GpuArray("obs"));
            }
        }

        public static void WrongServicesAreExplained(string name)
        {
            Func<EngineServices, Action<SharedMemoryConfig>> with =
                services => config => config.EngineServices = services;
            Func<Field, Action<SharedMemoryConfig>> of = field => config => config.Fields = new[] { field };
            var cases = new Dictionary<string, Action<SharedMemoryConfig>>
            {
                ["services->transform"] = with(new EngineServices { Entities = new[] { new Entity("cart") } }),
                ["services->cameras"] = with(new EngineServices { Cameras = new string[1] }),
                ["'gravity_range'"] = with(new EngineServices { ContractFields = new[] { "gravity_range" } }),
                ["VelocityCount"] = with(new EngineServices { VelocityCount = -1 }),
                ["begins with obs/"] = of(new Field("image", ElementType.UInt8)),
                ["at most 3 dimensions, found 5"] = of(new Field("obs/a", ElementType.UInt8, 1, 1, 1, 1, 1)),
                ["obs/a: expected 0 or more"] = of(new Field("obs/a", ElementType.UInt8, -1)),
                ["obs_size 0 beside it"] = of(new Field("obs/", ElementType.UInt8)),
                ["ImageWidth"] = config => config.ImageWidth = -1,
                ["Height"] = config => config.Frames = new FrameConfig { Width = 4, Height = -2 }
            };
            foreach (KeyValuePair<string, Action<SharedMemoryConfig>> each in cases)
            {
                SharedMemoryConfig config = Config(name);
                each.Value(config);
                ExpectError(ErrorCode.InvalidArgument, each.Key, () => Engine.Create(config));
            }
        }

        internal static SharedMemoryConfig Cameras(string name)
        {
            SharedMemoryConfig config = Config(name);
            config.ImageSlotKib = 4;
            config.EngineServices = new EngineServices
            {
                Cameras = new[] { "front", "rear" }, ImageWidth = 4, ImageHeight = 2
            };
            return config;
        }

        internal static EnvelopeT CameraRequest(string camera, uint env)
        {
            return new EnvelopeT
            {
                Method = MethodId.GetCameraFrame,
                Payload = PayloadUnion.FromGetCameraFrameRequest(
                    new GetCameraFrameRequestT { Name = camera, EnvId = env })
            };
        }

        private static List<EntityInfoT> Entities(Client client, uint env)
        {
            var request = new ListEntitiesRequestT { IncludeTransforms = true, EnvId = env };
            return client.Rpc.Call(new EnvelopeT
            {
                Method = MethodId.ListEntities, Payload = PayloadUnion.FromListEntitiesRequest(request)
            }).Payload.AsListEntitiesResponse().Entities;
        }
    }
}
