"""The group inspector in a real browser."""

import torch

from grupo.storage import tensor_text
from grupo.storage.png import data_url
from tests.helpers.browser import MARKS, write_page
from tests.helpers.written_runs import response, rollout, write_lines, write_run

pytestmark = MARKS


def test_groups_can_be_filtered_sorted_and_searched(browser, tmp_path):
    run = write_run(tmp_path / "run", tasks=("one", "two", "three"))
    flat = [rollout(1, "two", "same", 1.0)] * 2
    varied = [rollout(1, "one", "a needle", 0.25), rollout(1, "one", "hay", 0.0)]
    failed = [rollout(1, "three", "?", "NaN", error="it hung"), rollout(1, "three", "!", 0.5)]
    write_lines(run / "rollouts.jsonl", [*flat, *varied, *failed])
    (run / "responses.jsonl").unlink()
    browser.open(write_page(tmp_path, run))

    def heads() -> list[str]:
        return browser.texts(".item .head")

    assert heads() == ["What is two?", "What is one?", "What is three?"]
    browser.choose("#picker-top select[aria-label='Sort groups']", "low")
    assert heads()[0] == "What is one?"  # its mean is 0.125
    browser.choose("#picker-top select[aria-label='Show']", "differing")
    assert heads() == ["What is one?"]
    browser.choose("#picker-top select[aria-label='Show']", "failed")
    assert heads() == ["What is three?"]
    browser.one(".item").click()
    browser.wait(lambda: "it hung" in browser.one("#group").text)
    browser.choose("#picker-top select[aria-label='Show']", "all")
    search = browser.one("#picker-top input[type=search]")
    search.send_keys("NEEDLE\n")
    browser.wait(lambda: browser.texts("mark") == ["needle"])
    assert heads() == ["What is one?"]
    assert "older version" in browser.one("#facts").text


def test_tokens_are_coloured_and_inspected_with_the_keyboard(browser, tmp_path):
    run = write_run(tmp_path / "run", 2, tasks=("one",))
    first = response(["good ", "bad"], advantage=[1.0, -0.5], entropy=[0.1, 0.9], clipped=[1])
    second = response(["other"], advantage=-1.0, logp=-0.6931)
    write_lines(
        run / "responses.jsonl",
        [{"step": s, "group": 0, "responses": [a]} for s in (1, 2) for a in (first, second)],
    )
    browser.open(write_page(tmp_path, run))
    good, bad, other = browser.all(".token")
    assert [token.text for token in (good, bad, other)] == ["good ", "bad", "other"]
    colours = [
        browser.js(f"return document.querySelectorAll('.token')[{i}].style.backgroundColor")
        for i in range(3)
    ]
    assert ["plus" in colour for colour in colours] == [True, False, False]
    assert ["minus" in colour for colour in colours] == [False, True, True]
    assert "clipped" in bad.get_attribute("class")
    browser.js("document.querySelector('.rollout-text').focus()")
    browser.one(".rollout-text").send_keys("\ue014\ue014")  # the right arrow, twice
    facts = browser.one("#facts").text
    for fact in ('"bad"', "advantage \u22120.5", "entropy 0.9 nats", "clipped"):
        assert fact in facts, fact
    browser.choose("#measure", "surprise")
    assert "much" in browser.js(
        "return document.querySelectorAll('.token')[2].style.backgroundColor"
    )
    browser.keys("[")
    browser.wait(lambda: "step 1" in browser.one("#group h3").text.lower())


def test_turns_trees_and_images_are_shown(browser, tmp_path):
    run = write_run(tmp_path / "run", 1, tasks=("one",))
    image = data_url(tensor_text.encode_tensor(torch.full((3, 4, 4), 200, dtype=torch.uint8)))
    shared = response(["look "], response_id=0)
    leaves = [
        response([text], response_id=i, observation="a wall", advantage=i - 1.5)
        for i, text in enumerate(("left", "right"), 1)
    ]
    leaves[1]["image"] = image
    write_lines(
        run / "responses.jsonl",
        [{"step": 1, "group": 0, "responses": [shared, leaf]} for leaf in leaves],
    )
    browser.open(write_page(tmp_path, run))
    assert browser.texts(".card .observation")[0].splitlines() == ["environment", "a wall"]
    assert "2 turns" in browser.one(".card").text
    assert browser.js("return document.querySelector('img.sample').naturalWidth") == 4
    browser.one(".tools select option[value='tree']").click()
    browser.wait(lambda: browser.all(".tree"))
    assert browser.one(".tree > li > .node").text.splitlines()[-1] == "2 rollouts, mean reward 0.5"
    assert len(browser.all(".tree ul > li")) == 2


def test_a_task_can_be_compared_across_steps(browser, tmp_path):
    browser.open(write_page(tmp_path, write_run(tmp_path / "run", 3, tasks=("one",))))
    assert browser.texts("#group button.chip") == [f"step {step}: 0.5" for step in (1, 2, 3)]
    browser.one("#group option[value='1']").click()
    browser.wait(lambda: "same task at step 1" in browser.one("#group").text)
    assert len(browser.all(".card")) == 4


def test_tool_calls_and_results_are_shown(browser, tmp_path):
    run = write_run(tmp_path / "run", 1, tasks=("one",))
    code = '<tool_call>{"name": "python", "arguments": {"code": "a = 2\\nprint(a)"}}</tool_call>'
    good = [
        response(["I add. ", code[:11], code[11:], "!"], clipped=[1]),
        response(["It is 2."], observation=[{"role": "tool", "content": "2\n3"}]),
    ]
    bad = [
        response(["<tool_call>{"]),
        response(["?"], observation="error: malformed: not JSON\nfine"),
    ]
    records = [{"step": 1, "group": 0, "responses": responses} for responses in (good, bad)]
    write_lines(run / "responses.jsonl", records)
    browser.open(write_page(tmp_path, run))
    valid, malformed = browser.all(".call")
    assert browser.texts(".call b") == ["python"]
    assert browser.texts(".call dt") == ["code"]
    assert browser.texts(".call dd") == ["a = 2\nprint(a)"]
    assert len(browser.all(".call:not(.malformed) .token")) == 2  # only those of the call
    assert "malformed" in malformed.get_attribute("class")
    assert "malformed" not in valid.get_attribute("class")
    assert malformed.text.splitlines()[:2] == ["malformed call", "a call ends with </tool_call>"]
    results = browser.texts(".observation.answer")
    assert [text.splitlines() for text in results] == [
        ["tool result", "2", "3"],
        ["tool result", "error: malformed: not JSON", "fine"],
    ]
    assert browser.texts(".observation.answer .bad") == ["error: malformed: not JSON"]
    browser.choose("#measure", "plain")  # hides the tokens of calls
    assert not browser.one(".call .token").is_displayed()
    browser.js("document.querySelector('.rollout-text').focus()")
    browser.one(".rollout-text").send_keys("\ue014\ue014")  # the right arrow, twice
    assert browser.one(".call .token").is_displayed()
    assert "clipped" in browser.one("#facts").text


def test_a_finding_links_to_its_rollout(browser, tmp_path):
    run = write_run(tmp_path / "run", 3, group=3, **{"completions/truncated_frac": 0.5})
    rollouts = [
        rollout(s, task, "four", float(i == 0), truncated=(s, task, i) == (1, "two", 2))
        for s in (1, 2, 3)
        for task in ("one", "two")
        for i in range(3)
    ]
    write_lines(run / "rollouts.jsonl", rollouts)
    browser.open(write_page(tmp_path, run))
    (link,) = [chip for chip in browser.all(".finding .chip") if "rollout" in chip.text]
    assert link.text == "step 1, task two, rollout 2"
    link.click()
    browser.wait(lambda: "step 1, task two" in browser.one("#group h3").text.lower())
    (selected,) = browser.wait(lambda: browser.all(".card.selected"))
    assert selected.text.startswith("#2")
    browser.keys("j")
    browser.wait(lambda: not browser.all(".card.selected"))


def test_an_observation_shared_by_all_rollouts_is_shown_once_as_the_prompt(browser, tmp_path):
    run = write_run(tmp_path / "run", 2, tasks=("one",))
    shared = [[response([text], observation="Tools: add. What is one?")] for text in "ab"]
    distinct = [[response([text], observation=f"You are {text}.")] for text in "ab"]
    records = [
        {"step": s, "group": 0, "responses": a}
        for s, responses in enumerate((shared, distinct), 1)
        for a in responses
    ]
    write_lines(run / "responses.jsonl", records)
    browser.open(write_page(tmp_path, run))
    assert browser.one(".prompt").text == "What is one?"
    assert [text.splitlines()[-1] for text in browser.texts(".card .observation")] == [
        "You are a.",
        "You are b.",
    ]
    browser.keys("[")
    browser.wait(lambda: browser.one(".prompt").text == "Tools: add. What is one?")
    assert browser.all(".card .observation") == []


def test_denoising_steps_are_numbered_across_responses(browser, tmp_path):
    run = write_run(tmp_path / "run", 1, tasks=("one",), group=1)
    responses = [response(["", ""]), response(["", ""], in_loss=False)]
    write_lines(run / "responses.jsonl", [{"step": 1, "group": 0, "responses": responses}])
    browser.open(write_page(tmp_path, run))
    assert browser.texts(".token") == ["1", "2", "3", "4"]
