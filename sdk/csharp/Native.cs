// The functions of sdk/tandem.h, whose comments are the reference.
//
// Texts are bytes (Utf8), so no runtime's marshalling of strings is involved. A handle is a TandemHandle: P/Invoke
// keeps it alive during the call. Mono and .NET find the library as dlopen does: README.md, "Finding the library".

using System;
using System.Runtime.InteropServices;

namespace Tandem
{
    internal static unsafe class Native
    {
        private const string Library = "libtandem.so.1";
        private const CallingConvention C = CallingConvention.Cdecl;
        private const uint AbiMajor = 1, AbiMinor = 5;

        // Throws if the library is not found, or has another major version than this assembly, or an earlier minor
        // one.
        internal static void CheckVersion()
        {
            uint found;
            try
            {
                found = tandem_abi_version();
            }
            catch (DllNotFoundException e)
            {
                throw new TandemException(ErrorCode.Unsupported, Library + ": expected the library of the SDK, found no "
                    + "loadable one; set LD_LIBRARY_PATH to the SDK's folder lib, or copy the library beside "
                    + "Tandem.dll (" + e.Message + ")");
            }
            if (found >> 16 != AbiMajor || (found & 0xFFFF) < AbiMinor)
            {
                throw new TandemException(ErrorCode.Unsupported, Library + ": expected version " + AbiMajor + "."
                    + AbiMinor + " of its interface, or a later minor one, found " + (found >> 16) + "."
                    + (found & 0xFFFF) + "; install the library of this assembly");
            }
        }

        [DllImport(Library, CallingConvention = C)]
        internal static extern uint tandem_abi_version();

        [DllImport(Library, CallingConvention = C)]
        internal static extern byte* tandem_version();

        [DllImport(Library, CallingConvention = C)]
        internal static extern byte* tandem_code_name(int code);

        [DllImport(Library, CallingConvention = C)]
        internal static extern ulong tandem_last_error(byte* text, ulong size);

        [DllImport(Library, CallingConvention = C)]
        internal static extern void tandem_free(void* memory);

        // --- Engines

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_create(
            tandem_engine_options* options, tandem_callbacks* callbacks, out IntPtr engine);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_array(TandemHandle engine, byte[] name, tandem_array* array);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_gpu_array(TandemHandle engine, byte[] name, tandem_array* array);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_gpu_stream(TandemHandle engine, IntPtr stream);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_scene_changed(TandemHandle engine);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_run(TandemHandle engine);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_poll(TandemHandle engine, out int served);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_next(TandemHandle engine, double timeoutSecs, tandem_work* work);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_done(TandemHandle engine, byte[] failure);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_fail(TandemHandle engine, byte[] text);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_answer(TandemHandle engine, ulong call, byte* envelope, ulong size);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_refuse(TandemHandle engine, ulong call, int code, byte[] text);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_drawn(TandemHandle engine, ulong call, tandem_image* image);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_stop(TandemHandle engine);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_stopping(TandemHandle engine);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_enable(TandemHandle engine, byte[] service, int enabled);

        [DllImport(Library, CallingConvention = C)]
        internal static extern byte* tandem_service_name(uint bit);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_status(TandemHandle engine, tandem_status* status);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_engine_destroy(IntPtr engine);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_serve(int argc, byte** argv, tandem_server* server);

        // --- RPCs. A closed tandem_rpc returns an error, so a plain pointer is enough.

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_rpc_call(
            IntPtr rpc, byte* envelope, ulong size, double timeoutSecs, out IntPtr answer, out ulong answerSize);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_rpc_call_own(IntPtr rpc, byte[] name, byte* request, ulong size,
            double timeoutSecs, out IntPtr answer, out ulong answerSize);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_rpc_open(IntPtr rpc, byte* envelope, ulong size, out ulong stream);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_rpc_next(
            IntPtr rpc, ulong stream, double timeoutSecs, out IntPtr item, out ulong itemSize);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_rpc_close(IntPtr rpc, ulong stream);

        // --- Clients and attendants

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_client_attach(tandem_client_options* options, out IntPtr client);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_client_array(TandemHandle client, byte[] name, tandem_array* array);

        [DllImport(Library, CallingConvention = C)]
        internal static extern ulong tandem_client_description(TandemHandle client, byte* text, ulong size);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_client_send(TandemHandle client, float* actions, ulong count);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_client_send_reset(TandemHandle client, ResetRequest* resets, uint count);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_client_recv(TandemHandle client, double timeoutSecs);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_client_reconnect(TandemHandle client, double timeoutSecs);

        [DllImport(Library, CallingConvention = C)]
        internal static extern IntPtr tandem_client_rpc(TandemHandle client);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_client_close(IntPtr client);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_attendant_attach(tandem_attendant_options* options, out IntPtr attendant);

        [DllImport(Library, CallingConvention = C)]
        internal static extern IntPtr tandem_attendant_rpc(TandemHandle attendant);

        [DllImport(Library, CallingConvention = C)]
        internal static extern int tandem_attendant_close(IntPtr attendant);
    }
}
