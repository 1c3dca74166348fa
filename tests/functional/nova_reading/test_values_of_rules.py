# SPDX-License-Identifier: Apache-2.0
"""Values that rules refuse as impossible, against what Nova's API takes."""

from __future__ import annotations

from typing import Any

import pytest
from nova import exception
from nova.api.validation import parameter_types, validators

from state_policy.rules.kinds import BUILTIN

#: What stands beside the characters that are tried.
CHARACTERS = [chr(code) for code in range(0x20, 0x7F)] + ["é", "中", "😀"]


def written(value: str) -> str:
    """Return a value as a rule can name whatever it is."""
    return "".join(f"%{byte:02X}" for byte in value.encode())


def nova_takes(schema: dict[str, Any], value: Any) -> bool:
    validator = validators._SchemaValidator(schema)
    try:
        validator.validate(value)
    except exception.ValidationError:
        return False
    return True


def rule_takes(kind: str, match: str) -> bool:
    try:
        BUILTIN[kind](kind, match)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "tag",
    [
        *(f"a{c}b" for c in CHARACTERS),
        *CHARACTERS,
        "t" * 60,
        "t" * 61,
        "é" * 60,
    ],
)
def test_tags(tag: str) -> None:
    wanted = nova_takes(parameter_types.tag, tag)
    assert rule_takes("server.tag", written(tag)) is wanted


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((f"a{c}b", "v") for c in CHARACTERS),
        *((c, "v") for c in CHARACTERS),
        *(("k", f"a{c}b") for c in CHARACTERS),
        ("k", ""),
        ("k" * 255, "v" * 255),
        ("k" * 256, "v"),
        ("k", "v" * 256),
    ],
)
def test_metadata(key: str, value: str) -> None:
    wanted = nova_takes(parameter_types.metadata, {key: value})
    match = f"{written(key)}={written(value)}"
    assert rule_takes("server.metadata", match) is wanted


@pytest.mark.parametrize(
    "zone", [*(f"a{c}b" for c in CHARACTERS[:-1]), "z" * 255, "z" * 256]
)
def test_zones(zone: str) -> None:
    schema = {"type": "object", "properties": {"z": parameter_types.az_name}}
    wanted = nova_takes(schema, {"z": zone})
    assert rule_takes("server.az", written(zone)) is wanted


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        ("155d900f-4e14-4e4c-a73d-069cbf4541e6", True),
        ("cirros", False),
        ("155d900f-4e14-4e4c-a73d-069cbf4541e", False),
        ("155d900f-4e14-4e4c-a73d-069cbf4541eg", False),
        ("any", False),
    ],
)
def test_images(image: str, wanted: bool) -> None:
    assert nova_takes(parameter_types.image_id, image) is wanted
    assert rule_takes("server.image", image) is wanted
