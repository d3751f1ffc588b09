"""Configuration of the documentation site: `make docs` builds it, and `docs/development/site.md` describes it."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from sphinx.util import logging

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from generators import (  # noqa: E402 - needs the path above
    command_pages,
    explorer_page,
    leaderboard,
    math_markup,
    mechanism_pages,
    name_pages,
    offline,
)

project = "quietbits"
author = "the quietbits founders"
version = release = installed_version("quietbits")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "generators", "tutorials", "gallery/sg_execution_times.rst", "sg_execution_times.rst"]
root_doc = "index"
# A docstring's single backticks mark names and commands: names of the package become links.
default_role = "py:obj"
# Two dashes begin an option.
smartquotes = False
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "quietbits"
html_static_path = ["_static"]
html_css_files = ["quietbits.css"]
# Pages that are copied as they are.
html_extra_path = ["reference/generated/explorer"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = math_markup.RENDERER
# Excerpts of results are fetched, which browsers refuse for pages that are opened as files.
html_show_search_summary = False
html_sidebars = {"index": [], "leaderboard/index": [], "get-started": [], "benchmarks": [], "changelog": []}
html_theme_options = {
    "logo": {"text": "quietbits"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_nav_level": 1,
    "navigation_depth": 3,
    "collapse_navigation": True,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Without a mode the theme's script complains in the console of a first visit.
html_context = {"default_mode": "auto"}
copyright = author  # noqa: A001 - Sphinx's name


def write_generated_pages(app: Any, _: Any) -> None:
    """Write the pages that the package itself describes, before Sphinx reads the sources."""
    reference = Path(app.srcdir) / "reference" / "generated"
    command_pages.write(reference / "commands")
    leaderboard.write(reference / "leaderboard")
    mechanism_pages.write(reference / "mechanisms")
    name_pages.write(reference / "names")
    explorer_page.write(reference / "explorer")


def check_requests(app: Any, error: Exception | None) -> None:
    """Warn of everything that a built page would load from another host."""
    if error is None:
        for request in offline.requests(Path(app.outdir)):
            logging.getLogger(__name__).warning("request to another host: %s", request)


def setup(app: Any) -> None:
    """Register the generated pages and the renderer of mathematics."""
    math_markup.setup(app)
    app.connect("config-inited", write_generated_pages)
    app.connect("build-finished", check_requests)
