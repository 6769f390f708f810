"""What others wrote is text in a real browser, whatever it says."""

import json
import time

from tests.helpers.browser import MARKS, page
from tests.helpers.written_runs import HOSTILE, action, lines, metrics, rollout, write

pytestmark = MARKS


def test_hostile_text_is_text_everywhere(browser, tmp_path):
    run = write(
        tmp_path / "<img src=x onerror=hurt()>", text=HOSTILE, parts=[HOSTILE], tasks=[HOSTILE]
    )
    chat = [{"role": HOSTILE, "content": [{"type": "image", "url": "javascript:hurt()"}, HOSTILE]}]
    bad = rollout(2, HOSTILE, HOSTILE, "NaN", prompt=chat, failed=HOSTILE, parts={HOSTILE: 1.0})
    lines(run / "rollouts.jsonl", [bad, bad])
    lines(run / "metrics.jsonl", [metrics(s, **{f"reward/{HOSTILE}": 1.0}) for s in range(3)])
    lines(
        run / "actions.jsonl",
        [
            {
                "step": 2,
                "group": 0,
                "actions": [action([HOSTILE], world=chat, picture="javascript:hurt()")],
            }
        ]
        * 2,
    )
    browser.open(page(tmp_path, run))
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert HOSTILE.split("\u2028")[0] in browser.one(".part").text
    assert browser.js("return window.hurt") is None
    assert browser.all("main img") == browser.all("main script") == []


def test_a_script_that_found_a_way_in_would_not_run(browser, tmp_path):
    browser.open(page(tmp_path, write(tmp_path / "run")))
    browser.js(
        "document.body.insertAdjacentHTML('beforeend', `<img src=x onerror='window.hurt=1'>`)"
    )
    script = "const s = document.createElement('script'); s.text = 'window.hurt=2';"
    browser.js(f"{script} document.body.append(s)")
    time.sleep(0.2)
    assert browser.js("return window.hurt") is None
    assert all("Content Security Policy" in error for error in browser.errors)


def test_a_hostile_call_and_a_hostile_answer_are_text(browser, tmp_path):
    run = write(tmp_path / "run", 1, tasks=("one",), group=1)
    call = {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE, "deep": [[HOSTILE]]}}
    said = [f"<tool_call>{json.dumps(call)}</tool_call>", f"<tool_call>{HOSTILE}"]
    world = [{"role": "tool", "content": f"error: {HOSTILE}"}]
    actions = [action(said), action(["so"], world=world)]
    lines(run / "actions.jsonl", [{"step": 0, "group": 0, "actions": actions}])
    browser.open(page(tmp_path, run))
    begin = HOSTILE.split("\u2028")[0]
    for place in (".call b", ".call dt", ".call dd", ".call .bad", ".world.answer .bad"):
        shown = browser.js(f"return document.querySelector({place!r}).textContent")
        assert begin in shown or "not JSON" in shown or "a call ends" in shown, place
    assert browser.js("return window.hurt") is None
    assert browser.all("main img") == browser.all("main script") == []
