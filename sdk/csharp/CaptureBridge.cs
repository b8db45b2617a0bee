// CaptureBridge: the images that a transport's callers wait for, and the method that publishes their pixels.
//
// Data flow: a viewer or a caller of camera or viewport -> SharedMemoryTransport takes the request -> Wanted -> the
// engine draws, perhaps some frames later -> Publish -> the caller.
// Threads: any, at any time; Requested is raised by the transport's thread.
//
//   foreach (DrawRequest wanted in transport.Captures.Wanted)  // once a frame
//     transport.Captures.Publish(wanted, Render(wanted), PixelFormat.Rgba8, bottomUp: true);

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.InteropServices;

namespace Tandem
{
    /// <summary>The images that callers wait for, of an engine with a frame loop of its own.</summary>
    public sealed class CaptureBridge
    {
        private const int MostWanted = 256;  // callers wait for at most 128 images of cameras, and some frames

        private readonly Engine _engine;
        private readonly List<KeyValuePair<DrawRequest, long>> _wanted = new List<KeyValuePair<DrawRequest, long>>();

        internal CaptureBridge(Engine engine)
        {
            _engine = engine;
        }

        /// <summary>Raised when an image is requested, for engines that draw at once; it is in Wanted
        /// already.</summary>
        public event Action<DrawRequest> Requested;

        /// <summary>The unanswered requests, the oldest first, without frames whose time is over. The caller of a
        /// camera's image may have left: then Publish returns false.</summary>
        public DrawRequest[] Wanted
        {
            get
            {
                lock (_wanted)
                {
                    _wanted.RemoveAll(each => each.Value < Stopwatch.GetTimestamp());
                    return _wanted.ConvertAll(each => each.Key).ToArray();
                }
            }
        }

        /// <summary>As Engine.Drawn: false: no caller waits for it now. InvalidArgument: the image does not fit the
        /// request, which stays in Wanted.</summary>
        public bool Publish(DrawRequest wanted, ReadOnlySpan<byte> pixels, PixelFormat format = PixelFormat.Rgb8,
            int stride = 0, bool bottomUp = false)
        {
            bool delivered = _engine.Drawn(wanted, pixels, format, stride, bottomUp);
            Remove(wanted);
            return delivered;
        }

        /// <summary>The same with distances in metres.</summary>
        public bool Publish(DrawRequest wanted, ReadOnlySpan<float> metres)
        {
            return Publish(wanted, MemoryMarshal.AsBytes(metres), PixelFormat.Depth32F);
        }

        /// <summary>Answers a request with an error and its text. false: as Publish.</summary>
        public bool Refuse(DrawRequest wanted, ErrorCode code, string text)
        {
            Remove(wanted);
            return _engine.RefuseDraw(wanted, code, text);
        }

        internal void Add(DrawRequest request)
        {
            double secs = request.PatienceSecs > 0 ? Math.Min(request.PatienceSecs, 1e6) : 1e6;
            long until = Stopwatch.GetTimestamp() + (long)(secs * Stopwatch.Frequency);
            DrawRequest? oldest = null;
            lock (_wanted)
            {
                _wanted.Add(new KeyValuePair<DrawRequest, long>(request, until));
                if (_wanted.Count > MostWanted) oldest = _wanted[0].Key;
            }
            if (oldest.HasValue)
            {
                Refuse(oldest.Value, ErrorCode.EngineFailed,
                    "image: expected an engine that draws what is wanted, found " + MostWanted
                    + " later requests; the engine publishes them by CaptureBridge.Publish");
            }
            Requested?.Invoke(request);
        }

        private void Remove(DrawRequest request)
        {
            lock (_wanted) _wanted.RemoveAll(each => each.Key.Number == request.Number);
        }
    }
}
