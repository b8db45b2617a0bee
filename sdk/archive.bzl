"""The rule that packs the SDK's archive."""

# The version of Tandem; tests/sdk/archive_test compares it with that of the Python package.
VERSION = "0.1.0"

# The licences of the libraries inside libtandem.so.1, each in a folder of its library's name.
NOTICES = ["@%s//:notices" % library for library in [
    "com_google_absl",
    "flatbuffers",
    "libjpeg",
    "libpng",
    "nlohmann_json",
]]

_ARCHITECTURES = {"aarch64": "aarch64", "k8": "x86_64"}

# Keeps a page's links to the pages beside it, to headings and to websites; makes all others plain text.
_UNLINK = "sed -zE -e 's,]\\(([^)#]*/)?(%s)(#[^)]*)?\\),]\\x01\\2\\3\\x02,g' -e 's,]\\((#[^)]*|https?:[^)]*)\\),]\\x01\\1\\x02,g' " + \
          "-e 's,\\[([^][]*)]\\([^)]*\\),\\1,g' -e 's,\\x01,(,g' -e 's,\\x02,),g'"

def _archive_impl(ctx):
    name = "%s-%s-linux-%s" % (ctx.label.name, VERSION, _ARCHITECTURES[ctx.var["TARGET_CPU"]])
    archive = ctx.actions.declare_file(name + ".tar.gz")
    copies, inputs = [], ctx.files.notices + ctx.files.pages
    for target, path in ctx.attr.files.items():
        files = target.files.to_list()
        inputs += files
        for file in files:
            # A path that ends in a slash is a folder: for files of a package, below it as in the package.
            below = file.short_path.rpartition(path)[2] if path in file.short_path else file.basename
            to = path + below if path.endswith("/") else path
            copies.append("install -D -m %s '%s' 'out/%s/%s'" % (
                "755" if ".so" in file.basename or to.startswith("bin/") or to.endswith("/run") else "644",
                file.path,
                name,
                to,
            ))
    for file in ctx.files.notices:
        library = file.dirname.rpartition("/")[2]
        copies.append("install -D -m 644 '%s' 'out/%s/share/licences/%s/%s'" % (file.path, name, library, file.basename))
    copies.append("mkdir out/%s/docs" % name)
    unlink = _UNLINK % "|".join([file.basename.replace(".", "[.]") for file in ctx.files.pages])
    for file in ctx.files.pages:
        copies.append("%s '%s' > 'out/%s/docs/%s'" % (unlink, file.path, name, file.basename))
    ctx.actions.run_shell(
        command = "\n".join(["set -e", "mkdir out"] + copies + [
            "sed -i 's/VERSION/%s/' out/%s/lib/pkgconfig/tandem.pc" % (VERSION, name),
            "ln -s libtandem.so.1 out/%s/lib/libtandem.so" % name,
            "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C out -c %s | gzip -9n > %s" % (name, archive.path),
            "rm -r out",
        ]),
        inputs = inputs,
        mnemonic = "Sdk",
        outputs = [archive],
        progress_message = "Packing the SDK",
    )
    return [DefaultInfo(files = depset([archive]), runfiles = ctx.runfiles([archive]))]

archive = rule(
    doc = "NAME-VERSION-linux-ARCHITECTURE.tar.gz, with one folder of that name.",
    implementation = _archive_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(mandatory = True, allow_files = True, doc = "files -> their path in the archive, or their folder"),
        "notices": attr.label_list(allow_files = True, doc = "licences: .../NAME/..."),
        "pages": attr.label_list(allow_files = True, doc = "for its folder docs"),
    },
)
