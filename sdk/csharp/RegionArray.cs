// Data flow: Engine.Array or Client.Array -> RegionArray -> Span<T>, memory of the region itself, without a copy.
// Lifetime: spans are valid until the owner's Dispose, and those of a client also until Reconnect. Span() checks that;
// a span that the program has already taken cannot. So keep spans in short scopes, inside the `using` block of the
// owner.
//
//   RegionArray obs = client.Array("obs");
//   ReadOnlySpan<float> elements = obs.Span<float>();  // obs.Shape = {num_envs, obs_size}
//
// mcs does not compile an assignment to an element of a span that a property or method has just returned: store the
// span in a local variable first.

using System;

namespace Tandem
{
    /// <summary>The type of an array's elements; the numbers are those of the region.</summary>
    public enum ElementType
    {
        /// <summary>C#'s float.</summary>
        Float32 = 1,
        /// <summary>C#'s double.</summary>
        Float64 = 2,
        /// <summary>C#'s byte.</summary>
        UInt8 = 3,

        /// <summary>Of fields only. Bool: bytes, 0 or 1. Float16: IEEE 754 binary16.</summary>
        Bool = 4,
        /// <summary>C#'s sbyte.</summary>
        Int8 = 5,
        /// <summary>C#'s ushort.</summary>
        UInt16 = 6,
        /// <summary>C#'s short.</summary>
        Int16 = 7,
        /// <summary>C#'s uint.</summary>
        UInt32 = 8,
        /// <summary>C#'s int.</summary>
        Int32 = 9,
        /// <summary>C#'s ulong.</summary>
        UInt64 = 10,
        /// <summary>C#'s long.</summary>
        Int64 = 11,
        /// <summary>16 bits.</summary>
        Float16 = 12
    }

    // Who maps the region.
    internal interface IRegionOwner
    {
        // Changes when arrays move. Throws ObjectDisposedException after Dispose.
        int MappingNumber { get; }
    }

    /// <summary>An array of the region, such as "obs": its type, its shape, and its elements as a span.</summary>
    public sealed unsafe class RegionArray
    {
        private readonly IRegionOwner _owner;
        private readonly int _mapping;
        private readonly void* _data;

        internal RegionArray(string name, ref tandem_array array, IRegionOwner owner)
        {
            Name = name;
            Index = (int)array.index;
            ElementType = (ElementType)array.dtype;
            Bytes = checked((long)array.bytes);
            Shape = ShapeOf(ref array);
            _data = array.data;
            _owner = owner;
            _mapping = owner.MappingNumber;
        }

        /// <summary>Such as "obs".</summary>
        public string Name { get; private set; }

        /// <summary>Its place in the arrays of a Work; constant for an engine.</summary>
        public int Index { get; private set; }
        /// <summary>The type of its elements.</summary>
        public ElementType ElementType { get; private set; }

        /// <summary>In C order. The first dimension is the environment.</summary>
        public int[] Shape { get; private set; }
        /// <summary>The size of all elements, in bytes.</summary>
        public long Bytes { get; private set; }

        /// <summary>All elements. byte reads Bool, too, and ushort the bits of Float16. Errors:
        /// ObjectDisposedException; InvalidOperationException after Reconnect; TandemException(InvalidArgument): T is
        /// not the array's type.</summary>
        public Span<T> Span<T>() where T : struct
        {
            ThrowIfMoved();
            return Elements<T>(_data, ElementType, Bytes, Name);
        }

        internal static int[] ShapeOf(ref tandem_array array)
        {
            var sides = new int[array.dimensions];
            fixed (ulong* shape = array.shape)
            {
                for (int i = 0; i < sides.Length; ++i) sides[i] = checked((int)shape[i]);
            }
            return sides;
        }

        internal void ThrowIfMoved()
        {
            if (_owner.MappingNumber != _mapping)
            {
                throw new InvalidOperationException(Name + ": expected an array of the present connection, "
                    + "found one of before Reconnect; call Array again");
            }
        }

        internal static Span<T> Elements<T>(void* data, ElementType type, long bytes, string name) where T : struct
        {
            // The types of each step, which the compiler decides for each T; then those of fields.
            int size = typeof(T) == typeof(float) && type == ElementType.Float32 ? 4
                : typeof(T) == typeof(double) && type == ElementType.Float64 ? 8
                : typeof(T) == typeof(byte) && type == ElementType.UInt8 ? 1
                : SizeOf(typeof(T), type);
            if (size == 0)
            {
                throw new TandemException(ErrorCode.InvalidArgument,
                    name + ": expected the element type " + type + ", found " + typeof(T).Name);
            }
            return new Span<T>(data, checked((int)(bytes / size)));
        }

        // The bytes of an element of a field; 0: `read` does not read elements of this type.
        private static int SizeOf(Type read, ElementType type)
        {
            switch (type)
            {
                case ElementType.Bool:
                    return read == typeof(byte) ? 1 : 0;
                case ElementType.Int8:
                    return read == typeof(sbyte) ? 1 : 0;
                case ElementType.UInt16:
                case ElementType.Float16:
                    return read == typeof(ushort) ? 2 : 0;
                case ElementType.Int16:
                    return read == typeof(short) ? 2 : 0;
                case ElementType.UInt32:
                    return read == typeof(uint) ? 4 : 0;
                case ElementType.Int32:
                    return read == typeof(int) ? 4 : 0;
                case ElementType.UInt64:
                    return read == typeof(ulong) ? 8 : 0;
                case ElementType.Int64:
                    return read == typeof(long) ? 8 : 0;
                default:
                    return 0;
            }
        }
    }
}
