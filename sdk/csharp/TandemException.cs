// TandemException: an error of the library, with its number and its text.
//
// The number is for programs, the text for users: what was expected, what was found, what to do next.
//
//   try { client.Step(); }
//   catch (PeerGoneException) { client.Reconnect(); }
//   catch (TandemException e) when (e.Code == ErrorCode.InvalidAction) { Console.Error.WriteLine(e.Message); }

using System;

namespace Tandem
{
    // The numbers of tandem.h. A released number keeps its meaning.
    public enum ErrorCode
    {
        Ok = 0,
        NotReady = 1,
        PeerGone = 2,
        StepTimeout = 3,
        LayoutMismatch = 4,
        AlreadyAttached = 5,
        StepPending = 6,
        NoStepPending = 7,
        ConcurrentUse = 8,
        ForkedChild = 9,
        ClientClosed = 10,
        InvalidAction = 11,
        InvalidArgument = 12,
        BrokenPeer = 13,
        EngineFailed = 14,
        EngineStartFailed = 15,
        AccessDenied = 16,
        OutOfSharedMemory = 17,
        Interrupted = 18,
        RingFull = 19,
        RingEmpty = 20,
        MessageTooLarge = 21,
        Unsupported = 22,
        SystemCallFailed = 23,
        EnvFailed = 24,
        GpuFailed = 25,
        GpuDriverMissing = 26,
        GpuDriverTooOld = 27,
        GpuOtherDevice = 28,
        GpuStaleHandle = 29,
        GpuOtherContext = 30
    }

    public class TandemException : Exception
    {
        public TandemException(ErrorCode code, string text) : base(code + ": " + text)
        {
            Code = code;
            Text = text;
        }

        public ErrorCode Code { get; private set; }

        // Without the code's name.
        public string Text { get; private set; }

        // The exception of a code. Codes that programs handle differently have classes of their own.
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

    // The other process has stopped or died: reconnect or close.
    public sealed class PeerGoneException : TandemException
    {
        public PeerGoneException(string text) : base(ErrorCode.PeerGone, text) { }
    }

    // No answer in time. The step is still pending; so is an RPC at the engine.
    public sealed class StepTimeoutException : TandemException
    {
        public StepTimeoutException(string text) : base(ErrorCode.StepTimeout, text) { }
    }

    // The engine's task, sizes or layout are not the expected ones.
    public sealed class LayoutMismatchException : TandemException
    {
        public LayoutMismatchException(string text) : base(ErrorCode.LayoutMismatch, text) { }
    }

    // The name, the client slot or the attendants' slots are in use.
    public sealed class AlreadyAttachedException : TandemException
    {
        public AlreadyAttachedException(string text) : base(ErrorCode.AlreadyAttached, text) { }
    }

    // The engine could not do the step, the reset or the RPC.
    public class EngineFailedException : TandemException
    {
        public EngineFailedException(string text) : this(ErrorCode.EngineFailed, text) { }

        internal EngineFailedException(ErrorCode code, string text) : base(code, text) { }
    }

    // An environment raised an exception in its worker process.
    public sealed class EnvFailedException : EngineFailedException
    {
        public EnvFailedException(string text) : base(ErrorCode.EnvFailed, text) { }
    }
}
