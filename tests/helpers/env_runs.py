"""Short runs of a tiny model in one environment: through the command line, and interrupted."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from grupo.cli import main
from grupo.training.callbacks import NullCallback
from grupo.training.resume.run_folder import RunFolder
from grupo.training.start import resume_training, run_training
from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.small_model import make_small_model

CHARACTERS = [*map(chr, range(32, 127)), "\n"]
TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}>{% endif %}"
)
SIZES = "--steps 2 --prompts-per-step 2 --method.sampler.group-size 3 --save-every 1"
POLICY = "--policy.max-new-tokens 2 --policy.device cpu --evaluation.attempts 2 --logged-groups 9"


class Interrupt(NullCallback):
    """Interrupts a run at the end of its first step."""

    def on_step_end(self, step, metrics):
        raise KeyboardInterrupt


def make_model(folder: Path, context: int = 64) -> str:
    """A tiny random model of printable characters, with a chat template."""
    make_small_model(folder, CHARACTERS, context=context)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return str(folder)


def train_by_command(folder: Path, model: str, options: Sequence[str]) -> RunFolder:
    """Train two steps with `grupo train` and these options; it must succeed."""
    with pytest.raises(SystemExit) as end:
        main(["train", "--run", str(folder), *_arguments(model), *options])
    assert not end.value.code
    return RunFolder.open(folder)


def assert_resumes_exactly(run: RunFolder, folder: Path) -> None:
    """The same recipe, interrupted after a step and resumed, has the outcome of `run`."""
    with pytest.raises(KeyboardInterrupt):
        run_training(run.recipe, folder, Interrupt())
    resume_training(folder)
    assert differences(outcome(run.folder), outcome(folder)) == []


def recorded(run: RunFolder, name: str) -> list[dict]:
    """The lines of a journal of a run, such as `metrics` or `rollouts`."""
    return [json.loads(line) for line in (run.folder / f"{name}.jsonl").read_text().splitlines()]


def _arguments(model: str) -> list[str]:
    return ["--model", model, *SIZES.split(), *POLICY.split()]
