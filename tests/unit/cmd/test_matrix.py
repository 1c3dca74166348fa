# SPDX-License-Identifier: Apache-2.0
"""`state-policy matrix`: text, rows and the page."""

import csv
import html.parser
import json
import os
import random
import re
import shutil
import subprocess
import warnings

import pytest

from state_policy.cmd.casefile import values
from state_policy.engine.evaluate import decide
from state_policy.engine.states import TASK_STATES, VM_STATES
from state_policy.rules import load

RULES = """
"server:delete:quarantine": "rule:building and server.state_age:>=60m"
"server:delete": "not (rule:snapshotting and server.state_age:<30m)"
"class:power": "not server.host_up:false or role:operator"
"""


def test_text(file, run):
    code, lines, _ = run("matrix", file(RULES))
    assert code == 0
    (delete,) = [found for found in lines if found.startswith("delete ")]
    assert "-+" in delete
    (start,) = [found for found in lines if found.startswith("start ")]
    assert set(start.split()[1:]) == {"+*"}
    assert len([name for name in lines if "+" in name]) >= 82


def test_a_fact_that_is_given_depends_on_nothing(file, run):
    lines = run("matrix", file(RULES), "--fact", "host_up=false")[1]
    (start,) = [found for found in lines if found.startswith("start ")]
    assert set(start.split()[1:]) == {"-"}
    lines = run(
        "matrix", file(RULES), "--fact", "host_up=false", "--role", "operator"
    )[1]
    (start,) = [found for found in lines if found.startswith("start ")]
    assert set(start.split()[1:]) == {"+"}


def test_rows_are_decisions(file, run_json):
    path = file(RULES)
    code, rows = run_json(
        "matrix", path, "--operation", "delete", "--age", "2h"
    )
    assert (code, len(rows)) == (0, 516)
    rules = load([path])
    for row in random.Random(1).sample(rows, 100):
        facts = dict(
            values.fact(key, row[key]) for key in ("vm_state", "task_state")
        )
        facts |= dict([values.fact("state_age", "2h")])
        facts["caller"] = values.caller({})
        decision = decide(rules, "delete", facts)
        assert (row["verdict"], row["code"], row["rule"]) == (
            str(decision.verdict),
            decision.code,
            decision.rule,
        )


def test_two_sets_side_by_side(file, run):
    path, other = file(RULES), file("{}", "other.yaml")
    code, lines, _ = run(
        *("matrix", path, "--beside", other, "--operation", "delete"),
        *("--age", "2h", "-f", "csv"),
    )
    assert code == 0
    rows = list(csv.DictReader(lines))
    assert {(row["verdict"], row["verdict_2"]) for row in rows} == {
        ("quarantine", "allow"),
        ("allow", "allow"),
    }


def test_unknown_operation(file, run):
    code, _, err = run("matrix", file(RULES), "--operation", "delte")
    assert code == 2
    assert "did you mean `delete`?" in err


# -- the page -----------------------------------------------------------------


@pytest.fixture
def page(file, run, tmp_path):
    """Return the path of a page that shows two sets."""
    path = tmp_path / "page.html"
    code, lines, _ = run(
        *("matrix", file(RULES), "--beside", file("{}", "other.yaml")),
        *("--html", path),
    )
    assert (code, lines) == (0, [])
    return path


class _Elements(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def elements(path):
    parser = _Elements()
    parser.feed(path.read_text())
    return parser.found


def test_the_page_needs_no_network(page):
    text = page.read_text()
    assert not re.search(r"(https?:)?//[a-z]", text)
    assert "default-src 'none'" in text
    for tag, attrs in elements(page):
        assert tag not in ("link", "img", "iframe", "object", "embed")
        assert not {"src", "href", "action"} & {*attrs}


def test_the_page_is_a_table_to_a_screen_reader(page):
    found = elements(page)
    tags = [tag for tag, _ in found]
    assert tags.count("caption") == tags.count("table") == 1
    heads = [attrs for tag, attrs in found if tag == "th"]
    assert all(attrs["scope"] in ("row", "col") for attrs in heads)
    assert sum(attrs["scope"] == "row" for attrs in heads) == 82
    # On a phone the cells are blocks; the roles stay.
    roles = {attrs.get("role") for _, attrs in found}
    assert {"table", "row", "cell", "rowheader", "columnheader"} <= roles
    assert ("html", {"lang": "en"}) in found
    cells = [attrs for tag, attrs in found if tag == "td"]
    assert sum(attrs["tabindex"] == "0" for attrs in cells) == 1
    signs = [a for t, a in found if t == "span" and "m " in a.get("class", "")]
    assert signs
    assert all(attrs["aria-hidden"] == "true" for attrs in signs)


def test_the_page_says_verdicts_in_words_too(page):
    text = page.read_text()
    assert '<span class="vh">allow</span>' in text
    assert '<span class="vh">deny or allow</span>' in text


def test_light_and_dark(page):
    text = page.read_text()
    assert "prefers-color-scheme: dark" in text
    light, dark = re.findall(r":root \{(.*?)\}", text, re.S)
    for verdict in ("allow", "deny", "wait", "brake", "quarantine"):
        for colours in (light, dark):
            assert contrast(colours, verdict) >= 4.5


def contrast(colours, verdict):
    """Return the contrast of a sign against its ground, as WCAG has it."""

    def luminance(name):
        code = re.search(rf"--{name}: #(\w+);", colours)[1]
        parts = [int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [
            part / 12.92
            if part <= 0.03928
            else ((part + 0.055) / 1.055) ** 2.4
            for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    one, other = sorted((luminance(verdict), luminance(f"{verdict}-t")))
    return (other + 0.05) / (one + 0.05)


def test_texts_of_rules_are_no_markup(file, run, tmp_path):
    path = tmp_path / "page.html"
    rules = file(
        '"server:stop": "server.flavor:%3C/script%3E%3Cb%3E"', "<i>&.yaml"
    )
    assert run("matrix", rules, "--html", path)[0] == 0
    text = path.read_text()
    assert text.count("</script>") == 2
    assert "<i>" not in text.partition("<script")[0]


SCRIPT = """
<script>
addEventListener("load", () => {
  const said = [];
  const get = (id) => document.getElementById(id);
  const all = (what) => [...document.querySelectorAll(what)];
  const rows = () => all("tbody tr").filter((r) => !r.hidden);
  const change = (id, value) => {
    get(id).value = value;
    get(id).dispatchEvent(new Event("input", {bubbles: true}));
  };
  const cell = (status) => document.querySelector(
    `tr[data-op="0"] td[data-label="${status}"]`);
  const key = (name) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key: name, bubbles: true}));
  said.push(["rows", rows().length]);
  cell("ACTIVE").focus();
  said.push(["focus", get("why").textContent]);
  key("ArrowRight");
  said.push(["right", document.activeElement.dataset.label]);
  key("ArrowDown");
  said.push(["down", document.activeElement.parentNode.dataset.op]);
  cell("BUILD").dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
  said.push(["hover", get("why").textContent]);
  change("age", ">=60m");
  said.push(["aged", cell("BUILD").textContent]);
  change("operation", "power");
  said.push(["class", rows().length]);
  change("operation", "delete");
  get("differing").checked = true;
  get("differing").dispatchEvent(new Event("input", {bubbles: true}));
  said.push(["differing", rows().map((r) => r.cells[0].textContent)]);
  change("status", "BUILD");
  said.push(["columns", all("thead th").filter((h) => !h.hidden).length]);
  said.push(["wide", document.documentElement.scrollWidth <= innerWidth]);
  said.push(["display", getComputedStyle(all("td")[1]).display]);
  const made = document.createElement("pre");
  made.id = "said";
  made.textContent = JSON.stringify(said);
  document.body.append(made);
});
</script>
"""


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if shutil.which(name):
            return name
    if os.geteuid() == 0 and shutil.which("apt-get") and os.environ.get("CI"):
        for arguments in (["update"], ["install", "-y", "chromium"]):
            subprocess.run(
                ["apt-get", "-qq", *arguments], check=False, timeout=600
            )
    return shutil.which("chromium")


@pytest.fixture(scope="module")
def chromium():
    found = browser()
    if found is None:
        warnings.warn(
            "NOT TESTED: the page of `state-policy matrix` in a browser: "
            "there is no chromium; install the package `chromium`",
            stacklevel=1,
        )
        pytest.skip("no chromium: the page was not tried in a browser")
    return found


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_in_a_browser(page, chromium, tmp_path, width):
    tried = tmp_path / "tried.html"
    tried.write_text(page.read_text().replace("</body>", SCRIPT + "</body>"))
    done = subprocess.run(
        [
            chromium,
            *("--headless", "--no-sandbox", "--disable-gpu"),
            f"--user-data-dir={tmp_path}/profile",
            f"--window-size={width},900",
            "--virtual-time-budget=5000",
            "--dump-dom",
            tried.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    text = re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.S)[1]
    said = dict(json.loads(text.replace("&gt;", ">").replace("&lt;", "<")))
    assert said["rows"] == 82
    assert said["focus"].startswith("delete in ACTIVE")
    assert "server:delete: not (rule:snapshotting" in said["focus"]
    assert "rules.yaml:3" in said["focus"]
    assert "other.yaml: ✓ allow, by class:any: @" in said["focus"]
    assert said["right"] == "BUILD"
    assert said["down"] == "1"
    assert said["hover"].startswith("delete in BUILD")
    assert "quarantine" in said["aged"]
    assert said["class"] == 15
    assert said["differing"] == ["delete", "force_delete"]
    assert said["columns"] == 2
    assert said["wide"] is True
    assert said["display"] == ("table-cell" if width > 720 else "flex")


def test_statuses_have_all_states():
    from state_policy.engine.analysis.status import statuses

    bits = 0
    for found in statuses().values():
        assert not bits & found
        bits |= found
    assert bits.bit_count() == len(VM_STATES) * (len(TASK_STATES) + 1)
