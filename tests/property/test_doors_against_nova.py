# SPDX-License-Identifier: Apache-2.0
"""Doors and Nova's own router see the same operation on the same server."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state_policy.drivers.nova.answers import Answers
from state_policy.wsgi import doors
from tests.property.nova_router import Router, router, taken
from tests.property.requests_at_random import request

#: Bytes that doors read; some bodies are longer.
LIMIT = 64 * 1024
SEED = int(os.environ.get("STATE_POLICY_FUZZ_SEED", "20261201"))


@pytest.fixture(scope="module")
def nova() -> Any:
    with router() as made:
        yield made


def check(nova: Router, random: Random) -> str:
    """Send one random request; return what kind it turned out to be."""
    environ, stream, content = request(random)
    plain = nova.ask({**environ, "wsgi.input": stream()})
    assert plain.unknown is None
    looked_at = {**environ, "wsgi.input": stream()}
    before = dict(looked_at)
    door = doors.find(looked_at, LIMIT, Answers().boot_actions())
    # What was read must be put back: Nova sees the same afterwards. Reading
    # shows in the environ, but for a stream that is rewound.
    if looked_at != before or "webob.is_body_seekable" in before:
        again = nova.ask(looked_at)
        assert (again.ran, again.body, again.end) == (
            plain.ran,
            plain.body,
            plain.end,
        ), environ
    found = None
    if door is not None and door.operation is not None:
        found = (door.operation.name, door.address.server_id)
    # As behind the wrapper of the old API: nobody takes headers away here.
    behind = {**environ, "openstack.legacy_v2": True}
    accepted = Answers().version_accepted(behind)
    if found == plain.ran:
        assert accepted or not found, environ
        return "same" if found else "none"
    if door is not None and door.unreadable and len(content) > LIMIT:
        return "too long"
    if found and not accepted:
        # Doors leave the version to Nova's own reading of it.
        assert plain.ran is None and plain.body is None, (environ, plain)
        assert plain.end[:4] in ("400 ", "406 "), (environ, plain)
        return "version"
    # Where the body decides nothing doors do not read it, and Nova fails on
    # one that it cannot read or decode.
    assert found and plain.ran is None, (environ, content, found, plain)
    assert door and door.operation and door.operation.action is None
    assert not taken(plain.body, door.operation.method), (environ, plain)
    return "body"


def bombard(nova: Router, count: int, seed: int) -> Counter[str]:
    """Send so many random requests and count their kinds."""
    kinds: Counter[str] = Counter()
    random = Random(seed)
    for _ in range(count):
        kinds[check(nova, random)] += 1
    return kinds


def test_twenty_thousand_requests(nova: Router) -> None:
    kinds = bombard(nova, 20_000, SEED)
    # The test is worth something only while many requests are operations.
    assert kinds["same"] > 3_000, kinds
    assert kinds["none"] > 3_000, kinds
    assert kinds["too long"] < 200, kinds
    assert kinds["version"] > 100, kinds


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.randoms(use_true_random=False))
def test_requests_that_shrink(nova: Router, random: Random) -> None:
    check(nova, random)


@pytest.mark.fuzz
def test_a_million_requests(nova: Router) -> None:
    kinds = bombard(nova, 1_000_000, SEED + 1)
    assert sum(kinds.values()) == 1_000_000
    assert kinds["same"] > 150_000, kinds
    print(dict(kinds))
