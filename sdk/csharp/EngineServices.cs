// EngineServices: what an engine has besides steps. Each part makes RPC services available; without it, their callers
// get Unsupported.
//
// Data flow: the engine's program -> SharedMemoryConfig.EngineServices -> the library; a caller's RPC -> the library ->
// these functions. EngineServer has them as methods to override, and an object of this class for the lists.
// Lifetime: the engine takes a copy of the lists when it is made; later changes have no effect.
// Threads: the thread that serves the engine calls the functions, inside Next, Done, Poll or Run, and not between a Reset or
// Step and its Done. They may call what the work callback may call.
// Errors: an exception of a function is its caller's EngineFailed, with the exception's text.
//
//   config.EngineServices = new EngineServices {
//     Entities = new[] { new Entity("cart", "body"), new Entity("front", "camera") },
//     Transform = (env, entity) => new EntityTransform { Position = PlaceOf(env, entity) },
//     Cameras = new[] { "front" },
//   };

using System;
using tandem.rpc;

namespace Tandem
{
    /// <summary>Writes the positions and velocities of an environment's joints.</summary>
    public delegate void JointsReader(int env, Span<float> positions, Span<float> velocities);

    /// <summary>Writes an environment's controls, one for each actuator.</summary>
    public delegate void ControlsReader(int env, Span<float> controls);

    /// <summary>Writes the poses of an environment's nodes that move, seven numbers each: x, y, z, and the rotation as
    /// a unit quaternion x, y, z, w.</summary>
    public delegate void PosesWriter(int env, Span<float> poses);

    /// <summary>An object of the scene; each environment has one.</summary>
    public sealed class Entity
    {
        /// <summary>`components`: its kinds, such as "body" or "camera", by commas.</summary>
        public Entity(string name, string components = "")
        {
            Name = name;
            Components = components;
        }

        /// <summary>Such as "cart".</summary>
        public string Name { get; private set; }
        /// <summary>Its kinds, by commas.</summary>
        public string Components { get; private set; }
    }

    /// <summary>The place of an entity, in world coordinates, z up. Parts that are null are absent: unknown, or
    /// unchanged.</summary>
    public sealed class EntityTransform
    {
        /// <summary>Metres.</summary>
        public Vec3T Position { get; set; }
        /// <summary>A unit quaternion: x, y, z, w.</summary>
        public QuatT Rotation { get; set; }
        /// <summary>Factors.</summary>
        public Vec3T Scale { get; set; }
    }

    /// <summary>A motor of the model. A caller's control is clipped to Low .. High by default.</summary>
    public sealed class Actuator
    {
        /// <summary>Without bounds, all values are allowed.</summary>
        public Actuator(string name, float low = float.NegativeInfinity, float high = float.PositiveInfinity)
        {
            Name = name;
            Low = low;
            High = high;
        }

        /// <summary>Such as "motor".</summary>
        public string Name { get; private set; }
        /// <summary>The lowest control.</summary>
        public float Low { get; private set; }
        /// <summary>The highest control.</summary>
        public float High { get; private set; }
    }

    /// <summary>A line, or an arrow, to draw in an environment's images.</summary>
    public sealed class Mark
    {
        /// <summary>Whether its end is an arrow's head.</summary>
        public bool IsArrow { get; internal set; }
        /// <summary>Metres in world coordinates.</summary>
        public Vec3T From { get; internal set; }
        /// <summary>Metres in world coordinates.</summary>
        public Vec3T To { get; internal set; }
        /// <summary>Each part from 0 to 1.</summary>
        public DebugColorT Color { get; internal set; }
    }

    /// <summary>A method of the engine's own, whose requests and answers are bytes.</summary>
    public sealed class OwnMethod
    {
        internal OwnMethod(string name, string help, string contentType)
        {
            Name = name;
            Help = help;
            ContentType = contentType;
        }

        /// <summary>1 to 63 bytes.</summary>
        public string Name { get; private set; }
        /// <summary>One line; null: none.</summary>
        public string Help { get; private set; }
        /// <summary>null: "application/octet-stream".</summary>
        public string ContentType { get; private set; }
    }

    /// <summary>The lists and functions of an engine's services. A list that is null is empty.</summary>
    public sealed unsafe class EngineServices
    {
        /// <summary>null: the task's.</summary>
        public string SceneName { get; set; }
        /// <summary>scene: the objects of each environment. They need Transform.</summary>
        public Entity[] Entities { get; set; }
        /// <summary>Returns the place of an entity, an index of Entities; null: unknown.</summary>
        public Func<int, int, EntityTransform> Transform { get; set; }
        /// <summary>Moves an entity, in one environment. null: no entity can be moved.</summary>
        public Action<int, int, EntityTransform> Move { get; set; }

        /// <summary>mujoco and telemetry: the names of the joints.</summary>
        public string[] JointNames { get; set; }
        /// <summary>The names of the positions. null: one for each joint, with its name.</summary>
        public string[] PositionNames { get; set; }
        /// <summary>The number of velocities.</summary>
        public int VelocityCount { get; set; }
        /// <summary>The motors.</summary>
        public Actuator[] Actuators { get; set; }
        /// <summary>Writes positions and velocities. null: the engine has no joints.</summary>
        public JointsReader Joints { get; set; }
        /// <summary>Writes the controls: the last step's, or later ones of SetControl. null: zeros.</summary>
        public ControlsReader Controls { get; set; }
        /// <summary>Sets an actuator's control for the next step: environment, actuator, value. null: it cannot be
        /// set.</summary>
        public Action<int, int, float> SetControl { get; set; }

        /// <summary>debug: takes the marks for later images of an environment, in place of its earlier ones. null:
        /// draws none.</summary>
        public Action<int, Mark[]> ShowMarks { get; set; }

        /// <summary>camera and viewport, by work of the kind Draw: the names of the cameras.</summary>
        public string[] Cameras { get; set; }
        /// <summary>null: "main", the first camera's view.</summary>
        public string[] Viewports { get; set; }
        /// <summary>Of images whose caller names no size; 0: 320 x 240.</summary>
        public int ImageWidth { get; set; }
        /// <summary>As ImageWidth.</summary>
        public int ImageHeight { get; set; }
        /// <summary>Whether the engine draws frames, by work of the kind Draw, while a viewer is open.</summary>
        public bool DrawsFrames { get; set; }

        /// <summary>agent: the fields of SimulationContract that have an effect on this task, such as
        /// "friction_range".</summary>
        public string[] ContractFields { get; set; }

        /// <summary>The live scene, which viewers draw themselves: a file of glTF 2.0 in its binary form (.glb), with
        /// the geometry of one environment. It is called while a viewer watches, at first and after
        /// Engine.SceneChanged. null: none. It needs Poses.</summary>
        public Func<byte[]> Scene { get; set; }
        /// <summary>At most 60 times a second, while a viewer watches.</summary>
        public PosesWriter Poses { get; set; }

        /// <summary>States: returns all that decides an environment's future, but its rows and contract. null: none. It
        /// needs LoadState.</summary>
        public Func<int, byte[]> SaveState { get; set; }
        /// <summary>Puts bytes of SaveState in place, instead of a reset of this environment; writes no rows. They may
        /// come from another environment or process; throws for wrong ones.</summary>
        public Action<int, byte[]> LoadState { get; set; }

        // The bytes that the library is copying.
        internal PinnedBytes Returned { get; set; }

        internal int PositionCount => CountOf(PositionNames ?? JointNames);
        internal int ActuatorCount => CountOf(Actuators);

        internal EngineServices Copy() => (EngineServices)MemberwiseClone();

        // Their pointers are valid until the memory's Dispose. `user`: a GCHandle of an IServedEngine, whose services
        // are a copy of these.
        internal tandem_services* Native(OwnMethod[] ownMethods, UnmanagedMemory memory, void* user)
        {
            var native = (tandem_services*)memory.Allocate(sizeof(tandem_services));
            native->struct_size = (uint)sizeof(tandem_services);
            native->user = user;
            native->scene_name = memory.Text(SceneName);
            native->entity_count = (uint)CountOf(Entities);
            native->entities = (tandem_entity*)memory.Allocate(CountOf(Entities) * sizeof(tandem_entity));
            for (int i = 0; i < CountOf(Entities); ++i)
            {
                native->entities[i].name = memory.Text(Entities[i].Name);
                native->entities[i].components = memory.Text(Entities[i].Components);
            }
            native->joint_names = memory.Texts(JointNames);
            native->joint_count = (uint)CountOf(JointNames);
            native->position_names = memory.Texts(PositionNames);
            native->position_count = (uint)PositionCount;
            native->velocity_count = SharedMemoryConfig.Count(VelocityCount, nameof(VelocityCount));
            native->actuator_count = (uint)ActuatorCount;
            native->actuators = (tandem_actuator*)memory.Allocate(ActuatorCount * sizeof(tandem_actuator));
            for (int i = 0; i < ActuatorCount; ++i)
            {
                native->actuators[i].name = memory.Text(Actuators[i].Name);
                native->actuators[i].low = Actuators[i].Low;
                native->actuators[i].high = Actuators[i].High;
            }
            native->cameras = memory.Texts(Cameras);
            native->camera_count = (uint)CountOf(Cameras);
            native->viewports = memory.Texts(Viewports);
            native->viewport_count = (uint)CountOf(Viewports);
            native->image_width = SharedMemoryConfig.Count(ImageWidth, nameof(ImageWidth));
            native->image_height = SharedMemoryConfig.Count(ImageHeight, nameof(ImageHeight));
            native->draws_frames = DrawsFrames ? 1u : 0u;
            native->contract_fields = memory.Texts(ContractFields);
            native->contract_field_count = (uint)CountOf(ContractFields);
            native->own_methods = (tandem_method*)memory.Allocate(ownMethods.Length * sizeof(tandem_method));
            native->own_method_count = (uint)ownMethods.Length;
            for (int i = 0; i < ownMethods.Length; ++i)
            {
                native->own_methods[i].name = memory.Text(ownMethods[i].Name);
                native->own_methods[i].content_type = memory.Text(ownMethods[i].ContentType);
                native->own_methods[i].help = memory.Text(ownMethods[i].Help);
            }
            ServiceCallbacks.Set(native, this);
            return native;
        }

        private static int CountOf(Array list) => list == null ? 0 : list.Length;
    }
}
