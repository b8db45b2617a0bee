"""Sphinx's configuration of the site; tools/docs names it."""

project = "Tandem"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Tandem"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
pygments_dark_style = "monokai"
html_copy_source = False
html_show_copyright = html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # blocks of output beside commands
