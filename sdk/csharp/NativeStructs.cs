// The structs of sdk/tandem.h, field by field, with the names of the header. All are blittable.
//
// Data flow: the classes of this assembly fill them -> P/Invoke -> libtandem.so.1, which checks struct_size.
// tests/sdk/csharp_test.py compares sizes and offsets with the header.

namespace Tandem
{
    internal static class NativeStructs
    {
        internal const int MaxDimensions = 4;
        internal const int RegionNameBytes = 256;
    }

    internal unsafe struct tandem_array
    {
        public uint struct_size;
        public uint index;
        public uint dtype;
        public uint dimensions;
        public fixed ulong shape[NativeStructs.MaxDimensions];
        public ulong bytes;
        public void* data;
    }

    internal unsafe struct tandem_work
    {
        public uint struct_size;
        public uint kind;
        public uint count;
        public uint method;
        public ResetRequest* resets;
        public uint* envs;
        public void** data;
        public ulong call;
        public byte* envelope;
        public ulong envelope_size;
    }

    internal unsafe struct tandem_callbacks
    {
        public uint struct_size;
        public uint reserved;
        public void* user;
        public void* work;
        public void* log;
    }

    internal unsafe struct tandem_engine_options
    {
        public uint struct_size;
        public uint num_envs;
        public uint obs_size;
        public uint act_size;
        public byte* name;
        public byte* task;
        public byte* description;
        public ulong seed;
        public uint has_seed;
        public uint disabled_services;
        public double step_secs;
        public ushort* methods;
        public uint method_count;
        public uint reserved;
        public byte* stream_hz;
        public uint rpc_ring_kib;
        public uint reserved_2;
    }

    internal unsafe struct tandem_status
    {
        public uint struct_size;
        public uint has_client;
        public uint client_pid;
        public uint attendants;
        public ulong exchanges;
        public uint enabled_services;
        public uint reserved;
        public ulong dropped_messages;
        public fixed byte region[NativeStructs.RegionNameBytes];
    }

    internal unsafe struct tandem_flag
    {
        public byte* name;
        public byte* help;
        public double* value;
    }

    internal unsafe struct tandem_server
    {
        public uint struct_size;
        public uint flag_count;
        public tandem_flag* flags;
        public byte* usage;
        public void* user;
        public void* prepare;
        public void* work;
        public void* loop;
    }

    internal unsafe struct tandem_client_options
    {
        public uint struct_size;
        public uint autoreset;
        public byte* name;
        public double timeout_secs;
        public uint wait;
        public uint reserved;
    }

    internal unsafe struct tandem_attendant_options
    {
        public uint struct_size;
        public uint reserved;
        public byte* name;
        public byte* label;
        public double timeout_secs;
    }
}
