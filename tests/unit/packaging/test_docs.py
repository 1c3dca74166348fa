# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is true: rules load, and nothing is left out.

That the pages build is `make docs`.
"""

from __future__ import annotations

import re
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

from state_policy.conf import list_opts
from state_policy.engine import sentence
from state_policy.rules import load
from state_policy.rules.kinds.registry import BUILTIN

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "doc" / "source"

_RST_RULES = re.compile(
    r"^( *)\.\. code-block:: yaml\n\n((?:\1 +.*\n|\n)+)", re.MULTILINE
)
_MARKDOWN_RULES = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


#: Its rules use a kind that is not installed; the plugin of the example has
#: tests of its own.
_PLUGIN_PAGE = "kinds-plugin.rst"


def _examples():
    for page in sorted(PAGES.glob("**/*.rst")):
        if page.name == _PLUGIN_PAGE:
            continue
        for number, found in enumerate(
            _RST_RULES.finditer(page.read_text() + "\n")
        ):
            yield f"{page.name}-{number}", textwrap.dedent(found[2])
    readme = (ROOT / "README.md").read_text()
    for number, found in enumerate(_MARKDOWN_RULES.finditer(readme)):
        yield f"README.md-{number}", found[1]


EXAMPLES = dict(_examples())


def test_there_are_examples():
    pages = {name.rpartition("-")[0] for name in EXAMPLES}
    assert pages >= {
        "README.md",
        "installation.rst",
        "quarantine.rst",
        "rules.rst",
    }


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_rules_in_the_documentation_load(tmp_path, name):
    file = tmp_path / "rules.yaml"
    file.write_text(EXAMPLES[name])
    assert load([file]).revision != load([]).revision


def test_every_kind_is_described():
    page = (PAGES / "kinds.rst").read_text()
    missing = [kind for kind in BUILTIN if f"* - ``{kind}``" not in page]
    assert not missing


def test_classes_of_kinds_are_the_true_ones():
    page = (PAGES / "kinds.rst").read_text()
    told = dict(re.findall(r"\* - ``(\S+)``\n     - (\w+)\n", page))
    assert told == {name: kind.change.value for name, kind in BUILTIN.items()}


def test_every_reason_code_is_described():
    page = (PAGES / "answers.rst").read_text()
    missing = [
        code for code in sentence.CODES if f"* - ``{code}``" not in page
    ]
    assert not missing


def test_options_named_in_the_pages_exist():
    known = {option.name for _, options in list_opts() for option in options}
    pages = {page.name: page.read_text() for page in PAGES.glob("**/*.rst")}
    for name, text in pages.items():
        for block in re.findall(r"code-block:: ini\n\n((?: +.*\n|\n)+)", text):
            if "[state_policy" not in block:
                continue
            for option in re.findall(r"^ +(\w+) = ", block, re.MULTILINE):
                assert option in known, (name, option)


def test_every_page_is_in_the_table_of_contents():
    index = (PAGES / "index.rst").read_text()
    for page in PAGES.glob("*.rst"):
        if page.stem != "index":
            assert re.search(rf"^   {page.stem}$", index, re.MULTILINE), page


def test_commands_named_in_the_readme_exist():
    readme = (ROOT / "README.md").read_text()
    known = {
        entry.name.replace("_", " ")
        for entry in metadata.entry_points(group="state_policy.cli")
    }
    named = set(re.findall(r"state-policy ((?:quarantine )?[a-z]+)", readme))
    assert named
    assert named <= known, named - known


def test_targets_of_make_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = set(
        re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text())
    )
    assert named >= {"demo", "test"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
