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
    /// <summary>When an ended episode is followed by the next, as Gymnasium's AutoresetMode.</summary>
    public enum Autoreset
    {
        /// <summary>In the step that ends the episode.</summary>
        SameStep = 0,
        /// <summary>In the step after it.</summary>
        NextStep = 1,
        /// <summary>When the client requests it.</summary>
        Disabled = 2
    }

    /// <summary>How a side waits for the other: docs/waiting.md.</summary>
    public enum WaitMode
    {
        /// <summary>Spins first, then sleeps.</summary>
        Adaptive = 0,
        /// <summary>Spins; needs a core of its own.</summary>
        Spin = 1,
        /// <summary>Sleeps.</summary>
        Block = 2
    }

    /// <summary>Steps an engine from C#.</summary>
    public sealed unsafe class Client : IDisposable, IRegionOwner
    {
        private readonly TandemHandle _handle;
        private RegionArray _obs, _actions, _rewards, _dones, _terminateds, _truncateds, _resets;
        private int _mapping;

        /// <summary>Waits for an engine that serves the region, and attaches. `name` null: LUCKY_SHM_NAME, else
        /// "tandem". Errors: NotReady, StepTimeout, AlreadyAttached, LayoutMismatch, AccessDenied,
        /// EngineFailed.</summary>
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

        /// <summary>The number of environments.</summary>
        public int NumEnvs => _obs.Shape[0];

        /// <summary>Values of an environment's observation.</summary>
        public int ObsSize => _obs.Shape[1];

        /// <summary>Values of an environment's action.</summary>
        public int ActSize => _actions.Shape[1];

        /// <summary>The RPCs of this client.</summary>
        public Rpc Rpc { get; private set; }

        /// <summary>float32[num_envs * obs_size].</summary>
        public ReadOnlySpan<float> Obs => _obs.Span<float>();

        /// <summary>float32[num_envs * act_size], which Send() sends.</summary>
        public Span<float> Actions => _actions.Span<float>();

        /// <summary>One for each environment.</summary>
        public ReadOnlySpan<float> Rewards => _rewards.Span<float>();

        /// <summary>1: the episode has ended, by termination or truncation.</summary>
        public ReadOnlySpan<byte> Dones => _dones.Span<byte>();

        /// <summary>Terminations, [NumEnvs]: 0 or 1.</summary>
        public ReadOnlySpan<byte> Terminateds => _terminateds.Span<byte>();

        /// <summary>Truncations, [NumEnvs]: 0 or 1.</summary>
        public ReadOnlySpan<byte> Truncateds => _truncateds.Span<byte>();

        /// <summary>The region's reset flags, for display: SendReset sets them.</summary>
        public ReadOnlySpan<byte> Resets => _resets.Span<byte>();

        /// <summary>The image region: uint8, in the shape of Array("images"). InvalidArgument: the engine has
        /// none.</summary>
        public ReadOnlySpan<byte> Images => Array("images").Span<byte>();

        int IRegionOwner.MappingNumber
        {
            get
            {
                _handle.ThrowIfClosed(nameof(Client));
                return _mapping;
            }
        }

        /// <summary>Finds an array: those above, and "final_obs", "infos", "final_infos", "images". Of a region with
        /// fields also "obs/PATH", "final_obs/PATH", "action/PATH", "reward64", "status", "episode_return",
        /// "episode_length", as tandem.h says; Obs and Actions are then empty, unless they are float32 rows.
        /// Unsupported: a field of more than four dimensions.</summary>
        public RegionArray Array(string name)
        {
            tandem_array array = default(tandem_array);
            array.struct_size = (uint)sizeof(tandem_array);
            TandemException.Check(Native.tandem_client_array(_handle, Utf8.Bytes(name), &array));
            return new RegionArray(name, ref array, this);
        }

        /// <summary>The task's spaces, infos and time limit, as JSON.</summary>
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

        /// <summary>Requests a step with the values of Actions, all finite. InvalidAction, StepPending, PeerGone:
        /// nothing was sent.</summary>
        public void Send() => TandemException.Check(Native.tandem_client_send(_handle, null, 0));

        /// <summary>Copies num_envs * act_size actions, and requests a step.</summary>
        public void Send(ReadOnlySpan<float> actions)
        {
            if (actions.IsEmpty)
                throw new TandemException(ErrorCode.InvalidAction, "expected actions, found an empty span");
            fixed (float* values = &MemoryMarshal.GetReference(actions))
            {
                TandemException.Check(Native.tandem_client_send(_handle, values, (ulong)actions.Length));
            }
        }

        /// <summary>Requests a reset of these environments; the others keep their state.</summary>
        public void SendReset(ReadOnlySpan<ResetRequest> resets)
        {
            fixed (ResetRequest* first = &MemoryMarshal.GetReference(resets))
            {
                TandemException.Check(Native.tandem_client_send_reset(_handle, first, (uint)resets.Length));
            }
        }

        /// <summary>Waits for the results of what was sent. StepTimeout: it is still pending. PeerGone, BrokenPeer:
        /// Reconnect or Dispose. EngineFailed: the arrays have no results.</summary>
        public void Recv(double timeoutSecs = 10)
        {
            TandemException.Check(Native.tandem_client_recv(_handle, timeoutSecs));
        }

        /// <summary>A Send, then a Recv.</summary>
        public void Step(double timeoutSecs = 10)
        {
            Send();
            Recv(timeoutSecs);
        }

        /// <summary>Send with these actions, then Recv.</summary>
        public void Step(ReadOnlySpan<float> actions, double timeoutSecs = 10)
        {
            Send(actions);
            Recv(timeoutSecs);
        }

        /// <summary>Resets all environments; environment i starts with seed + i.</summary>
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

        /// <summary>Attaches again, to the engine that now has the name. All environments are reset. LayoutMismatch:
        /// task, sizes or layout changed. RPCs that wait get ClientClosed. Spans from before are invalid.</summary>
        public void Reconnect(double timeoutSecs = 10)
        {
            ++_mapping;
            TandemException.Check(Native.tandem_client_reconnect(_handle, timeoutSecs));
            FindArrays();
        }

        /// <summary>Leaves the engine. If a call of another thread is in progress, the client leaves at the end of that
        /// call. Twice: no effect.</summary>
        public void Dispose() => _handle.Dispose();

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
