// An engine by .NET's MemoryMappedFile alone, without Tandem: the protocol's first description. It counts steps, as
// tests/interop/foreign_client.py expects, until its standard input ends. Prints "ready" when a client may come.
//
//   dotnet exec --runtimeconfig runtimeconfig.json NamedMapEngine.exe LuckyEngine_77 <PIPE

using System;
using System.Diagnostics;
using System.IO.MemoryMappedFiles;
using System.Threading;

public static unsafe class NamedMapEngine
{
    private const int Envs = 3, ObsSize = 2, ActSize = 3;
    private const int FrameSeq = 128, ActionSeq = 256, Offsets = 384;
    private const int Obs = 4096, Actions = 4160, Rewards = 4224, Dones = 4288, Resets = 4352, Bytes = 8192;

    public static void Main(string[] args)
    {
        var over = new Thread(() => { while (Console.In.Read() >= 0) { } Environment.Exit(0); });
        over.Start();
        using (var map = MemoryMappedFile.CreateNew(args[0], Bytes, MemoryMappedFileAccess.ReadWrite))
        using (var view = map.CreateViewAccessor())
        {
            byte* at = null;
            view.SafeMemoryMappedViewHandle.AcquirePointer(ref at);
            ((uint*)at)[1] = 1;  // the version
            ((uint*)at)[2] = (uint)Process.GetCurrentProcess().Id;
            ((int*)at)[5] = Envs;
            ((int*)at)[6] = ObsSize;
            ((int*)at)[7] = ActSize;
            long[] places = { Obs, Actions, Rewards, Dones, Resets };
            for (int i = 0; i < places.Length; ++i) ((long*)(at + Offsets))[i] = places[i];
            *(uint*)at = 0x4C524243;  // the magic
            Console.WriteLine("ready");
            Serve(at);
        }
    }

    private static void Serve(byte* at)
    {
        for (long done = 0; ; ++done)
        {
            // Not "another number": Python's struct writes it byte by byte.
            while (Volatile.Read(ref *(long*)(at + ActionSeq)) != done + 1) Thread.Yield();
            for (int env = 0; env < Envs; ++env)
            {
                float* obs = (float*)(at + Obs) + env * ObsSize, action = (float*)(at + Actions) + env * ActSize;
                bool resets = at[Resets + env] != 0;
                at[Resets + env] = 0;
                obs[0] = resets ? 0 : obs[0] + 1;
                obs[1] = resets ? 0 : action[0];
                ((float*)(at + Rewards))[env] = action[0] + action[1] + action[2];
            }
            Volatile.Write(ref *(long*)(at + FrameSeq), done + 1);
        }
    }
}
