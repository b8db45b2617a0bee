// ServicesServer: an engine server whose services are overridden methods, for a client in Python.
//
//   mono Checks.exe Server --name demo --num_envs 2 --frames 4x2
//
// A cart moves along x, by callers only. The observation is the motor's control; the infos are what a contract gives at
// the reset: the lowest friction, and 1 if the contract begins.

using System;
using System.IO;
using System.Text;
using tandem.rpc;

namespace Tandem.Testing
{
    internal sealed class ServicesServer : EngineServer
    {
        private float[] _x, _controls;
        private Mark[] _marks = new Mark[0];
        private string _node = "cart";  // of the live scene

        protected override void Prepare(SharedMemoryConfig config)
        {
            config.Task = "Services";
            config.ObsSize = config.ActSize = 1;
            config.Description = Checks.Description(1, "friction", "begins");
            EngineServices services = config.EngineServices;
            services.SceneName = "track";
            services.Entities = new[] { new Entity("cart", "body"), new Entity("front", "camera,body") };
            services.JointNames = new[] { "x", "wheel" };
            services.VelocityCount = 1;
            services.Actuators = new[] { new Actuator("motor", -1, 1), new Actuator("brake") };
            services.Cameras = new[] { "front", "rear" };
            services.Viewports = new[] { "left", "right" };
            services.ImageWidth = 4;
            services.ImageHeight = 2;
            services.DrawsFrames = true;
            services.ContractFields = new[] { "friction_range", "terrain_type" };
            Dispatcher.Register("reverse", Reversed, "the bytes, the last one first", "text/plain");
            Dispatcher.Register("count_marks", request => new[] { (byte)_marks.Length });
            Dispatcher.Register("show", name =>
            {
                _node = Encoding.UTF8.GetString(name);
                Engine.SceneChanged();
                return name;
            });
            _x = new float[config.NumEnvs];
            _controls = new float[2 * config.NumEnvs];
        }

        protected override void OnReset(Work work)
        {
            Span<float> obs = work.Obs;
            Span<double> infos = work.Infos<double>();
            for (int i = 0; i < work.Count; ++i)
            {
                int env = work.EnvAt(i);
                Contract contract = work.ContractAt(i);
                Checks.Expect(contract == null || contract.Text("terrain_type") == "ice", "the terrain");
                obs[env] = 0;
                infos[2 * env] = contract?.Values("friction_range")[0] ?? -1;
                infos[2 * env + 1] = contract != null && contract.Begins ? 1 : 0;
            }
        }

        protected override void OnStep(Work work)
        {
            Span<float> obs = work.Obs;
            foreach (int env in work.Envs)
            {
                obs[env] = _controls[2 * env];
                work.Rewards.Slice(env, 1).Clear();
                work.Terminateds.Slice(env, 1).Clear();
                work.Truncateds.Slice(env, 1).Clear();
            }
        }

        protected override EntityTransform OnTransform(int env, int entity)
        {
            return entity == 1 ? null : new EntityTransform
            {
                Position = new Vec3T { X = _x[env], Y = 2, Z = env },
                Rotation = new QuatT { W = 1 }
            };
        }

        protected override void OnMove(int env, int entity, EntityTransform transform)
        {
            if (transform.Rotation != null || transform.Scale != null || entity != 0)
                throw new TandemException(ErrorCode.Unsupported, "only the cart moves, along x");
            _x[env] = transform.Position.X;
        }

        protected override void OnJoints(int env, Span<float> positions, Span<float> velocities)
        {
            positions[0] = _x[env];
            positions[1] = positions.Length;
            velocities[0] = velocities.Length;
        }

        protected override void OnControls(int env, Span<float> controls)
        {
            _controls.AsSpan(2 * env, 2).CopyTo(controls);
        }

        protected override void OnSetControl(int env, int actuator, float value)
        {
            _controls[2 * env + actuator] = value;
        }

        protected override void OnShowMarks(int env, Mark[] marks)
        {
            foreach (Mark mark in marks) Checks.Expect(mark.IsArrow == (mark.To.Z == 3), "an arrow up to 3");
            _marks = marks;
        }

        // A file with one node, and without a binary part.
        protected override byte[] OnScene()
        {
            if (_node == "nothing") throw new ApplicationException("no model");
            string json = "{\"scenes\": [{}], \"nodes\": [{\"mesh\": 0, \"name\": \"" + _node + "\"}]}";
            json = json.PadRight((json.Length + 3) / 4 * 4);
            var glb = new MemoryStream();
            var writer = new BinaryWriter(glb);
            foreach (int word in new[] { 0x46546C67, 2, 20 + json.Length, json.Length, 0x4E4F534A }) writer.Write(word);
            writer.Write(Encoding.UTF8.GetBytes(json));
            return glb.ToArray();
        }

        protected override void OnPoses(int env, Span<float> poses)
        {
            GC.Collect();
            new[] { _x[env], 2, env, 0, 0, 0, 1 }.CopyTo(poses);
        }

        // In another thread, as a renderer would.
        protected override void OnDraw(DrawRequest draw)
        {
            if (draw.Camera == 1 && draw.Purpose == DrawPurpose.Camera && draw.IsDepth)
                throw new TandemException(ErrorCode.Unsupported, "the rear camera is a lamp");
            Checks.Start(() =>
            {
                var metres = new float[draw.Width * draw.Height];
                var rgb = new byte[3 * metres.Length];
                for (int i = 0; i < rgb.Length; ++i)
                {
                    metres[i / 3] = 2;
                    rgb[i] = (byte)(100 * (int)draw.Purpose + 10 * draw.Camera + draw.Env);
                }
                bool delivered = draw.IsDepth ? Engine.Drawn(draw, metres) : Engine.Drawn(draw, rgb);
                Checks.Expect(delivered || draw.PatienceSecs > 0, "a caller");
            });
        }

        private static byte[] Reversed(byte[] request)
        {
            if (request.Length == 0) throw new ApplicationException("nothing to reverse");
            Array.Reverse(request);
            return request;
        }
    }
}
