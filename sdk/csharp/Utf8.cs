// Utf8: texts as the C interface has them, UTF-8 with a NUL at the end.
//
// Data flow: string -> Bytes -> a function of tandem.h; const char* of tandem.h -> Text -> string.

using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;

namespace Tandem
{
    internal static unsafe class Utf8
    {
        // Returns null for null. A NUL in the text is an ArgumentException: C would cut the text off there.
        internal static byte[] Bytes(string text)
        {
            if (text == null) return null;
            if (text.IndexOf('\0') >= 0) throw new ArgumentException("expected a text without the character NUL");
            byte[] bytes = new byte[Encoding.UTF8.GetByteCount(text) + 1];
            Encoding.UTF8.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        // Returns null for NULL.
        internal static string Text(byte* text)
        {
            if (text == null) return null;
            int size = 0;
            while (text[size] != 0) ++size;
            return Encoding.UTF8.GetString(text, size);
        }
    }

    // Memory that stays in place until Dispose, for structs that the library reads after a callback has returned.
    internal sealed unsafe class UnmanagedMemory : IDisposable
    {
        private readonly List<IntPtr> _blocks = new List<IntPtr>();

        // All bytes are 0.
        internal void* Allocate(int bytes)
        {
            IntPtr block = Marshal.AllocHGlobal(Math.Max(bytes, 1));
            _blocks.Add(block);
            new Span<byte>((void*)block, bytes).Clear();
            return (void*)block;
        }

        // Returns NULL for null.
        internal byte** Texts(string[] texts)
        {
            if (texts == null) return null;
            byte** copies = (byte**)Allocate(texts.Length * sizeof(byte*));
            for (int i = 0; i < texts.Length; ++i) copies[i] = Text(texts[i]);
            return copies;
        }

        // Returns NULL for null.
        internal byte* Text(string text)
        {
            byte[] bytes = Utf8.Bytes(text);
            if (bytes == null) return null;
            byte* copy = (byte*)Allocate(bytes.Length);
            Marshal.Copy(bytes, 0, (IntPtr)copy, bytes.Length);
            return copy;
        }

        public void Dispose()
        {
            foreach (IntPtr block in _blocks) Marshal.FreeHGlobal(block);
            _blocks.Clear();
        }
    }
}
