"""The script of a run's page, in a JavaScript engine without a browser: it never gives up."""

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

#: A page of three elements and a clock that only the script's own timeouts move.
PAGE = """
const [answers, source, carries] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const heard = { pauses: [], said: [], reloaded: false, asked: 0, how: [] };
const trouble = { dataset: { away: "away", refused: "refused" }, hidden: true };
let said = "";
Object.defineProperty(trouble, "textContent", {
  get: () => said, set: (text) => { said = text; heard.said.push(text); },
});
const place = {
  dataset: { progress: "/progress/" },
  innerHTML: "1",
  querySelector: () => (place.innerHTML === "1" ? {} : null),
};
const go = { action: "/go/", dataset: carries ? { carries: "1" } : {} };
const parts = { "bulk-go": go, "bulk-progress": place, "bulk-trouble": trouble };
globalThis.document = { getElementById: (name) => parts[name] };
globalThis.window = { location: { reload: () => { heard.reloaded = true; } } };
globalThis.FormData = class {};
const later = setImmediate;
globalThis.setTimeout = (turn, pause) => {
  heard.pauses.push(pause);
  if (answers.length) later(turn);
};
globalThis.fetch = async (url, options) => {
  heard.asked += 1;
  heard.how.push(`${options.method || "GET"} ${url}`);
  const status = answers.shift();
  if (status === 0) throw new TypeError("network");
  const text = async () => (answers.length ? "1" : "0");
  return { ok: status === 200, status, redirected: status === 302, text };
};
eval(source);
process.on("exit", () => console.log(JSON.stringify(heard)));
"""


def heard(*answers: int, carries: bool = True) -> Any:
    """Run the script against these answers, 0 for none at all; return what it did.

    Its page follows a POST, unless it does not carry the run on.
    """
    path = finders.find("leasequeue/bulk_run.js")
    assert isinstance(path, str) and NODE
    given = json.dumps([answers, Path(path).read_text(encoding="utf-8"), carries])
    done = subprocess.run(
        [NODE, "-e", PAGE], input=given, capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def test_it_goes_on_after_errors_later_and_later_and_says_so() -> None:
    found = heard(200, 503, 0, 500, 200, 502, 200)
    assert found["asked"] == 7 and found["reloaded"]
    assert found["pauses"] == [500, 1000, 2000, 4000, 8000, 1000, 2000]
    assert found["said"] == ["", "away", "away", "away", "", "away", ""]


def test_its_patience_is_bounded() -> None:
    pauses = heard(*[503] * 12)["pauses"]
    assert max(pauses) == 60_000
    assert pauses[-3:] == [60_000] * 3


@pytest.mark.parametrize("status", [403, 404, 302])
def test_it_says_when_it_was_refused(status: int) -> None:
    found = heard(status, 200)
    assert (found["asked"], found["said"]) == (1, ["refused"])


def test_a_page_that_was_opened_to_look_only_looks() -> None:
    found = heard(200, 503, 200, carries=False)
    assert found["how"] == ["GET /progress/"] * 3 and found["reloaded"]
    assert found["pauses"] == [5000, 5000, 2000]
    assert set(heard(200, 200)["how"]) == {"POST /go/"}
