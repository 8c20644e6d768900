"""The script of the live pages, in a JavaScript engine without a browser: it says what is old."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node here")

#: A page with one live part, and a clock that only the script's own timeouts move.
PAGE = """
const [answers, source] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const heard = { pauses: [], said: [], shown: 0, asked: [] };
const trouble = { dataset: { away: "away", refused: "refused" } };
let said = "";
Object.defineProperty(trouble, "textContent", {
  get: () => said, set: (text) => { said = text; heard.said.push(text); },
});
const part = {
  dataset: { leasequeueLive: "/live/" },
  contains: () => false,
  querySelector: () => null,
  querySelectorAll: () => [],
  replaceChildren: () => { heard.shown += 1; },
};
globalThis.document = {
  hidden: false,
  activeElement: null,
  getSelection: () => ({ type: "None" }),
  querySelector: () => trouble,
  querySelectorAll: (selector) => (selector.includes("live]") ? [part] : []),
};
globalThis.DOMParser = class { parseFromString() { return { body: { childNodes: [] } }; } };
const later = setImmediate;
globalThis.setTimeout = (turn, pause) => {
  heard.pauses.push(pause);
  if (answers.length) later(turn);
};
globalThis.fetch = async (url, options) => {
  heard.asked.push([url, options.redirect]);
  const status = answers.shift();
  if (status === 0) throw new TypeError("network");
  if (status === 302) return { ok: false, status: 0, type: "opaqueredirect" };
  return { ok: status === 200, status, type: "basic", text: async () => "" };
};
eval(source);
process.on("exit", () => console.log(JSON.stringify(heard)));
"""


def heard(*answers: int) -> Any:
    """Run the script against these answers, 0 for none at all; return what it did."""
    path = finders.find("leasequeue/live.js")
    assert isinstance(path, str) and NODE
    given = json.dumps([answers, Path(path).read_text(encoding="utf-8")])
    done = subprocess.run(
        [NODE, "-e", PAGE], input=given, capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def test_what_succeeds_is_shown_and_nothing_said() -> None:
    found = heard(200, 200)
    assert (found["shown"], found["said"]) == (2, [])
    assert found["asked"] == [["/live/", "manual"]] * 2
    assert set(found["pauses"]) == {5000}


@pytest.mark.parametrize("status", [0, 500, 502, 503])
def test_a_server_that_is_away_is_told_of_once_until_it_is_back(status: int) -> None:
    found = heard(200, status, status, 200, status)
    assert (found["shown"], found["said"]) == (2, ["away", "", "away"])
    assert len(found["pauses"]) == 6


@pytest.mark.parametrize("status", [302, 403, 404])
def test_a_session_that_ended_is_told_of(status: int) -> None:
    found = heard(200, status, status, 200)
    assert (found["shown"], found["said"]) == (2, ["refused", ""])
