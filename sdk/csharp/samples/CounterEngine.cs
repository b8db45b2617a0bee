// CounterEngine: an engine server in C#. Its environments count their steps.
//
// Without --tick_hz it steps when it is called (OnStep). With it, it has a loop of its own as a game engine does, in
// which a step takes --ticks turns (Loop). It answers the RPC GetSceneInfo itself.
//
//   mono CounterEngine.exe --name demo --num_envs 4 --tick_hz 60

using System;
using System.Threading;
using tandem.rpc;

namespace Tandem.Samples
{
    public sealed class CounterEngine : EngineServer
    {
        private const int ObsSize = 2;  // steps of the episode, a number of the episode

        private readonly Flag _tickHz, _ticks, _truncateAfter;
        private float[] _steps, _episodes;
        private ulong[] _random;  // the state of each environment's stream

        private CounterEngine()
        {
            _tickHz = AddFlag("tick_hz", "turns of the loop a second; 0: no loop", 0);
            _ticks = AddFlag("ticks", "turns that a step takes", 1);
            _truncateAfter = AddFlag("truncate_after", "steps of an episode; 0: no limit", 0);
            Dispatcher.Register(MethodId.GetSceneInfo, DescribeScene);
        }

        public static int Main(string[] args) => new CounterEngine().Serve(args, "Environments that count, in C#.");

        protected override void Prepare(SharedMemoryConfig config)
        {
            if (_ticks.Value < 1) throw new TandemException(ErrorCode.InvalidArgument, "--ticks: expected 1 or more");
            config.Task = "Counter";
            config.ObsSize = ObsSize;
            config.ActSize = 1;
            _steps = new float[config.NumEnvs];
            _episodes = new float[config.NumEnvs];
            _random = new ulong[config.NumEnvs];
            var start = new Random();
            for (int env = 0; env < config.NumEnvs; ++env) _random[env] = (ulong)start.Next();
        }

        protected override void OnReset(Work work)
        {
            Span<float> obs = work.Obs;
            foreach (ResetRequest reset in work.Resets)
            {
                Reset(reset);
                Observe(reset.Env, obs);
            }
        }

        protected override void OnStep(Work work)
        {
            Span<float> obs = work.Obs, rewards = work.Rewards;
            Span<byte> terminateds = work.Terminateds, truncateds = work.Truncateds;
            ReadOnlySpan<float> actions = work.Actions;
            foreach (int env in work.Envs)
            {
                ++_steps[env];
                rewards[env] = actions[env];
                terminateds[env] = 0;
                truncateds[env] = IsTruncated(env);
                Observe(env, obs);
            }
        }

        protected override void Loop(Engine engine)
        {
            if (_tickHz.Value == 0)
            {
                engine.Run();
                return;
            }
            using (SharedMemoryTransport transport = SharedMemoryTransport.Over(engine))
            {
                Dispatcher.Transport = transport;
                RunFrames(transport);
            }
        }

        // The loop of a frame-based engine: a reset takes one turn, a step --ticks turns.
        private void RunFrames(SharedMemoryTransport transport)
        {
            float[] obs = transport.GetObservationBuffer(_steps.Length, ObsSize);
            float[] actions = transport.GetActionBuffer(_steps.Length, 1);
            double left = 0;  // turns until the pending work is done
            long done = 0;
            while (!transport.Engine.IsStopping)
            {
                Dispatcher.Poll();
                if (left > 0 && --left == 0)
                {
                    FinishFrame(transport, actions, obs);
                    ++done;
                }
                if (left == 0 && transport.ReadActionSeq() != done)
                {
                    transport.ReadActions(actions);
                    left = transport.PendingKind == WorkKind.Step ? Math.Floor(_ticks.Value) : 1;
                }
                Thread.Sleep((int)(1000 / _tickHz.Value));  // here a real engine draws its frame
            }
        }

        private void FinishFrame(SharedMemoryTransport transport, float[] actions, float[] obs)
        {
            foreach (ResetRequest reset in transport.PendingWork.Resets) Reset(reset);
            Span<byte> truncateds = default(Span<byte>);
            if (transport.PendingKind == WorkKind.Step) truncateds = transport.GetTruncatedsSpan();
            foreach (int env in transport.PendingEnvs)
            {
                if (transport.PendingKind == WorkKind.Step)
                {
                    ++_steps[env];
                    truncateds[env] = IsTruncated(env);
                }
                Observe(env, obs);
            }
            transport.WriteObservations(obs);
            transport.WriteRewards(actions);
            transport.IncrementFrameSeq();
        }

        private void Reset(ResetRequest reset)
        {
            if (reset.Seed.HasValue) _random[reset.Env] = reset.Seed.Value;
            _random[reset.Env] = unchecked(_random[reset.Env] * 6364136223846793005 + 1442695040888963407);
            _steps[reset.Env] = 0;
            _episodes[reset.Env] = (_random[reset.Env] >> 32) % 9973;
        }

        private void Observe(int env, Span<float> obs)
        {
            obs[ObsSize * env] = _steps[env];
            obs[ObsSize * env + 1] = _episodes[env];
        }

        private byte IsTruncated(int env) => _steps[env] == _truncateAfter.Value ? (byte)1 : (byte)0;

        private EnvelopeT DescribeScene(Envelope request)
        {
            var info = new GetSceneInfoResponseT { SceneName = "counters", EntityCount = (uint)_steps.Length };
            return new EnvelopeT { Payload = PayloadUnion.FromGetSceneInfoResponse(info) };
        }
    }
}
