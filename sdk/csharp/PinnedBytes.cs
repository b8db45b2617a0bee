// PinnedBytes: an array at a fixed address, until the object is collected.

using System;
using System.Runtime.InteropServices;

namespace Tandem
{
    internal sealed class PinnedBytes
    {
        private GCHandle _handle;

        // null: no bytes.
        internal PinnedBytes(byte[] bytes)
        {
            _handle = GCHandle.Alloc(bytes ?? new byte[0], GCHandleType.Pinned);
            Length = bytes == null ? 0 : bytes.Length;
        }

        ~PinnedBytes() { _handle.Free(); }

        internal int Length { get; private set; }
        internal IntPtr Address => _handle.AddrOfPinnedObject();
    }
}
