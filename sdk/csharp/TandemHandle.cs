// TandemHandle: the handle of an engine, a client or an attendant.
//
// Dispose closes the handle at once, or, if a call on it is in progress, at the end of that call: P/Invoke counts the
// calls. A call after Dispose throws ObjectDisposedException. Dispose twice has no effect.
//
// There is no finaliser. Spans of a region do not keep its owner alive, so a collector that unmaps the region could do
// so while a span is in use. A handle without Dispose stays open until the process ends; the file of an engine's region
// then stays too, as after a crash, until an engine uses the name again.

using System;
using System.Runtime.InteropServices;

namespace Tandem
{
    internal sealed class TandemHandle : SafeHandle
    {
        private readonly Func<IntPtr, int> _close;

        // `close` is called once, by the thread of Dispose or by that of the last call.
        internal TandemHandle(IntPtr handle, Func<IntPtr, int> close) : base(IntPtr.Zero, true)
        {
            GC.SuppressFinalize(this);
            _close = close;
            SetHandle(handle);
        }

        public override bool IsInvalid => handle == IntPtr.Zero;

        internal void ThrowIfClosed(string owner)
        {
            if (IsClosed) throw new ObjectDisposedException(owner);
        }

        protected override bool ReleaseHandle() => _close(handle) == 0;
    }
}
