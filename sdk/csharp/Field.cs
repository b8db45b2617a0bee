// Field: a part of the observation or action with a type and a shape of its own.
//
// Data flow: SharedMemoryConfig.Fields -> the region -> Work.Array<T>(name), Client.Array(name).
//
//   config.Fields = new[] {
//     new Field("obs/image", ElementType.UInt8, 64, 64, 3), new Field("obs/speed", ElementType.Float64),
//     new Field("action/", ElementType.Int64) };

namespace Tandem
{
    /// <summary>A part of the observation or action, as an array of its own.</summary>
    public sealed class Field
    {
        /// <summary>`name`: "obs/PATH" or "action/PATH", where PATH is a JSON pointer without its first "/"; "obs/" or
        /// "action/": the whole one. `shape`: of one environment, up to three sides; none: one number.</summary>
        public Field(string name, ElementType type, params int[] shape)
        {
            Name = name;
            ElementType = type;
            Shape = shape;
        }

        /// <summary>Such as "obs/image".</summary>
        public string Name { get; private set; }
        /// <summary>The type of its elements.</summary>
        public ElementType ElementType { get; private set; }
        /// <summary>Of one environment.</summary>
        public int[] Shape { get; private set; }

        internal unsafe void Fill(tandem_field* field, UnmanagedMemory memory)
        {
            field->name = memory.Text(Name);
            field->dtype = (uint)ElementType;
            field->dimensions = (uint)Shape.Length;
            // More sides than the struct has are refused by their number.
            for (int i = 0; i < Shape.Length && i < NativeStructs.MaxDimensions; ++i)
            {
                field->shape[i] = SharedMemoryConfig.Count(Shape[i], Name);
            }
        }
    }
}
