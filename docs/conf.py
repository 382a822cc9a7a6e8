"""The documentation site: `sphinx-build docs target/site`, with the package installed (`pip install '.[docs]'`)."""

from importlib.util import find_spec

project = "limitpoint"
copyright = "the limitpoint contributors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.katex"]
html_theme = "furo"
html_title = "limitpoint"
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# links of the pages that lead to files of the repository, which are no pages of the site
suppress_warnings = ["myst.xref_missing", "toc.not_included", "toc.not_readable", "myst.header"]
nb_execution_mode = "cache"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_excludepatterns = [] if find_spec("torch") else ["notebooks/audit.md"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_mock_imports = [name for name in ("torch", "jax") if find_spec(name) is None]
