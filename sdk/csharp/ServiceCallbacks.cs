// ServiceCallbacks: the functions that the library calls for EngineServices.
//
// Lifetime and exceptions: as EngineCallbacks.

using System;
using System.Runtime.InteropServices;
using tandem.rpc;

namespace Tandem
{
    // What the first argument of the library's calls is a GCHandle of.
    internal interface IServedEngine
    {
        // null: not yet, or no longer.
        Engine Engine { get; }
        EngineServices Services { get; }
    }

    internal static unsafe class ServiceCallbacks
    {
        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int EntityFunction(IntPtr user, uint env, uint entity, tandem_transform* transform);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int JointsFunction(IntPtr user, uint env, float* positions, float* velocities);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int ControlsFunction(IntPtr user, uint env, float* controls);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int SetControlFunction(IntPtr user, uint env, uint actuator, float value);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int MarksFunction(IntPtr user, uint env, tandem_mark* marks, uint count);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int SceneFunction(IntPtr user, byte** glb, ulong* bytes);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int PosesFunction(IntPtr user, uint env, float* poses, uint nodes);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int SaveStateFunction(IntPtr user, uint env, byte** state, ulong* bytes);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int LoadStateFunction(IntPtr user, uint env, byte* state, ulong bytes);

        private static readonly EntityFunction s_transform = OnTransform, s_move = OnMove;
        private static readonly JointsFunction s_joints = OnJoints;
        private static readonly ControlsFunction s_controls = OnControls;
        private static readonly SetControlFunction s_setControl = OnSetControl;
        private static readonly MarksFunction s_showMarks = OnShowMarks;
        private static readonly SceneFunction s_scene = OnScene;
        private static readonly PosesFunction s_poses = OnPoses;
        private static readonly SaveStateFunction s_saveState = OnSaveState;
        private static readonly LoadStateFunction s_loadState = OnLoadState;

        // A function that the services do not have is NULL.
        internal static void Set(tandem_services* native, EngineServices services)
        {
            native->transform = Pointer(services.Transform, s_transform);
            native->move = Pointer(services.Move, s_move);
            native->joints = Pointer(services.Joints, s_joints);
            native->controls = Pointer(services.Controls, s_controls);
            native->set_control = Pointer(services.SetControl, s_setControl);
            native->show_marks = Pointer(services.ShowMarks, s_showMarks);
            native->scene = Pointer(services.Scene, s_scene);
            native->poses = Pointer(services.Poses, s_poses);
            native->save_state = Pointer(services.SaveState, s_saveState);
            native->load_state = Pointer(services.LoadState, s_loadState);
        }

        private static void* Pointer(Delegate given, Delegate function)
        {
            return given == null ? null : (void*)Marshal.GetFunctionPointerForDelegate(function);
        }

        private static int Call(IntPtr user, Action<EngineServices> call)
        {
            Engine engine = null;
            try
            {
                var served = (IServedEngine)GCHandle.FromIntPtr(user).Target;
                engine = served.Engine;
                call(served.Services);
                return 0;
            }
            catch (Exception e)
            {
                return engine == null ? 1 : engine.Fail(null, e);
            }
        }

        [MonoPInvokeCallback(typeof(EntityFunction))]
        private static int OnTransform(IntPtr user, uint env, uint entity, tandem_transform* transform)
        {
            return Call(user, services =>
            {
                EntityTransform place = services.Transform((int)env, (int)entity);
                if (place == null) return;
                transform->has_position = Write(place.Position, transform->position);
                transform->has_scale = Write(place.Scale, transform->scale);
                if (place.Rotation == null) return;
                transform->has_rotation = 1;
                transform->rotation[0] = place.Rotation.X;
                transform->rotation[1] = place.Rotation.Y;
                transform->rotation[2] = place.Rotation.Z;
                transform->rotation[3] = place.Rotation.W;
            });
        }

        [MonoPInvokeCallback(typeof(EntityFunction))]
        private static int OnMove(IntPtr user, uint env, uint entity, tandem_transform* transform)
        {
            return Call(user, services =>
            {
                float* rotation = transform->rotation;
                services.Move((int)env, (int)entity, new EntityTransform
                {
                    Position = transform->has_position == 0 ? null : Vector(transform->position),
                    Rotation = transform->has_rotation == 0 ? null
                        : new QuatT { X = rotation[0], Y = rotation[1], Z = rotation[2], W = rotation[3] },
                    Scale = transform->has_scale == 0 ? null : Vector(transform->scale)
                });
            });
        }

        [MonoPInvokeCallback(typeof(JointsFunction))]
        private static int OnJoints(IntPtr user, uint env, float* positions, float* velocities)
        {
            return Call(user, services => services.Joints((int)env,
                new Span<float>(positions, services.PositionCount),
                new Span<float>(velocities, services.VelocityCount)));
        }

        [MonoPInvokeCallback(typeof(ControlsFunction))]
        private static int OnControls(IntPtr user, uint env, float* controls)
        {
            return Call(user, services => services.Controls((int)env,
                new Span<float>(controls, services.ActuatorCount)));
        }

        [MonoPInvokeCallback(typeof(SetControlFunction))]
        private static int OnSetControl(IntPtr user, uint env, uint actuator, float value)
        {
            return Call(user, services => services.SetControl((int)env, (int)actuator, value));
        }

        [MonoPInvokeCallback(typeof(MarksFunction))]
        private static int OnShowMarks(IntPtr user, uint env, tandem_mark* marks, uint count)
        {
            return Call(user, services =>
            {
                var copies = new Mark[count];
                for (int i = 0; i < copies.Length; ++i)
                {
                    tandem_mark* mark = marks + i;
                    copies[i] = new Mark
                    {
                        IsArrow = mark->is_arrow != 0,
                        From = Vector(mark->from),
                        To = Vector(mark->to),
                        Color = new DebugColorT
                        {
                            R = mark->rgba[0], G = mark->rgba[1], B = mark->rgba[2], A = mark->rgba[3]
                        }
                    };
                }
                services.ShowMarks((int)env, copies);
            });
        }

        [MonoPInvokeCallback(typeof(SceneFunction))]
        private static int OnScene(IntPtr user, byte** glb, ulong* bytes)
        {
            return Call(user, services => Return(services, services.Scene(), glb, bytes));
        }

        [MonoPInvokeCallback(typeof(PosesFunction))]
        private static int OnPoses(IntPtr user, uint env, float* poses, uint nodes)
        {
            return Call(user, services => services.Poses((int)env, new Span<float>(poses, checked(7 * (int)nodes))));
        }

        [MonoPInvokeCallback(typeof(SaveStateFunction))]
        private static int OnSaveState(IntPtr user, uint env, byte** state, ulong* bytes)
        {
            return Call(user, services => Return(services, services.SaveState((int)env), state, bytes));
        }

        [MonoPInvokeCallback(typeof(LoadStateFunction))]
        private static int OnLoadState(IntPtr user, uint env, byte* state, ulong bytes)
        {
            return Call(user, services =>
                services.LoadState((int)env, new ReadOnlySpan<byte>(state, checked((int)bytes)).ToArray()));
        }

        private static void Return(EngineServices services, byte[] bytes, byte** to, ulong* size)
        {
            services.Returned = new PinnedBytes(bytes);
            *to = (byte*)services.Returned.Address;
            *size = (ulong)services.Returned.Length;
        }

        private static Vec3T Vector(float* from) => new Vec3T { X = from[0], Y = from[1], Z = from[2] };

        private static uint Write(Vec3T from, float* to)
        {
            if (from == null) return 0;
            to[0] = from.X;
            to[1] = from.Y;
            to[2] = from.Z;
            return 1;
        }
    }
}
