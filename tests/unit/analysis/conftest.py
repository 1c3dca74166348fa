# SPDX-License-Identifier: Apache-2.0
"""Rule sets from text."""

import pytest

from state_policy.engine.analysis.search import findings
from state_policy.rules import load


@pytest.fixture
def rules(tmp_path):
    """Return a function from the text of a policy file to a rule set."""

    def rules(text, name="rules.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return load([path])

    return rules


@pytest.fixture
def found(rules):
    """Return a function from text to ``{code: [rule, ...]}``."""

    def found(text):
        by_code = {}
        for finding in findings(rules(text)):
            by_code.setdefault(finding.code, []).append(finding.rule)
        return by_code

    return found
