"""The rule that packs the Python package `tandem` and the project's programs into a wheel."""

# Where `python -m tandem.sdk` expects the files of the C interface, by extension.
_SDK_FOLDERS = {"cmake": "lib/cmake/Tandem", "fbs": "share/tandem", "h": "include", "hpp": "include", "so.1": "lib"}

_ASSETS = "../pip/gymnasium_mujoco_assets/"

def _wheel_impl(ctx):
    package = ctx.attr.packages[0].label
    files = {}  # path in the wheel -> file

    # The packages' own files: whatever their libraries have.
    roots = [each.label.package for each in ctx.attr.packages]
    for each in ctx.attr.packages:
        for file in each[DefaultInfo].default_runfiles.files.to_list():
            inside = [root for root in roots if file.short_path.startswith(root + "/")]
            if not inside:
                fail("Expected the packages' files below %s, found %s." % (roots, file.short_path))
            if file.extension != "pyc":  # pip makes its own
                files[file.short_path[len(inside[0].rpartition("/")[0]) + 1:]] = file

    # The programs, the engine's model files beside it. Their libraries are for auditwheel to find.
    libraries = []
    programs = [target[DefaultInfo].files_to_run.executable for target in ctx.attr.data]
    for target, path in ctx.attr.data.items():
        program = target[DefaultInfo].files_to_run.executable
        files["%s/%s" % (package.name, path)] = program
        for file in target[DefaultInfo].default_runfiles.files.to_list():
            if file.short_path.startswith(_ASSETS):
                files[package.name + "/assets/" + file.short_path[len(_ASSETS):]] = file
            elif ".so" in file.basename:
                libraries.append(file)
            elif file not in programs:  # some start others
                fail("Expected model files, shared libraries and other programs with %s, found %s." % (path, file.short_path))

    for file in ctx.attr.sdk[DefaultInfo].default_runfiles.files.to_list():
        extension = file.basename.partition(".")[2]
        files["%s/_sdk/%s/%s" % (package.name, _SDK_FOLDERS[extension], file.basename)] = file

    for file in ctx.files.examples:
        files["%s/examples/%s" % (package.name, file.basename)] = file

    licences = {}  # path in the wheel's folder of licences -> file
    for file in ctx.files.notices:
        _, third_party, path = file.short_path.rpartition("/notices/")
        licences["third_party/" + path if third_party else file.basename] = file

    # A folder, as the file's name tells Python and platform, which only the audit knows.
    folder = ctx.actions.declare_directory(ctx.label.name)
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add(ctx.file.pyproject, format = "--pyproject=%s")
    args.add(folder.path, format = "--out=%s")
    args.add_all(["--file=%s=%s" % (path, file.path) for path, file in files.items()])
    args.add_all(["--licence=%s=%s" % (path, file.path) for path, file in licences.items()])
    args.add_all(["--library_folder=" + file.dirname for file in libraries])
    environment = {}
    if "TANDEM_ARM64_ROOT" in ctx.var:
        environment["_PYTHON_HOST_PLATFORM"] = "linux-aarch64"  # what sysconfig returns
        args.add(ctx.var["TANDEM_ARM64_ROOT"] + "/usr/lib/aarch64-linux-gnu", format = "--library_folder=%s")
    ctx.actions.run(
        arguments = [args],
        env = environment,
        executable = ctx.executable._build_wheel,
        inputs = [ctx.file.pyproject, ctx.file.readme] + files.values() + licences.values() + libraries,
        mnemonic = "Wheel",
        outputs = [folder],
        progress_message = "Packing and auditing the wheel",
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles([folder]))]

wheel = rule(
    doc = "A folder with one wheel in it, audited: its tags are true, and what it needs beside Python is inside.",
    implementation = _wheel_impl,
    attrs = {
        "data": attr.label_keyed_string_dict(mandatory = True, doc = "programs, which come with their runfiles -> path in the first package"),
        "examples": attr.label_list(allow_files = [".py"], doc = "programs for `python -m tandem.examples` to copy"),
        "notices": attr.label_list(allow_files = True, doc = "licences: of this project, and .../notices/NAME/... of others"),
        "packages": attr.label_list(mandatory = True, doc = "py_libraries of Python packages; the first has the programs inside"),
        "pyproject": attr.label(mandatory = True, allow_single_file = True, doc = "what describes the package"),
        "readme": attr.label(mandatory = True, allow_single_file = True, doc = "what pyproject.toml calls the readme"),
        "sdk": attr.label(mandatory = True, doc = "the files of the C interface, as its data"),
        "_build_wheel": attr.label(default = "//client_py/distribution:build_wheel", executable = True, cfg = "exec"),
    },
)
