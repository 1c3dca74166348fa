# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation."""

import os

# The commands import Nova's names while their help is read.
os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

project = "state-policy"
copyright = "the state-policy contributors"
# A version is made from tags; pages must not differ without them.
version = release = ""

extensions = [
    "cliff.sphinxext",
    "openstackdocstheme",
    "oslo_config.sphinxconfiggen",
    "oslo_config.sphinxext",
    "oslo_policy.sphinxext",
    "oslo_policy.sphinxpolicygen",
    "reno.sphinxext",
    "sphinx.ext.autodoc",
    "stevedore.sphinxext",
]

templates_path = []
exclude_patterns = []
html_theme = "openstackdocs"
html_static_path = ["_static"]
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_pdf_link = False
openstackdocs_repo_name = ""
openstackdocs_bug_project = ""

_ETC = "../../etc/state_policy"
config_generator_config_file = [
    (f"{_ETC}/config-generator.conf", "_static/state_policy"),
]
policy_generator_config_file = [
    (f"{_ETC}/policy-generator.conf", "_static/state_policy"),
]

autoprogram_cliff_application = "state-policy"
