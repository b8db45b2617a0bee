// CounterEngine: an engine server in C#. Its environments count their steps. Without --tick_hz it steps when it is called
// (OnStep). With it, it has a loop of its own as a game engine does, in which a step takes --ticks turns (Loop). It has an
// image beside each observation, draws frames (--frames), answers the RPC GetSceneInfo, has a live scene (the resource cart.glb),
// telemetry, states and a method of its own, set_color. A contract scales its rewards. Example:
//   mono CounterEngine.exe --name demo --num_envs 4 --tick_hz 60 --frames 320x240

using System;
using System.IO;
using System.Threading;
using tandem.rpc;

namespace Tandem.Samples
{
    public sealed class CounterEngine : EngineServer
    {
        private const int StateBytes = 3 * sizeof(float) + 2 * sizeof(ulong);

        private readonly Flag _tickHz, _ticks, _truncateAfter;
        private float[] _steps, _episodes, _scales;
        private ulong[] _random, _draws;  // the states of each environment's streams: its own, and its contract's
        private byte[] _color;            // of images: red, green, blue

        private CounterEngine()
        {
            _tickHz = AddFlag("tick_hz", "turns of the loop a second; 0: no loop", 0);
            _ticks = AddFlag("ticks", "turns that a step takes", 1);
            _truncateAfter = AddFlag("truncate_after", "steps of an episode; 0: no limit", 0);
            Dispatcher.Register(MethodId.GetSceneInfo, request => new EnvelopeT { Payload =
                PayloadUnion.FromGetSceneInfoResponse(
                    new GetSceneInfoResponseT { SceneName = "counters", EntityCount = (uint)_steps.Length }) });
            Dispatcher.Register("set_color", SetColor, "3 bytes: the images' colour; returns the colour before");
            OnClear();
        }

        public static int Main(string[] args) => new CounterEngine().Serve(args, "Environments that count, in C#.");

        protected override void Prepare(SharedMemoryConfig config)
        {
            if (_ticks.Value < 1) throw new TandemException(ErrorCode.InvalidArgument, "--ticks: expected 1 or more");
            config.Task = "Counter";
            config.ObsSize = 2;  // steps of the episode, a number of the episode
            config.ActSize = 1;
            config.Description = "{\"action_space\": {\"type\": \"Box\", \"low\": [-10], \"high\": [10]}}";
            config.ImageWidth = config.ImageHeight = 36;  // the least that the CNN of SB3 takes
            config.EngineServices = new EngineServices { DrawsFrames = true, JointNames = new[] { "steps" },
                ContractFields = new[] { "mass_scale_range" } };
            int n = config.NumEnvs;
            _steps = new float[n];
            _episodes = new float[n];
            _scales = new float[n];
            _random = new ulong[n];
            _draws = new ulong[n];
            for (int env = 0; env < n; ++env) _random[env] = (ulong)(DateTime.Now.Ticks + env);
        }

        protected override void OnReset(Work work)
        {
            for (int i = 0; i < work.Count; ++i)
            {
                Reset(work.Resets[i], work.ContractAt(i));
                Observe(work, work.EnvAt(i));
            }
        }

        protected override void OnStep(Work work)
        {
            Span<float> rewards = work.Rewards;
            Span<byte> terminateds = work.Terminateds, truncateds = work.Truncateds;
            ReadOnlySpan<float> actions = work.Actions;
            foreach (int env in work.Envs)
            {
                ++_steps[env];
                rewards[env] = actions[env] * _scales[env];
                terminateds[env] = 0;
                truncateds[env] = _steps[env] == _truncateAfter.Value ? (byte)1 : (byte)0;
                Observe(work, env);
            }
        }

        protected override void OnJoints(int env, Span<float> at, Span<float> speed) => at[0] = _steps[env];

        protected override byte[] OnScene()
        {
            var glb = new MemoryStream();
            typeof(CounterEngine).Assembly.GetManifestResourceStream("cart.glb").CopyTo(glb);
            return glb.ToArray();
        }

        // A cart goes on with each step.
        protected override void OnPoses(int env, Span<float> poses)
        {
            poses.Clear();
            poses[0] = _steps[env] / 100;
            poses[6] = 1;
        }

        protected override byte[] OnSaveState(int env)
        {
            var state = new MemoryStream();
            var writer = new BinaryWriter(state);
            foreach (float number in new[] { _steps[env], _episodes[env], _scales[env] }) writer.Write(number);
            foreach (ulong stream in new[] { _random[env], _draws[env] }) writer.Write(stream);
            return state.ToArray();
        }

        protected override void OnLoadState(int env, byte[] state)
        {
            if (state.Length != StateBytes) throw new TandemException(ErrorCode.InvalidArgument, "another counter's state");
            var reader = new BinaryReader(new MemoryStream(state));
            foreach (float[] numbers in new[] { _steps, _episodes, _scales }) numbers[env] = reader.ReadSingle();
            foreach (ulong[] streams in new[] { _random, _draws }) streams[env] = reader.ReadUInt64();
        }

        protected override void OnDraw(DrawRequest draw) => Engine.Drawn(draw, Picture(draw.Width * draw.Height));

        protected override void OnClear() => _color = new byte[] { 0, 100, 200 };

        protected override void Loop(Engine engine)
        {
            if (_tickHz.Value == 0) engine.Run();
            else using (SharedMemoryTransport transport = SharedMemoryTransport.Over(engine)) RunFrames(transport);
        }

        // The loop of a frame-based engine: a reset takes one turn, a step --ticks turns.
        private void RunFrames(SharedMemoryTransport transport)
        {
            Dispatcher.Transport = transport;
            transport.ClientCleared += OnClear;
            double left = 0;  // turns until the pending work is done
            while (!transport.Engine.IsStopping)
            {
                Dispatcher.Poll();
                if (left > 0 && --left == 0)
                {
                    if (transport.PendingKind == WorkKind.Step) OnStep(transport.PendingWork);
                    else OnReset(transport.PendingWork);
                    transport.IncrementFrameSeq();
                }
                if (left == 0 && transport.ReadActionSeq() > transport.FrameSeq)
                    left = transport.PendingKind == WorkKind.Step ? Math.Floor(_ticks.Value) : 1;
                foreach (DrawRequest wanted in transport.Captures.Wanted)
                    transport.Captures.Publish(wanted, Picture(wanted.Width * wanted.Height));
                Thread.Sleep((int)(1000 / _tickHz.Value));  // here a real engine draws its frame
            }
        }

        private void Reset(ResetRequest reset, Contract contract)
        {
            if (reset.Seed.HasValue) _random[reset.Env] = reset.Seed.Value;
            _steps[reset.Env] = 0;
            _episodes[reset.Env] = Next(ref _random[reset.Env]) % 9973;
            float[] range = contract?.Values("mass_scale_range") ?? new float[] { 1, 1 };
            if (contract != null && contract.Begins) _draws[reset.Env] = contract.Seed;
            _scales[reset.Env] = range[0] + (range[1] - range[0]) * Next(ref _draws[reset.Env]) / uint.MaxValue;
        }

        private static uint Next(ref ulong state)
        {
            state = unchecked(state * 6364136223846793005 + 1442695040888963407);
            return (uint)(state >> 32);
        }

        private void Observe(Work work, int env)
        {
            Span<float> obs = work.ObsOf(env);
            obs[0] = _steps[env];
            obs[1] = _episodes[env];
            Span<byte> image = work.ArrayOf<byte>("images", env);  // empty in a reset that no client requested
            Picture(image.Length / 3).CopyTo(image);
        }

        private Span<byte> Picture(int pixels)
        {
            var rgb = new byte[3 * pixels];
            for (int i = 0; i < rgb.Length; ++i) rgb[i] = _color[i % 3];
            return rgb;
        }

        private byte[] SetColor(byte[] color)
        {
            byte[] before = _color;
            if (color.Length != 3) throw new TandemException(ErrorCode.InvalidArgument, "expected 3 bytes");
            _color = color;
            return before;
        }
    }
}
