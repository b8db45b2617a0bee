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
        public byte* name;
        public tandem_draw* draw;
        public tandem_contract** contracts;
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
        public tandem_field* fields;
        public uint field_count, image_width, image_height, image_slot_kib;
        public tandem_services* services;
        public tandem_gpu* gpu;
        public tandem_frames* frames;
    }

    internal unsafe struct tandem_field
    {
        public byte* name;
        public uint dtype, dimensions;
        public fixed ulong shape[NativeStructs.MaxDimensions];
    }

    internal struct tandem_draw
    {
        public uint struct_size, purpose, env, camera, width, height, depth, reserved;
        public double patience_secs;
    }

    internal unsafe struct tandem_image
    {
        public uint struct_size, format, width, height;
        public void* data;
        public long stride;
    }

    internal unsafe struct tandem_range
    {
        public byte* name;
        public uint count;
        public fixed float values[3];
        public byte* text;
    }

    internal unsafe struct tandem_contract
    {
        public uint struct_size, range_count;
        public tandem_range* ranges;
        public uint begins, reserved;
        public ulong seed;
    }

    internal unsafe struct tandem_entity
    {
        public byte* name, components;
    }

    internal unsafe struct tandem_transform
    {
        public uint struct_size, has_position, has_rotation, has_scale;
        public fixed float position[3];
        public fixed float rotation[4];
        public fixed float scale[3];
        public uint reserved;
    }

    internal unsafe struct tandem_actuator
    {
        public byte* name;
        public float low, high;
    }

    internal unsafe struct tandem_mark
    {
        public uint is_arrow;
        public fixed float from[3];
        public fixed float to[3];
        public fixed float rgba[4];
    }

    internal unsafe struct tandem_method
    {
        public byte* name, content_type, help;
    }

    internal unsafe struct tandem_services
    {
        public uint struct_size, reserved;
        public void* user;
        public byte* scene_name;
        public tandem_entity* entities;
        public uint entity_count, reserved_2;
        public void* transform, move;
        public byte** joint_names;
        public uint joint_count, position_count;
        public byte** position_names;
        public uint velocity_count, actuator_count;
        public tandem_actuator* actuators;
        public void* joints, controls, set_control, show_marks;
        public byte** cameras, viewports;
        public uint camera_count, viewport_count, image_width, image_height, draws_frames, contract_field_count;
        public byte** contract_fields;
        public tandem_method* own_methods;
        public uint own_method_count, reserved_3;
        public void* scene, poses, save_state, load_state;
    }

    internal unsafe struct tandem_gpu_memory
    {
        public uint struct_size;
        public int fd;
        public ulong bytes, offset;
        public uint channels, dedicated;
        public fixed byte device_uuid[16];
    }

    internal unsafe struct tandem_gpu
    {
        public uint struct_size, cuda_device, gpu_only, image_width, image_height, reserved;
        public tandem_gpu_memory* memory;
    }

    internal unsafe struct tandem_frames
    {
        public uint struct_size, width, height, env_count;
        public uint* envs;
        public double hz;
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
