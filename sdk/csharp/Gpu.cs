// GpuConfig: an engine's arrays in the memory of a GPU. GpuArray: one of them, as an address. GpuMemory: of the engine.
//
// Data flow: SharedMemoryConfig.Gpu -> the library allocates and exports the arrays -> Engine.GpuArray -> the engine's
// CUDA code writes them on the stream of Engine.SetGpuStream -> the client.
// The library loads the GPU's driver; this assembly has no code for a GPU.
//
//   config.Gpu = new GpuConfig { CudaDevice = 0 };
//   GpuArray obs = engine.GpuArray("obs");
//   LaunchKernel(obs.Address, obs.Shape);

using System;

namespace Tandem
{
    /// <summary>Where an engine writes observations on a GPU.</summary>
    public sealed class GpuConfig
    {
        /// <summary>The device's number.</summary>
        public int CudaDevice { get; set; }
        /// <summary>The engine writes its observations on the GPU only, and cannot serve without the device. false:
        /// also in the region.</summary>
        public bool GpuOnly { get; set; }
        /// <summary>Pixels of images on the GPU; 0: none.</summary>
        public int ImageWidth { get; set; }
        /// <summary>As ImageWidth.</summary>
        public int ImageHeight { get; set; }
        /// <summary>Of the images, which then are alone on the GPU. null: the library allocates the arrays.</summary>
        public GpuMemory Memory { get; set; }

        internal unsafe tandem_gpu* Native(UnmanagedMemory memory)
        {
            var gpu = (tandem_gpu*)memory.Allocate(sizeof(tandem_gpu));
            gpu->struct_size = (uint)sizeof(tandem_gpu);
            gpu->cuda_device = SharedMemoryConfig.Count(CudaDevice, nameof(CudaDevice));
            gpu->gpu_only = GpuOnly ? 1u : 0u;
            gpu->image_width = SharedMemoryConfig.Count(ImageWidth, nameof(ImageWidth));
            gpu->image_height = SharedMemoryConfig.Count(ImageHeight, nameof(ImageHeight));
            if (Memory != null) gpu->memory = Memory.Native(memory);
            return gpu;
        }
    }

    /// <summary>Memory that the engine has exported itself, for images: see tandem_gpu_memory of tandem.h.</summary>
    public sealed class GpuMemory
    {
        /// <summary>Of vkGetMemoryFdKHR; the program keeps it open until the engine's Dispose.</summary>
        public int Descriptor { get; set; }
        /// <summary>The size of the allocation, in bytes.</summary>
        public long Bytes { get; set; }
        /// <summary>Of the images in the allocation; a multiple of 256.</summary>
        public long Offset { get; set; }
        /// <summary>3: RGB; 4: RGBA.</summary>
        public int Channels { get; set; }
        /// <summary>Whether it is a dedicated allocation.</summary>
        public bool Dedicated { get; set; }
        /// <summary>The device's deviceUUID, 16 bytes.</summary>
        public byte[] DeviceUuid { get; set; }

        internal unsafe tandem_gpu_memory* Native(UnmanagedMemory allocator)
        {
            if (DeviceUuid == null || DeviceUuid.Length != 16 || Bytes < 0 || Offset < 0)
            {
                throw new TandemException(ErrorCode.InvalidArgument, "Memory: expected a DeviceUuid of 16 bytes, Bytes "
                    + "and Offset of 0 or more, found " + DeviceUuid?.Length + ", " + Bytes + " and " + Offset);
            }
            var memory = (tandem_gpu_memory*)allocator.Allocate(sizeof(tandem_gpu_memory));
            memory->struct_size = (uint)sizeof(tandem_gpu_memory);
            memory->fd = Descriptor;
            memory->bytes = (ulong)Bytes;
            memory->offset = (ulong)Offset;
            memory->channels = SharedMemoryConfig.Count(Channels, nameof(Channels));
            memory->dedicated = Dedicated ? 1u : 0u;
            for (int i = 0; i < 16; i++) memory->device_uuid[i] = DeviceUuid[i];
            return memory;
        }
    }

    /// <summary>An array in the memory of a GPU, valid until the engine's Dispose.</summary>
    public sealed unsafe class GpuArray
    {
        internal GpuArray(ref tandem_array array)
        {
            ElementType = (ElementType)array.dtype;
            Shape = RegionArray.ShapeOf(ref array);
            Bytes = checked((long)array.bytes);
            Address = (IntPtr)array.data;
        }

        /// <summary>The type of its elements.</summary>
        public ElementType ElementType { get; private set; }
        /// <summary>In C order. The first dimension is the environment.</summary>
        public int[] Shape { get; private set; }
        /// <summary>The size of all elements, in bytes.</summary>
        public long Bytes { get; private set; }
        /// <summary>On the device; the CPU cannot read it.</summary>
        public IntPtr Address { get; private set; }
    }
}
