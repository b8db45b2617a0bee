// Steps an engine with one environment over sdk/csharp, as sdk_client.c does over sdk/tandem.h. Prints the
// time of each step: binary int64 nanoseconds.
//
//   mono SdkClient.exe REGION STEPS SECONDS

using System;
using System.Globalization;
using System.IO;
using System.Runtime.InteropServices;
using Tandem;

internal static unsafe class SdkClient
{
    private const int Monotonic = 1;
    private const long WarmUpNs = 30000000;

    // Mono's own clock has ticks of 100 ns.
    [DllImport("libc.so.6")]
    private static extern int clock_gettime(int clock, long* secondsAndNanos);

    private static long Nanos()
    {
        long* now = stackalloc long[2];
        clock_gettime(Monotonic, now);
        return now[0] * 1000000000 + now[1];
    }

    private static int Main(string[] args)
    {
        try
        {
            double seconds = double.Parse(args[2], CultureInfo.InvariantCulture);
            long[] times = new long[int.Parse(args[1])];
            int count;
            using (Client client = Client.Attach(args[0], 30)) count = Measure(client, times, seconds);
            byte[] bytes = new byte[count * sizeof(long)];
            Buffer.BlockCopy(times, 0, bytes, 0, bytes.Length);
            using (Stream output = Console.OpenStandardOutput()) output.Write(bytes, 0, bytes.Length);
            return 0;
        }
        catch (TandemException e)
        {
            Console.Error.WriteLine(e.Message);
            return 1;
        }
    }

    // Returns the number of times.
    private static int Measure(Client client, long[] times, double seconds)
    {
        Span<float> actions = client.Actions;
        ReadOnlySpan<float> rewards = client.Rewards;
        long warm = Nanos() + WarmUpNs, end = 0;
        int count = 0;
        for (int i = 0; count < times.Length; ++i)
        {
            float action = i & 1;
            actions[0] = action;
            long asked = Nanos();
            client.Step(30);
            long answered = Nanos();
            if (rewards[0] != action)
            {
                throw new InvalidOperationException("step " + i + ": expected the reward " + action);
            }
            if (end != 0)
            {
                times[count++] = answered - asked;
                if (count >= 10 && answered >= end) break;
            }
            else if (answered >= warm)
            {
                end = answered + (long)(1e9 * seconds);
            }
        }
        return count;
    }
}
