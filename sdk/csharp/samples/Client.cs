// Client: 1,000 steps with the action 0.5, and a call of an RPC. Argument: the region's name.
//
//   mono Client.exe demo

using System;
using tandem.rpc;

namespace Tandem.Samples
{
    public static class Client
    {
        public static int Main(string[] args)
        {
            if (args.Length > 1 || (args.Length > 0 && args[0].StartsWith("-", StringComparison.Ordinal)))
            {
                bool helps = args[0] == "--help" || args[0] == "-h";
                (helps ? Console.Out : Console.Error).WriteLine("Usage: mono Client.exe [NAME]\n\n"
                    + "Steps the engine of the region NAME 1,000 times, and calls an RPC.\n"
                    + "Default: $LUCKY_SHM_NAME, else tandem.");
                return helps ? 0 : 2;
            }
            try
            {
                using (Tandem.Client client = Tandem.Client.Attach(args.Length > 0 ? args[0] : null)) Run(client);
                return 0;
            }
            catch (TandemException e)
            {
                Console.Error.WriteLine(e.Message);
                return 1;
            }
        }

        private static void Run(Tandem.Client client)
        {
            Console.WriteLine("attached: " + client.NumEnvs + " environments");
            client.Reset(seed: 0);
            client.Actions.Fill(0.5f);
            double sum = 0;
            for (int step = 0; step < 1000; ++step)
            {
                client.Step();
                sum += client.Rewards[0];
            }
            Console.WriteLine("1000 steps, return " + sum + " of the first environment");

            var request = new EnvelopeT
            {
                Method = MethodId.GetAgentSchema,
                Payload = PayloadUnion.FromGetAgentSchemaRequest(new GetAgentSchemaRequestT())
            };
            AgentSchemaT agent = client.Rpc.Call(request).Payload.AsGetAgentSchemaResponse().Schema;
            Console.WriteLine(
                agent.AgentName + ": " + agent.ObservationSize + " observations, " + agent.ActionSize + " actions");
        }
    }
}
