"""The snippets of docs/notebook.md, executed in order as the cells of a notebook."""

import json
import re

import pytest

from tests.helpers.notebooks import execute, output_text
from tests.helpers.paths import ROOT
from tests.helpers.tiny_lm import save_model

pytestmark = pytest.mark.slow  # the kernel of a notebook starts

PAGE = (ROOT / "docs" / "notebook.md").read_text()
# checks in the kernel, after the page's own cells
CELLS = {
    "method": "recipe.method",
    "group": """
from grupo import Response, Group, Rollout, Task
answer = Response((1,), (0.0,), text='<script>alert("1")</script> $\\\\unsafe{}$')
Group(Task("k", "<b>2 + 2</b>", "4"), (Rollout((("2 + 2", answer),), reward=1.0),))
""",
}


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The executed cells of the page by their source."""
    folder = tmp_path_factory.mktemp("notebook")
    save_model(folder / "model")
    sources = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    sources = [
        source.replace("Qwen/Qwen3-0.6B", "model")
        .replace("max_new_tokens=32", "max_new_tokens=4, device='cpu'")
        .replace("max_steps=20", "max_steps=2, prompts_per_step=2")
        .replace("learning_rate=1e-6", "learning_rate=1e-3")
        for source in sources
    ]
    sources += [CELLS["method"], CELLS["group"]]
    return folder, execute(sources, folder)


def cell_with(cells, text):
    return next(cell for cell in cells[1] if text in cell.source)


def test_training_updates_one_output_of_the_cell(cells):
    cell = cell_with(cells, "run = train(recipe)")
    shown = [output for output in cell.outputs if output.output_type == "display_data"]
    assert len(shown) == 1
    page = shown[0].data["text/html"]
    assert '<progress value="2" max="2"' in page
    assert "step 2/2" in page
    assert "after" in page  # the scores of the last evaluation
    assert "Not resumable: only this process has policy.model (LlamaForCausalLM of" in page


def test_functions_tables_and_models_are_described_in_the_run(cells):
    folder = next((cells[0] / "runs").iterdir())
    recipe = json.loads((folder / "recipe.json").read_text())["recipe"]
    correct = recipe["env"]["rewards"]["tuple"][0]["fn"]["function"]
    assert correct["in_memory"] == "function correct in the notebook"
    assert recipe["tasks"]["in_memory"] == "a Dataset of 60 rows with the columns prompt, answer"


def test_a_run_is_shown_as_html(cells):
    cell = next(cell for cell in cells[1] if cell.source == "run\n")
    page = output_text(cell, "text/html")
    assert "finished, 2 steps" in page
    assert "held-out tasks solved" in page
    assert "&lt;function correct in the notebook&gt;" in page


def test_resuming_is_refused_with_the_objects_and_the_remedies(cells):
    message = output_text(cell_with(cells, "resume(run.folder)"))
    assert "env.rewards[0].fn.function (function correct in the notebook)" in message
    assert "env.rewards[1].fn.function (lambda in the notebook)" in message
    assert "dataset.save_to_disk('tasks')" in message


def test_the_trained_model_generates_and_is_exported(cells):
    assert (cells[0] / "trained" / "model.safetensors").is_file()
    assert (cells[0] / "trained" / "tokenizer.json").is_file()


def test_methods_and_groups_are_shown_as_html_with_escaped_text(cells):
    method, group = (output_text(cell, "text/html") for cell in cells[1][-2:])
    assert "in place of GRPO" in method
    assert "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;" in group
    assert "<script" not in group
    assert "<b>2 + 2</b>" not in group
    assert "tex2jax_ignore" in group
