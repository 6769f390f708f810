"""docs/callbacks.md has every event, and its callbacks print, log and stop a real run."""

import inspect
import json
import re

import pytest

from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Evaluation, Recipe
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import DatasetTasks
from grupo.training.callbacks import Callback, CallbackList
from grupo.training.start import run_training
from tests.helpers.doc_snippets import fenced_blocks
from tests.helpers.paths import ROOT
from tests.helpers.tiny_lm import save_model

PAGE = (ROOT / "docs" / "callbacks.md").read_text()
ROW = re.compile(r"^\| `(on_\w+)\((.*?)\)` \|", re.MULTILINE)


def count_letters(task, rollout):
    """A reward that differs between the rollouts of nearly every group."""
    return float(sum(map(str.isalpha, rollout.text)))


RECIPE = Recipe(
    policy=CausalLM("model", max_new_tokens=4, device="cpu"),
    env=SingleTurn((RewardTerm("length", count_letters),)),
    tasks=DatasetTasks("tasks.jsonl"),
    eval_tasks=2,
    method=Method(sampler=GroupSampler(2)),
    max_steps=10,
    prompts_per_step=2,
    learning_rate=1e-3,
    evaluation=Evaluation(attempts=2),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A tiny model and its tasks in the working directory."""
    save_model(tmp_path / "model")
    rows = [{"prompt": f"{i} + 1 =", "answer": str(i + 1)} for i in range(12)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class EventNames:
    """Records the events in order; raises in the step `failing_step`."""

    def __init__(self, failing_step=0):
        self.failing_step = failing_step
        self.events = []

    def on_train_begin(self, recipe, step):
        self.events.append(f"begin after {step} steps")

    def on_message(self, message):
        pass

    def on_evaluate(self, label, result):
        self.events.append(label)

    def on_step_end(self, step, metrics):
        self.events.append(f"step {step} ends")
        if step == self.failing_step:
            raise RuntimeError("a callback failed")

    def on_train_end(self):
        self.events.append("end")


def test_the_table_has_every_event_with_its_arguments():
    methods = inspect.getmembers(Callback, inspect.isfunction)
    events = {
        name: list(inspect.signature(f).parameters)[1:] for name, f in methods if name[0] != "_"
    }
    assert {name: [*filter(None, text.split(", "))] for name, text in ROW.findall(PAGE)} == events


@pytest.mark.usefixtures("folder")
def test_events_have_the_order_of_the_table():
    callback = EventNames()
    run_training(RECIPE.replace(max_steps=3, evaluation=Evaluation(2, every=2)), "run", callback)
    steps = ["step 1 ends", "step 2", "step 2 ends", "step 3 ends"]
    assert callback.events == ["begin after 0 steps", "before", *steps, "after", "end"]


@pytest.mark.usefixtures("folder")
def test_an_exception_of_a_callback_ends_the_run_and_the_later_callbacks_get_its_end():
    failing, later = EventNames(failing_step=2), EventNames()
    with pytest.raises(RuntimeError, match="a callback failed"):
        run_training(RECIPE, "run", CallbackList([failing, later]))
    begin = ["begin after 0 steps", "before", "step 1 ends"]
    assert failing.events == [*begin, "step 2 ends", "end"]
    assert later.events == [*begin, "end"]


def test_the_callbacks_of_the_page_print_log_stop_and_resume(folder, capsys):
    code = "\n".join(fenced_blocks(PAGE, "python"))
    limit = "StopAtLowEntropy(0.01)"
    assert limit in code
    exec(code.replace(limit, "StopAtLowEntropy(100.0)"), {"recipe": RECIPE, "__name__": "page"})
    printed = capsys.readouterr().out
    assert re.search(r"^step 1: the entropy is \d\.\d{3}$", printed, re.MULTILINE)
    assert re.search(r"^step 10: reward \d\.\d{3}$", printed, re.MULTILINE)
    lines = (folder / "scores.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["before", "before", "after"]
