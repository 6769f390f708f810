"""The group inspector in a real browser."""

import torch

from grupo.storage import tensor_text
from grupo.storage.png import data_url
from tests.helpers.browser import MARKS, page
from tests.helpers.written_runs import action, lines, rollout, write

pytestmark = MARKS


def test_groups_are_filtered_sorted_and_searched(browser, tmp_path):
    run = write(tmp_path / "run", tasks=("one", "two", "three"))
    flat = [rollout(0, "two", "same", 1.0)] * 2
    varied = [rollout(0, "one", "a needle", 0.25), rollout(0, "one", "hay", 0.0)]
    failed = [rollout(0, "three", "?", "NaN", failed="it hung"), rollout(0, "three", "!", 0.5)]
    lines(run / "rollouts.jsonl", [*flat, *varied, *failed])
    (run / "actions.jsonl").unlink()
    browser.open(page(tmp_path, run))

    def heads() -> list[str]:
        return browser.texts(".item .head")

    assert heads() == ["What is two?", "What is one?", "What is three?"]
    browser.choose("#picker-top select[aria-label='Sort groups']", "low")
    assert heads()[0] == "What is one?"  # its mean is 0.125
    browser.choose("#picker-top select[aria-label='Show']", "signal")
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


def test_a_group_is_inspected_part_by_part_with_the_keyboard(browser, tmp_path):
    run = write(tmp_path / "run", 2, tasks=("one",))
    one = action(["good ", "bad"], advantage=[1.0, -0.5], entropy=[0.1, 0.9], clipped=[1])
    two = action(["other"], advantage=-1.0, logp=-0.6931)
    lines(
        run / "actions.jsonl",
        [{"step": s, "group": 0, "actions": [a]} for s in (0, 1) for a in (one, two)],
    )
    browser.open(page(tmp_path, run))
    good, bad, other = browser.all(".part")
    assert [part.text for part in (good, bad, other)] == ["good ", "bad", "other"]
    colours = [
        browser.js(f"return document.querySelectorAll('.part')[{i}].style.backgroundColor")
        for i in range(3)
    ]
    assert ["plus" in colour for colour in colours] == [True, False, False]
    assert ["minus" in colour for colour in colours] == [False, True, True]
    assert "clipped" in bad.get_attribute("class")
    browser.js("document.querySelector('.said').focus()")
    browser.one(".said").send_keys("\ue014\ue014")  # the right arrow, twice
    facts = browser.one("#facts").text
    for fact in ('"bad"', "advantage \u22120.5", "entropy 0.9 nats", "clipped"):
        assert fact in facts, fact
    browser.choose("#measure", "surprise")
    assert "much" in browser.js(
        "return document.querySelectorAll('.part')[2].style.backgroundColor"
    )
    browser.keys("[")
    browser.wait(lambda: "step 0" in browser.one("#group h3").text.lower())


def test_turns_of_a_world_a_tree_and_pictures_are_shown(browser, tmp_path):
    run = write(tmp_path / "run", 1, tasks=("one",))
    picture = data_url(tensor_text.encode_tensor(torch.full((3, 4, 4), 200, dtype=torch.uint8)))
    trunk = action(["look "], drawn=0)
    leaves = [
        action([text], drawn=i, world="a wall", advantage=i - 1.5)
        for i, text in enumerate(("left", "right"), 1)
    ]
    leaves[1]["picture"] = picture
    lines(
        run / "actions.jsonl",
        [{"step": 0, "group": 0, "actions": [trunk, leaf]} for leaf in leaves],
    )
    browser.open(page(tmp_path, run))
    assert browser.texts(".card .world")[0].splitlines() == ["the world", "a wall"]
    assert "2 turns" in browser.one(".card").text
    assert browser.js("return document.querySelector('img.picture').naturalWidth") == 4
    browser.one(".tools select option[value='tree']").click()
    browser.wait(lambda: browser.all(".tree"))
    assert browser.one(".tree > li > .node").text.splitlines()[-1] == "2 rollouts, mean reward 0.5"
    assert len(browser.all(".tree ul > li")) == 2


def test_the_same_task_is_compared_over_time(browser, tmp_path):
    browser.open(page(tmp_path, write(tmp_path / "run", 3, tasks=("one",))))
    assert browser.texts("#group button.chip") == [f"step {step}: 0.5" for step in range(3)]
    browser.one("#group option[value='0']").click()
    browser.wait(lambda: "same task at step 0" in browser.one("#group").text)
    assert len(browser.all(".card")) == 4


def test_calls_of_tools_are_laid_out_and_answered(browser, tmp_path):
    run = write(tmp_path / "run", 1, tasks=("one",))
    code = '<tool_call>{"name": "python", "arguments": {"code": "a = 2\\nprint(a)"}}</tool_call>'
    good = [
        action(["I add. ", code[:11], code[11:], "!"], clipped=[1]),
        action(["It is 2."], world=[{"role": "tool", "content": "2\n3"}]),
    ]
    bad = [action(["<tool_call>{"]), action(["?"], world="error: malformed: not JSON\nfine")]
    records = [{"step": 0, "group": 0, "actions": actions} for actions in (good, bad)]
    lines(run / "actions.jsonl", records)
    browser.open(page(tmp_path, run))
    one, two = browser.all(".call")
    assert browser.texts(".call b") == ["python"]
    assert browser.texts(".call dt") == ["code"]
    assert browser.texts(".call dd") == ["a = 2\nprint(a)"]
    assert len(browser.all(".call:not(.wrong) .part")) == 2  # those of the call alone
    assert "wrong" in two.get_attribute("class")
    assert "wrong" not in one.get_attribute("class")
    assert two.text.splitlines()[:2] == ["malformed call", "a call ends with </tool_call>"]
    answers = browser.texts(".world.answer")
    assert [said.splitlines() for said in answers] == [
        ["the tool answered", "2", "3"],
        ["the tool answered", "error: malformed: not JSON", "fine"],
    ]
    assert browser.texts(".world.answer .bad") == ["error: malformed: not JSON"]
    browser.choose("#measure", "plain")  # to read, not to look at parts
    assert not browser.one(".call .part").is_displayed()
    browser.js("document.querySelector('.said').focus()")
    browser.one(".said").send_keys("\ue014\ue014")  # the right arrow, twice
    assert browser.one(".call .part").is_displayed()
    assert "clipped" in browser.one("#facts").text


def test_a_finding_leads_to_the_rollout_it_is_about(browser, tmp_path):
    run = write(tmp_path / "run", 3, group=3, **{"completions/truncated_frac": 0.5})
    cut = [
        rollout(s, task, "four", float(i == 0), truncated=(s, task, i) == (1, "two", 2))
        for s in range(3)
        for task in ("one", "two")
        for i in range(3)
    ]
    lines(run / "rollouts.jsonl", cut)
    browser.open(page(tmp_path, run))
    (place,) = [chip for chip in browser.all(".finding .chip") if "rollout" in chip.text]
    assert place.text == "step 1, task two, rollout 2"
    place.click()
    browser.wait(lambda: "step 1, task two" in browser.one("#group h3").text.lower())
    (named,) = browser.wait(lambda: browser.all(".card.named"))
    assert named.text.startswith("#2")
    browser.keys("j")
    browser.wait(lambda: not browser.all(".card.named"))


def test_what_all_rollouts_are_told_stands_once_above_them(browser, tmp_path):
    run = write(tmp_path / "run", 2, tasks=("one",))
    alike = [[action([text], world="Tools: add. What is one?")] for text in "ab"]
    apart = [[action([text], world=f"You are {text}.")] for text in "ab"]
    records = [
        {"step": s, "group": 0, "actions": a} for s, some in enumerate((alike, apart)) for a in some
    ]
    lines(run / "actions.jsonl", records)
    browser.open(page(tmp_path, run))
    assert browser.one(".prompt").text == "What is one?"
    assert [said.splitlines()[-1] for said in browser.texts(".card .world")] == [
        "You are a.",
        "You are b.",
    ]
    browser.keys("[")
    browser.wait(lambda: browser.one(".prompt").text == "Tools: add. What is one?")
    assert browser.all(".card .world") == []


def test_steps_of_a_picture_are_counted_through_all_actions(browser, tmp_path):
    run = write(tmp_path / "run", 1, tasks=("one",), group=1)
    actions = [action(["", ""]), action(["", ""], learned=False)]
    lines(run / "actions.jsonl", [{"step": 0, "group": 0, "actions": actions}])
    browser.open(page(tmp_path, run))
    assert browser.texts(".part") == ["1", "2", "3", "4"]
