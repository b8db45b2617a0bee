// Client: steps an engine from C#.
//
// Data flow: Actions or Send's argument -> Send -> the engine -> Recv -> Obs, Rewards and the other arrays.
// Lifetime of spans: until Dispose or Reconnect. Between Send and Recv the arrays belong to the engine.
//
// | state    | legal                                    | next state              |
// |----------|------------------------------------------|-------------------------|
// | idle     | Send, SendReset, Step, Reset             | pending after a send    |
// | pending  | Recv                                     | idle, or still pending after StepTimeout |
// | any      | Array, Rpc, Reconnect                    | Reconnect: idle         |
// | disposed | Dispose; the rest throws ObjectDisposedException | disposed        |
//
// Threads: one at a time; Rpc: any number, at any time.
//
//   using (Client client = Client.Attach("demo")) {
//     client.Actions.Fill(0.5f);
//     client.Step();
//     float reward = client.Rewards[0];
//   }

using System;
using System.Runtime.InteropServices;

namespace Tandem
{
    public enum Autoreset
    {
        SameStep = 0,
        NextStep = 1,
        Disabled = 2
    }

    public enum WaitMode
    {
        Adaptive = 0,
        Spin = 1,
        Block = 2
    }

    public sealed unsafe class Client : IDisposable, IRegionOwner
    {
        private readonly TandemHandle _handle;
        private RegionArray _obs, _actions, _rewards, _dones, _terminateds, _truncateds, _resets;
        private int _mapping;

        // Waits for an engine that serves the region, and attaches. `name` null: LUCKY_SHM_NAME, else "tandem". Errors:
        // NotReady, StepTimeout, AlreadyAttached, LayoutMismatch, AccessDenied, EngineFailed.
        public static Client Attach(string name = null, double timeoutSecs = 10,
            Autoreset autoreset = Autoreset.SameStep, WaitMode wait = WaitMode.Adaptive)
        {
            Native.CheckVersion();
            fixed (byte* text = Utf8.Bytes(name))
            {
                tandem_client_options options = default(tandem_client_options);
                options.struct_size = (uint)sizeof(tandem_client_options);
                options.autoreset = (uint)autoreset;
                options.name = text;
                options.timeout_secs = timeoutSecs;
                options.wait = (uint)wait;
                IntPtr client;
                TandemException.Check(Native.tandem_client_attach(&options, out client));
                return new Client(client);
            }
        }

        private Client(IntPtr client)
        {
            _handle = new TandemHandle(client, Native.tandem_client_close);
            FindArrays();
            Rpc = new Rpc(Native.tandem_client_rpc(_handle), _handle);
        }

        public int NumEnvs => _obs.Shape[0];

        public int ObsSize => _obs.Shape[1];

        public int ActSize => _actions.Shape[1];

        // The RPCs of this client.
        public Rpc Rpc { get; private set; }

        // float32[num_envs * obs_size].
        public ReadOnlySpan<float> Obs => _obs.Span<float>();

        // float32[num_envs * act_size], which Send() sends.
        public Span<float> Actions => _actions.Span<float>();

        // One for each environment.
        public ReadOnlySpan<float> Rewards => _rewards.Span<float>();

        // 1: the episode has ended, by termination or truncation.
        public ReadOnlySpan<byte> Dones => _dones.Span<byte>();

        public ReadOnlySpan<byte> Terminateds => _terminateds.Span<byte>();

        public ReadOnlySpan<byte> Truncateds => _truncateds.Span<byte>();

        // The region's reset flags, for display: SendReset sets them.
        public ReadOnlySpan<byte> Resets => _resets.Span<byte>();

        // The image region: uint8, in the shape of Array("images"). InvalidArgument: the engine has none.
        public ReadOnlySpan<byte> Images => Array("images").Span<byte>();

        int IRegionOwner.MappingNumber
        {
            get
            {
                _handle.ThrowIfClosed(nameof(Client));
                return _mapping;
            }
        }

        // Finds an array: those above, and "final_obs", "infos", "final_infos", "images". Of a region with fields also
        // "obs/PATH", "final_obs/PATH", "action/PATH", "reward64", "status", "episode_return", "episode_length", as
        // tandem.h says; Obs and Actions are then empty, unless they are float32 rows. Unsupported: a field of more
        // than four dimensions.
        public RegionArray Array(string name)
        {
            tandem_array array = default(tandem_array);
            array.struct_size = (uint)sizeof(tandem_array);
            TandemException.Check(Native.tandem_client_array(_handle, Utf8.Bytes(name), &array));
            return new RegionArray(name, ref array, this);
        }

        // The task's spaces, infos and time limit, as JSON.
        public string Description
        {
            get
            {
                byte[] text = new byte[Native.tandem_client_description(_handle, null, 0) + 1];
                fixed (byte* bytes = text)
                {
                    Native.tandem_client_description(_handle, bytes, (ulong)text.Length);
                    return Utf8.Text(bytes);
                }
            }
        }

        // Requests a step with the values of Actions, all finite. InvalidAction, StepPending, PeerGone: nothing was
        // sent.
        public void Send()
        {
            TandemException.Check(Native.tandem_client_send(_handle, null, 0));
        }

        // Copies num_envs * act_size actions, and requests a step.
        public void Send(ReadOnlySpan<float> actions)
        {
            if (actions.IsEmpty)
                throw new TandemException(ErrorCode.InvalidAction, "expected actions, found an empty span");
            fixed (float* values = &MemoryMarshal.GetReference(actions))
            {
                TandemException.Check(Native.tandem_client_send(_handle, values, (ulong)actions.Length));
            }
        }

        // Requests a reset of these environments; the others keep their state.
        public void SendReset(ReadOnlySpan<ResetRequest> resets)
        {
            fixed (ResetRequest* first = &MemoryMarshal.GetReference(resets))
            {
                TandemException.Check(Native.tandem_client_send_reset(_handle, first, (uint)resets.Length));
            }
        }

        // Waits for the results of what was sent. StepTimeout: it is still pending. PeerGone, BrokenPeer: Reconnect or
        // Dispose. EngineFailed: the arrays have no results.
        public void Recv(double timeoutSecs = 10)
        {
            TandemException.Check(Native.tandem_client_recv(_handle, timeoutSecs));
        }

        // A Send, then a Recv.
        public void Step(double timeoutSecs = 10)
        {
            Send();
            Recv(timeoutSecs);
        }

        public void Step(ReadOnlySpan<float> actions, double timeoutSecs = 10)
        {
            Send(actions);
            Recv(timeoutSecs);
        }

        // Resets all environments; environment i starts with seed + i.
        public void Reset(ulong? seed = null, double timeoutSecs = 10)
        {
            var resets = new ResetRequest[NumEnvs];
            for (int i = 0; i < resets.Length; ++i)
            {
                resets[i] = new ResetRequest(i, seed.HasValue ? seed + (ulong)i : null);
            }
            SendReset(resets);
            Recv(timeoutSecs);
        }

        // Attaches again, to the engine that now has the name. All environments are reset. LayoutMismatch: task, sizes
        // or layout changed. RPCs that wait get ClientClosed. Spans from before are invalid.
        public void Reconnect(double timeoutSecs = 10)
        {
            ++_mapping;
            TandemException.Check(Native.tandem_client_reconnect(_handle, timeoutSecs));
            FindArrays();
        }

        // Leaves the engine. If a call of another thread is in progress, the client leaves at the end of that call.
        // Twice: no effect.
        public void Dispose()
        {
            _handle.Dispose();
        }

        private void FindArrays()
        {
            _obs = Array("obs");
            _actions = Array("actions");
            _rewards = Array("rewards");
            _dones = Array("dones");
            _terminateds = Array("terminateds");
            _truncateds = Array("truncateds");
            _resets = Array("resets");
        }
    }
}
