"""How the site is built: `make docs`. Nothing on it is fetched from other hosts when it is read."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
with (HERE.parent / "pyproject.toml").open("rb") as file:
    ABOUT = tomllib.load(file)["project"]

project, author = "bifactor", "The bifactor developers"
copyright = author
version = release = ABOUT["version"]
REPOSITORY = ABOUT["urls"]["Source"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_examples",
    "benchmark_tables",
    "local_mathjax",
    "nothing_from_elsewhere",
    "page_titles",
    "readable_docstrings",
]
root_doc = "index"
exclude_patterns = ["_build", "_ext", "api/examples", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
nitpicky = True
default_role = "code"
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

SECTIONS = ("completion", "choices", "tables", "pictures", "signals", "solvers")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("bifactor",),
    "reference_url": {"bifactor": None},
    "filename_pattern": r"\.py$",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "default_thumb_file": str(HERE / "_static" / "logo.svg"),
}

html_theme = "pydata_sphinx_theme"
html_title = f"bifactor {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = html_logo = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "benchmarks": [], "changelog": [], "citing": [], "glossary": []}
html_theme_options = {
    "logo": {"text": "bifactor"},
    "header_links_before_dropdown": 7,
    "icon_links": [{"name": "Source", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}

linkcheck_ignore = [r"https?://.*"]  # links inside of the site are checked by the build itself
