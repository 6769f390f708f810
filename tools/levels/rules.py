"""The level of each place that a record of a paper names, by the code behind it."""

import re
from collections.abc import Iterator
from pathlib import Path

from markdown.extensions.toc import slugify, unique

from grupo.core.paper import FORMULA_ONLY, LANGUAGE_MODEL, REAL_MODEL, SMALL_ENVIRONMENT
from tools.levels.reached_code import ROOT, ReachedCode, reached_code

HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SCRIPT = re.compile(r"[\w/]*\w\.py\b")
MODULE = re.compile(r"python -m ([\w.]+)")
PUBLISHED_MODEL = "SmolLM2-135M-Instruct"
# a model that generates tokens or pictures, loaded or made
MODELS = {
    *("CausalLM", "VisionLM", "MaskedDiffusion", "SoftThinkingLM", "Flow"),
    *("LlamaArchitecture", "LlamaForCausalLM", "LlamaConfig", "echo_recipe"),
}
TOY_MODELS = "grupo.toy."
TABULAR_RUNS = ROOT / "grupo/evidence/claims/train.py"
GRADIENTS = {"backward", "grad"}  # inside a loop: a policy of numbers is trained
SAMPLING = {"run_rollout", "run_rollouts", "evaluate"}
SCRIPTED_POLICIES = ROOT / "tests/helpers/scripted_actor.py"


def level_of_place(place: str) -> str:
    """The level of a test `tests/….py::test_name` or of a section `docs/page.md#anchor`."""
    if "::" in place:
        file, _, name = place.partition("::")
        return level_of_code(reached_code([(ROOT / file, name)]))
    page, _, anchor = place.partition("#")
    path = ROOT / page
    text = section(path, anchor)
    if not (scripts := {*scripts_in(text)}):  # the beginning of the page says what wrote it
        text = path.read_text(encoding="utf-8")
        scripts = {*scripts_in(text)}
    if PUBLISHED_MODEL in text:
        return REAL_MODEL
    return level_of_code(reached_code((script, "") for script in sorted(scripts)))


def level_of_code(reached: ReachedCode) -> str:
    """The level of the code of an experiment, by the policy that it trains or asks."""
    if any(name.startswith("grupo.models.pretrained") for name in reached.imports):
        return REAL_MODEL
    members = {name.rpartition(".")[2] for name in reached.imports}
    if members & MODELS or any(name.startswith(TOY_MODELS) for name in reached.imports):
        return LANGUAGE_MODEL
    is_trained = TABULAR_RUNS in reached.files or reached.repeated_calls & GRADIENTS
    if is_trained or SCRIPTED_POLICIES in reached.files or reached.calls & SAMPLING:
        return SMALL_ENVIRONMENT
    return FORMULA_ONLY


def section(page: Path, anchor: str) -> str:
    """The text below a heading, up to the next heading that is not below it."""
    text = page.read_text(encoding="utf-8")
    blanked = FENCE.sub(lambda match: re.sub(r"^#", " ", match[0], flags=re.MULTILINE), text)
    known: set[str] = set()
    start, depth = None, 0
    for heading in HEADING.finditer(blanked):
        slug = unique(slugify(heading[2].replace("`", ""), "-"), known)
        if start is not None and len(heading[1]) <= depth:
            return text[start : heading.start()]
        if slug == anchor:
            start, depth = heading.end(), len(heading[1])
    return "" if start is None else text[start:]


def scripts_in(text: str) -> Iterator[Path]:
    """The recipes, tests and modules that a text names as what wrote its tables."""
    for name in SCRIPT.findall(text):
        path = ROOT / name
        if path.is_file() and name.startswith(("recipes/", "tests/", "benchmarks/")):
            yield path
        elif "/" not in name:
            yield from sorted(ROOT.glob(f"recipes/*/{name}"))
    for module in MODULE.findall(text):
        path = ROOT / module.replace(".", "/")
        yield from filter(Path.is_file, (path.with_suffix(".py"), path / "__main__.py"))
