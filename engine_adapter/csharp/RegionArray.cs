// RegionArray: an array of the region, such as "obs": its type, its shape, and its elements as a span.
//
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
    public enum ElementType
    {
        Float32 = 1,
        Float64 = 2,
        UInt8 = 3
    }

    // Who maps the region.
    internal interface IRegionOwner
    {
        // Changes when arrays move. Throws ObjectDisposedException after Dispose.
        int MappingNumber { get; }
    }

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
            Shape = new int[array.dimensions];
            fixed (ulong* shape = array.shape)
            {
                for (int i = 0; i < Shape.Length; ++i) Shape[i] = checked((int)shape[i]);
            }
            _data = array.data;
            _owner = owner;
            _mapping = owner.MappingNumber;
        }

        public string Name { get; private set; }

        // Its place in the arrays of a Work; constant for an engine.
        public int Index { get; private set; }
        public ElementType ElementType { get; private set; }

        // In C order. The first dimension is the environment.
        public int[] Shape { get; private set; }
        public long Bytes { get; private set; }

        // All elements. Errors: ObjectDisposedException; InvalidOperationException after Reconnect;
        // TandemException(InvalidArgument): T is not the array's type.
        public Span<T> Span<T>() where T : struct
        {
            ThrowIfMoved();
            return Elements<T>(_data, ElementType, Bytes, Name);
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
            int size = typeof(T) == typeof(float) && type == ElementType.Float32 ? 4
                : typeof(T) == typeof(double) && type == ElementType.Float64 ? 8
                : typeof(T) == typeof(byte) && type == ElementType.UInt8 ? 1 : 0;
            if (size == 0)
            {
                throw new TandemException(ErrorCode.InvalidArgument,
                    name + ": expected the element type " + type + ", found " + typeof(T).Name);
            }
            return new Span<T>(data, checked((int)(bytes / size)));
        }
    }
}
