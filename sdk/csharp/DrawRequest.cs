// DrawRequest: an image that the library asks the engine for, of the state after the last step or reset.
//
// Data flow: a viewer or a caller of the camera -> Work.Draw, EngineServer.OnDraw or CaptureBridge.Wanted -> the engine
// draws -> Engine.Drawn.
// Lifetime: plain numbers, which may be kept. Draw now, or later in any thread.
//
//   engine.Drawn(draw, rgb);                                         // [Height, Width, 3], the top row first
//   engine.Drawn(draw, pixels, PixelFormat.Rgba8, bottomUp: true);   // as OpenGL and Unity read textures back

namespace Tandem
{
    /// <summary>What an image is for.</summary>
    public enum DrawPurpose
    {
        /// <summary>The window, the page, a client's render.</summary>
        Frame = 1,
        /// <summary>A caller of the service camera.</summary>
        Camera = 2,
        /// <summary>A caller of the service viewport.</summary>
        Viewport = 3
    }

    /// <summary>How pixels lie in memory.</summary>
    public enum PixelFormat
    {
        /// <summary>3 bytes: red, green, blue.</summary>
        Rgb8 = 1,
        /// <summary>4 bytes; alpha has no effect.</summary>
        Rgba8 = 2,
        /// <summary>4 bytes; alpha has no effect.</summary>
        Bgra8 = 3,
        /// <summary>A float in metres; infinity: nothing there.</summary>
        Depth32F = 4
    }

    /// <summary>An image to draw.</summary>
    public readonly unsafe struct DrawRequest
    {
        internal DrawRequest(ulong number, tandem_draw* draw)
        {
            Number = number;
            Purpose = (DrawPurpose)draw->purpose;
            Env = (int)draw->env;
            Camera = (int)draw->camera;
            Width = (int)draw->width;
            Height = (int)draw->height;
            IsDepth = draw->depth != 0;
            PatienceSecs = draw->patience_secs;
        }

        /// <summary>Its number; all are different.</summary>
        public ulong Number { get; }
        /// <summary>What the image is for.</summary>
        public DrawPurpose Purpose { get; }
        /// <summary>The environment's number.</summary>
        public int Env { get; }
        /// <summary>An index of EngineServices.Cameras or Viewports; 0 for a frame.</summary>
        public int Camera { get; }
        /// <summary>Pixels.</summary>
        public int Width { get; }
        /// <summary>Pixels.</summary>
        public int Height { get; }
        /// <summary>Distances, PixelFormat.Depth32F; else colours.</summary>
        public bool IsDepth { get; }
        /// <summary>After these seconds no caller waits for it; 0: no limit.</summary>
        public double PatienceSecs { get; }
    }
}
