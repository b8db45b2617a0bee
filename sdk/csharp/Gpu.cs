// GpuConfig: an engine's arrays in the memory of a GPU. GpuArray: one of them, as an address.
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

        internal unsafe tandem_gpu* Native(UnmanagedMemory memory)
        {
            var gpu = (tandem_gpu*)memory.Allocate(sizeof(tandem_gpu));
            gpu->struct_size = (uint)sizeof(tandem_gpu);
            gpu->cuda_device = SharedMemoryConfig.Count(CudaDevice, nameof(CudaDevice));
            gpu->gpu_only = GpuOnly ? 1u : 0u;
            gpu->image_width = SharedMemoryConfig.Count(ImageWidth, nameof(ImageWidth));
            gpu->image_height = SharedMemoryConfig.Count(ImageHeight, nameof(ImageHeight));
            return gpu;
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
