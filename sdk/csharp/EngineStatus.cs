// EngineStatus: what a panel shows of an engine. A copy, taken at one moment.
//
//   EngineStatus status = engine.Status;
//   label.Text = status.HasClient ? "client " + status.ClientPid : "no client";

using System.Collections.Generic;

namespace Tandem
{
    /// <summary>What a panel shows of an engine.</summary>
    public sealed class EngineStatus
    {
        internal unsafe EngineStatus(ref tandem_status status)
        {
            HasClient = status.has_client != 0;
            ClientPid = (int)status.client_pid;
            Attendants = (int)status.attendants;
            Exchanges = (long)status.exchanges;
            EnabledServices = (Services)status.enabled_services;
            DroppedMessages = (long)status.dropped_messages;
            fixed (byte* region = status.region) Region = Utf8.Text(region);
        }

        /// <summary>A client holds the client lock.</summary>
        public bool HasClient { get; private set; }

        /// <summary>For display.</summary>
        public int ClientPid { get; private set; }

        /// <summary>Their number.</summary>
        public int Attendants { get; private set; }

        /// <summary>Completed since the engine's start.</summary>
        public long Exchanges { get; private set; }
        /// <summary>The services that answer.</summary>
        public Services EnabledServices { get; private set; }

        /// <summary>Invalid RPC messages of the client.</summary>
        public long DroppedMessages { get; private set; }

        /// <summary>The region's name.</summary>
        public string Region { get; private set; }

        /// <summary>"agent", "mujoco" and so on, by the bits of Services.</summary>
        public static unsafe IReadOnlyList<string> ServiceNames
        {
            get
            {
                var names = new List<string>();
                for (uint bit = 0; Native.tandem_service_name(bit) != null; ++bit)
                {
                    names.Add(Utf8.Text(Native.tandem_service_name(bit)));
                }
                return names;
            }
        }
    }
}
