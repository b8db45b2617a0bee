// EngineStatus: what a panel shows of an engine. A copy, taken at one moment.
//
//   EngineStatus status = engine.Status;
//   label.Text = status.HasClient ? "client " + status.ClientPid : "no client";

using System.Collections.Generic;

namespace Tandem
{
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

        // A client holds the client lock.
        public bool HasClient { get; private set; }

        // For display.
        public int ClientPid { get; private set; }

        // Their number.
        public int Attendants { get; private set; }

        // Completed since the engine's start.
        public long Exchanges { get; private set; }
        public Services EnabledServices { get; private set; }

        // Invalid RPC messages of the client.
        public long DroppedMessages { get; private set; }

        // The region's name.
        public string Region { get; private set; }

        // "agent", "mujoco" and so on, by the bits of Services.
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
