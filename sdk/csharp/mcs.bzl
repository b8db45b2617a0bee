"""C# by Mono's mcs: `program` compiles a program for Mono and for .NET; MCS and ADD_MODIFIERS begin its commands."""

MCS = "$(execpath @csharp//:mcs) -nologo -langversion:7.2 -unsafe -optimize -warnaserror "

ADD_MODIFIERS = "MONO_PATH=$$(dirname $(execpath @csharp//:Mono.Cecil.dll)) $(execpath @csharp//:mono) " + \
                "$(execpath build/AddModifiers.exe) "

TOOLS = [
    "build/AddModifiers.exe",
    "@csharp//:Mono.Cecil.dll",
    "@csharp//:mcs",
    "@csharp//:mono",
]

def program(name, srcs, resources = [], **kwargs):
    """Compiles NAME.exe for Mono, and dotnet/NAME.exe, which is the same with the modifiers that .NET needs.

    Args:
      name: The program's name.
      srcs: Its sources, which use Tandem.dll.
      resources: Labels of files in it, by their names.
      **kwargs: As a genrule's.
    """
    native.genrule(
        name = "compile_" + name,
        srcs = srcs + resources + ["Tandem.dll"],
        outs = [
            name + ".exe",
            "dotnet/%s.exe" % name,
        ],
        cmd = (MCS + "-r:$(execpath Tandem.dll) -out:$(execpath {0}.exe) {1} && " + ADD_MODIFIERS +
               "$(execpath {0}.exe) $(execpath dotnet/{0}.exe)").format(name, " ".join(
            ["$(execpath %s)" % each for each in srcs] +
            ["-resource:$(execpath %s),%s" % (each, each.rpartition("/")[2]) for each in resources],
        )),
        exec_tools = TOOLS,
        **kwargs
    )
