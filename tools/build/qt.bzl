"""Debian's Qt 6 as a Bazel repository, and the two generators that its programs need.

    load("//tools/build:qt.bzl", "qt_library", "qt_resources")

`qt_library` is a library whose header has Q_OBJECT; `qt_resources` packs files, such as QML, into a source file.
"""

load("//tools/build:targets.bzl", "cc_library")

# Target -> the modules whose headers and libraries it brings, the ones that they need included.
_MODULES = {
    "core": ["Core"],
    "gui": ["Core", "Gui"],
    "qml": ["Core", "Network", "Qml", "QmlIntegration"],
    "quick": ["Core", "Gui", "Network", "OpenGL", "Qml", "QmlIntegration", "QmlModels", "Quick"],
    "quick_widgets": ["QuickWidgets", "Widgets"],
    "test": ["Core", "Gui", "Test"],
    "widgets": ["Core", "Gui", "Widgets"],
}
_HEADERS_ONLY = ["QmlIntegration"]

# No `emit`, `slots`, `signals` words: other libraries have them as names. QTest presses keys and buttons only with QT_GUI_LIB.
_LIBRARY = """
cc_library(
    name = "{name}",
    defines = ["QT_NO_KEYWORDS", "QT_NO_FOREACH", "QT_GUI_LIB"],
    hdrs = glob({globs}),
    includes = {includes},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

def _qt_repository_impl(ctx):
    machine = ctx.execute(["uname", "-m"]).stdout.strip()
    headers = ctx.path("/usr/include/%s-linux-gnu/qt6" % machine)
    libraries = ctx.path("/usr/lib/%s-linux-gnu" % machine)
    next_step = "Next: tools/setup, or apt-get install qt6-base-dev qt6-declarative-dev."
    content = ""
    for name, modules in _MODULES.items():
        linkopts = []
        for module in modules:
            source = headers.get_child("Qt" + module)
            if not source.exists:
                fail("%s expected, but not found. %s" % (source, next_step))
            if not ctx.path("include/Qt" + module).exists:
                ctx.symlink(source, "include/Qt" + module)
            if module in _HEADERS_ONLY:
                continue
            file = "libQt6%s.so" % module
            if not libraries.get_child(file).exists:
                fail("%s expected, but not found in %s. %s" % (file, libraries, next_step))
            linkopts.append("-l:" + file)
        content += _LIBRARY.format(
            name = name,
            globs = ["include/Qt%s/**" % module for module in modules],
            includes = ["include"] + ["include/Qt" + module for module in modules],
            linkopts = linkopts,
        )
    for tool in ["moc", "rcc"]:
        source = ctx.path("/usr/lib/qt6/libexec/" + tool)
        if not source.exists:
            fail("%s expected, but not found. %s" % (source, next_step))
        ctx.symlink(source, tool)
    ctx.file("BUILD.bazel", content + '\nexports_files(["moc", "rcc"])\n')

qt_repository = repository_rule(
    doc = "Qt 6: its modules, moc and rcc.",
    implementation = _qt_repository_impl,
    local = True,
)

def qt_library(name, deps, stem = None, **attributes):
    """Makes a library of {stem}.cc and {stem}.h, and of the code that Qt's moc generates from the header.

    Args:
      name: of the library.
      deps: of the library.
      stem: of its files; default: the name.
      **attributes: of the library.
    """
    stem = stem or name
    moc = stem + "_moc"
    native.genrule(
        name = moc,
        srcs = [stem + ".h"],
        outs = [moc + ".cc"],
        cmd = "$(execpath @qt6//:moc) -f %s/%s.h -o $@ $<" % (native.package_name(), stem),
        exec_tools = ["@qt6//:moc"],
    )
    cc_library(
        name = name,
        srcs = [
            stem + ".cc",
            moc + ".cc",
        ],
        hdrs = [stem + ".h"],
        deps = deps,
        **attributes
    )

def qt_resources(name, srcs, prefix):
    """Makes {name}.cc, whose Q_INIT_RESOURCE({name}) puts each file at :/{prefix}/{its name}.

    Args:
      name: of the genrule.
      srcs: files of this package.
      prefix: the folder in the resource system.
    """
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [name + ".cc"],
        # Format 1: later ones record the time of each file.
        cmd = """
            {{
              echo '<RCC><qresource prefix="/{prefix}">'
              for file in $(SRCS); do echo "<file alias=\\"$${{file##*/}}\\">$$PWD/$$file</file>"; done
              echo '</qresource></RCC>'
            }} > $(@D)/{name}.qrc
            $(execpath @qt6//:rcc) --format-version 1 --name {name} -o $@ $(@D)/{name}.qrc
        """.format(name = name, prefix = prefix),
        exec_tools = ["@qt6//:rcc"],
    )
