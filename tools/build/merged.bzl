"""Programs from few, large sources: the compiler reads and instantiates a header once for a folder, not for each source.

The sources of a folder that are compiled with the same flags are merged, _AT_MOST at a time, by a source that includes them.
So private names differ within a folder. Unit tests still link the libraries themselves, an object for each source.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The most sources that a change of one compiles again.
_AT_MOST = 8

_Sources = provider(
    doc = "What a library and all below it are compiled and linked from.",
    fields = {
        "libraries": "depset of struct(group, sources, context): ours that have sources",
        "outside": "depset of LinkerInput: of other repositories, and the linkopts of ours",
    },
)

_Merged = provider(
    doc = "What merged_sources compiles.",
    fields = {"groups": "a list of LinkingContext by group", "sources": "a set of File"},
)

def _sources_impl(target, ctx):
    if CcInfo not in target:
        return []
    if ctx.label.workspace_name:
        return [_Sources(libraries = depset(), outside = target[CcInfo].linking_context.linker_inputs)]
    below = [dep[_Sources] for dep in getattr(ctx.rule.attr, "deps", []) if _Sources in dep]
    libraries = []
    files = getattr(ctx.rule.files, "srcs", [])
    sources = tuple([file for file in files if file.extension == "cc"])
    other = [file for file in files if file.extension not in ["cc", "h", "inc"]]
    if other:
        fail("expected sources .cc, .h and .inc, found %s" % other[0].short_path)
    if sources:
        copts = tuple([flag.replace("$(BINDIR)", ctx.bin_dir.path) for flag in ctx.rule.attr.copts])
        # What a program links even if it calls nothing of it stays alone: other programs leave it out.
        alone = ctx.label.name if ctx.rule.attr.alwayslink else ""
        group = (ctx.label.package, alone, copts)
        libraries = [struct(group = group, sources = sources, context = target[CcInfo].compilation_context)]
    outside = []
    if getattr(ctx.rule.attr, "linkopts", []):
        outside = [cc_common.create_linker_input(owner = ctx.label, user_link_flags = depset(ctx.rule.attr.linkopts))]
    return [_Sources(
        libraries = depset(libraries, transitive = [sources.libraries for sources in below]),
        outside = depset(outside, transitive = [sources.outside for sources in below], order = "topological"),
    )]

_sources = aspect(implementation = _sources_impl, attr_aspects = ["deps"])

def _merged_sources_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    members = {}
    for library in depset(transitive = [dep[_Sources].libraries for dep in ctx.attr.deps]).to_list():
        members.setdefault(library.group, []).append(library)
    groups = {}
    for (folder, alone, copts), libraries in members.items():
        sources = [file for library in libraries for file in library.sources]
        contexts = [library.context for library in libraries]
        groups[(folder, alone, copts)] = []
        for first in range(0, len(sources), _AT_MOST):
            part = sources[first:first + _AT_MOST]
            name = "%s/%s" % (ctx.label.name, part[0].short_path[:-len(".cc")])
            merged = ctx.actions.declare_file(name + ".cc")
            ctx.actions.write(merged, "".join(['#include "%s"\n' % file.short_path for file in part]))
            _, objects = cc_common.compile(
                name = name,
                actions = ctx.actions,
                cc_toolchain = toolchain,
                feature_configuration = features,
                srcs = [merged],
                compilation_contexts = contexts + [cc_common.create_compilation_context(headers = depset(part))],
                # To GCC all but the main source is a header, which should use no private type.
                user_compile_flags = list(copts) + ["-Wno-subobject-linkage"],
            )
            linking, _ = cc_common.create_linking_context_from_compilation_outputs(
                name = name,
                actions = ctx.actions,
                cc_toolchain = toolchain,
                feature_configuration = features,
                compilation_outputs = objects,
                alwayslink = alone != "",
                disallow_dynamic_library = True,
            )
            groups[(folder, alone, copts)].append(linking)
    all_sources = {file: True for libraries in members.values() for library in libraries for file in library.sources}
    return [_Merged(groups = groups, sources = all_sources)]

merged_sources = rule(
    doc = "The sources of deps and of all that they depend on, merged.",
    implementation = _merged_sources_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo], aspects = [_sources]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _merged_deps_impl(ctx):
    compiled = ctx.attr._merged[_Merged]
    libraries = [library for dep in ctx.attr.deps for library in dep[_Sources].libraries.to_list()]
    missing = [file for library in libraries for file in library.sources if file not in compiled.sources]
    if missing:
        fail("expected a source of //tools/build:merged, found %s" % missing[0].short_path)
    groups = {library.group: True for library in libraries}
    outside = cc_common.create_linking_context(
        linker_inputs = depset(transitive = [dep[_Sources].outside for dep in ctx.attr.deps], order = "topological"),
    )
    headers = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    objects = [CcInfo(linking_context = part) for group in groups for part in compiled.groups[group]]
    info = cc_common.merge_cc_infos(
        direct_cc_infos = [CcInfo(compilation_context = headers, linking_context = outside)] + objects,
    )
    runfiles = ctx.runfiles()
    for dep in ctx.attr.deps:
        runfiles = runfiles.merge(dep[DefaultInfo].default_runfiles)
    return [info, DefaultInfo(runfiles = runfiles)]

merged_deps = rule(
    doc = "In place of deps of a program: their headers, and //tools/build:merged in place of their objects.",
    implementation = _merged_deps_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo], aspects = [_sources]),
        "_merged": attr.label(default = "//tools/build:merged", providers = [_Merged]),
    },
)
