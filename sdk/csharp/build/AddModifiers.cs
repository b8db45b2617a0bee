// AddModifiers: makes a program of Mono's mcs run on .NET.
//
//   mono AddModifiers.exe FROM TO  writes it
//   mono AddModifiers.exe FROM     exit code 1 if there is something to add: such an assembly does not run on .NET
//
// ReadOnlySpan<T> returns elements as `ref readonly`, which in .NET is `ref` with the modifier InAttribute; in Mono's
// class library it has none. mcs calls the methods as Mono has them. .NET then throws MissingMethodException, and Mono
// does so for calls with the modifier: a program with such calls runs on one of the two.

using System;
using Mono.Cecil;
using Mono.Cecil.Cil;

namespace Tandem.Build
{
    public static class AddModifiers
    {
        public static int Main(string[] args)
        {
            ModuleDefinition module = ModuleDefinition.ReadModule(args[0]);
            var modifier = new TypeReference(
                "System.Runtime.InteropServices", "InAttribute", module, module.TypeSystem.Corlib);
            int code = 0;
            foreach (TypeDefinition type in module.GetTypes())
            {
                foreach (MethodDefinition method in type.Methods)
                {
                    if (!method.HasBody) continue;
                    foreach (Instruction instruction in method.Body.Instructions)
                    {
                        var called = instruction.Operand as MethodReference;
                        if (called == null || !ReturnsReadOnly(called)) continue;
                        if (args.Length == 1)
                        {
                            Console.Error.WriteLine(method.FullName + ": expected code that runs on Mono and on .NET, "
                                + "found a call of " + called.FullName + "; copy the span by ToArray first");
                            code = 1;
                            continue;
                        }
                        called.ReturnType = new RequiredModifierType(modifier, called.ReturnType);
                    }
                }
            }
            if (args.Length > 1) module.Write(args[1]);
            return code;
        }

        // A reference that has the modifier already is not ByReferenceType.
        private static bool ReturnsReadOnly(MethodReference method)
        {
            string owner = method.DeclaringType.GetElementType().FullName;
            return method.ReturnType is ByReferenceType
                && (owner == "System.ReadOnlySpan`1" || owner == "System.ReadOnlySpan`1/Enumerator");
        }
    }
}
