// The number is for programs, the text for users: what was expected, what was found, what to do next.
//
//   try { client.Step(); }
//   catch (PeerGoneException) { client.Reconnect(); }
//   catch (TandemException e) when (e.Code == ErrorCode.InvalidAction) { Console.Error.WriteLine(e.Message); }

using System;

namespace Tandem
{
    /// <summary>The numbers of tandem.h. A released number keeps its meaning.</summary>
    public enum ErrorCode
    {
        /// <summary>No error.</summary>
        Ok = 0,
        /// <summary>No engine serves a region of that name yet.</summary>
        NotReady = 1,
        /// <summary>The other side has left or died.</summary>
        PeerGone = 2,
        /// <summary>The other side did not answer before the deadline.</summary>
        StepTimeout = 3,
        /// <summary>The region is not laid out as this side understands it.</summary>
        LayoutMismatch = 4,
        /// <summary>Another engine or client holds this place.</summary>
        AlreadyAttached = 5,
        /// <summary>An exchange was sent whose results were not yet received.</summary>
        StepPending = 6,
        /// <summary>There is nothing to receive: no exchange was sent.</summary>
        NoStepPending = 7,
        /// <summary>Another thread is inside a call on the same client.</summary>
        ConcurrentUse = 8,
        /// <summary>The object belongs to the parent of this forked process.</summary>
        ForkedChild = 9,
        /// <summary>The object was closed, or lost its session.</summary>
        ClientClosed = 10,
        /// <summary>Actions of a wrong shape or dtype, not contiguous or not finite.</summary>
        InvalidAction = 11,
        /// <summary>Invalid name, size, option or index.</summary>
        InvalidArgument = 12,
        /// <summary>The other side broke the protocol.</summary>
        BrokenPeer = 13,
        /// <summary>The engine reported a failure of its own.</summary>
        EngineFailed = 14,
        /// <summary>An engine process ended before it served its region.</summary>
        EngineStartFailed = 15,
        /// <summary>The region belongs to another user.</summary>
        AccessDenied = 16,
        /// <summary>/dev/shm has no room for the region.</summary>
        OutOfSharedMemory = 17,
        /// <summary>The wait was interrupted; the exchange is still pending.</summary>
        Interrupted = 18,
        /// <summary>The RPC ring has no room for the message now.</summary>
        RingFull = 19,
        /// <summary>The RPC ring holds no message now.</summary>
        RingEmpty = 20,
        /// <summary>The message is larger than the RPC rings carry.</summary>
        MessageTooLarge = 21,
        /// <summary>This version cannot do that.</summary>
        Unsupported = 22,
        /// <summary>A system call failed.</summary>
        SystemCallFailed = 23,
        /// <summary>An environment raised an exception in its worker process.</summary>
        EnvFailed = 24,
        /// <summary>A call of the GPU driver failed or was refused.</summary>
        GpuFailed = 25,
        /// <summary>There is no GPU driver, or no GPU.</summary>
        GpuDriverMissing = 26,
        /// <summary>The GPU driver is older than this version needs.</summary>
        GpuDriverTooOld = 27,
        /// <summary>The arrays are on a GPU that this process does not see.</summary>
        GpuOtherDevice = 28,
        /// <summary>The engine's GPU memory is gone.</summary>
        GpuStaleHandle = 29,
        /// <summary>Another context than the device's primary one is current.</summary>
        GpuOtherContext = 30
    }

    /// <summary>An error of the library, with its number and its text.</summary>
    public class TandemException : Exception
    {
        /// <summary>Makes the exception of a code; the message begins with the code's name.</summary>
        public TandemException(ErrorCode code, string text) : base(code + ": " + text)
        {
            Code = code;
            Text = text;
        }

        /// <summary>The error's number.</summary>
        public ErrorCode Code { get; private set; }

        /// <summary>Without the code's name.</summary>
        public string Text { get; private set; }

        /// <summary>The exception of a code. Codes that programs handle differently have classes of their
        /// own.</summary>
        public static TandemException Of(ErrorCode code, string text)
        {
            switch (code)
            {
                case ErrorCode.PeerGone: return new PeerGoneException(text);
                case ErrorCode.StepTimeout: return new StepTimeoutException(text);
                case ErrorCode.LayoutMismatch: return new LayoutMismatchException(text);
                case ErrorCode.AlreadyAttached: return new AlreadyAttachedException(text);
                case ErrorCode.EngineFailed: return new EngineFailedException(text);
                case ErrorCode.EnvFailed: return new EnvFailedException(text);
                default: return new TandemException(code, text);
            }
        }

        // Throws if the code is an error; its text is that of this thread's last failed call.
        internal static void Check(int code)
        {
            if (code != 0) throw Of((ErrorCode)code, LastError());
        }

        private static unsafe string LastError()
        {
            byte[] text = new byte[Native.tandem_last_error(null, 0) + 1];
            fixed (byte* bytes = text)
            {
                Native.tandem_last_error(bytes, (ulong)text.Length);
                return Utf8.Text(bytes);
            }
        }
    }

    /// <summary>The other process has stopped or died: reconnect or close.</summary>
    public sealed class PeerGoneException : TandemException
    {
        /// <summary>Makes it with the library's text.</summary>
        public PeerGoneException(string text) : base(ErrorCode.PeerGone, text) { }
    }

    /// <summary>No answer in time. The step is still pending; so is an RPC at the engine.</summary>
    public sealed class StepTimeoutException : TandemException
    {
        /// <summary>Makes it with the library's text.</summary>
        public StepTimeoutException(string text) : base(ErrorCode.StepTimeout, text) { }
    }

    /// <summary>The engine's task, sizes or layout are not the expected ones.</summary>
    public sealed class LayoutMismatchException : TandemException
    {
        /// <summary>Makes it with the library's text.</summary>
        public LayoutMismatchException(string text) : base(ErrorCode.LayoutMismatch, text) { }
    }

    /// <summary>The name, the client slot or the attendants' slots are in use.</summary>
    public sealed class AlreadyAttachedException : TandemException
    {
        /// <summary>Makes it with the library's text.</summary>
        public AlreadyAttachedException(string text) : base(ErrorCode.AlreadyAttached, text) { }
    }

    /// <summary>The engine could not do the step, the reset or the RPC.</summary>
    public class EngineFailedException : TandemException
    {
        /// <summary>Makes it with the library's text.</summary>
        public EngineFailedException(string text) : this(ErrorCode.EngineFailed, text) { }

        internal EngineFailedException(ErrorCode code, string text) : base(code, text) { }
    }

    /// <summary>An environment raised an exception in its worker process.</summary>
    public sealed class EnvFailedException : EngineFailedException
    {
        /// <summary>Makes it with the library's text.</summary>
        public EnvFailedException(string text) : base(ErrorCode.EnvFailed, text) { }
    }
}
