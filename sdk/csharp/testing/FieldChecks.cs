// The check of a client's typed fields. It needs the engine of sdk/testing/pair_engine.h with two environments.

using System;
using static Tandem.Testing.Checks;

namespace Tandem.Testing
{
    internal static class FieldChecks
    {
        internal static void Run(string name)
        {
            using (Client client = Client.Attach(name, 60))
            {
                ExpectEqual(0, client.ObsSize);
                ExpectEqual(0, client.ActSize);
                RegionArray pairs = client.Array("obs/pair");
                ExpectEqual(ElementType.Int16, pairs.ElementType);
                ExpectEqual("2,2", string.Join(",", pairs.Shape));
                Span<short> actions = client.Array("action/").Span<short>();
                for (int i = 0; i < actions.Length; ++i) actions[i] = (short)(i - 7);
                client.Step(60);
                ExpectEqual("-7,-6,-5,-4", string.Join(",", pairs.Span<short>().ToArray()));
                ExpectEqual(0.1, client.Array("reward64").Span<double>()[1]);
                ExpectError(ErrorCode.InvalidArgument, "Int16", () => pairs.Span<ushort>());
                ExpectError(ErrorCode.Unsupported, "obs/deep", () => client.Array("obs/deep"));
            }
        }
    }
}
