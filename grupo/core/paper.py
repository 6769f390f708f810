"""Records of papers: facts about a module's paper that neither its docstring nor its code has.

Reading the records of a thousand files must be quick, so this module imports no torch: the records
are plain frozen dataclasses, not components.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from grupo.util.errors import ConfigError, suggest

KINDS: Mapping[str, str] = {
    "method": "an objective: one file of grupo/methods",
    "sampler": "how the rollouts of a group are generated",
    "curriculum": "which tasks come next",
    "reward": "how an answer is scored, or a model that scores",
    "environment": "tasks, games and tools, with their rewards",
    "policy": "how a policy computes: architecture, attention, heads",
    "pipeline": "several stages of training, or a recipe as a whole",
    "evaluation": "how answers are chosen or measured, without training",
    "benchmark": "a collection of tasks on which policies are compared",
}
"""The vocabulary of `Paper.kind`, each kind with its meaning."""

TAGS: Mapping[str, str] = {
    "advantage": "another baseline, scale or weight of a rollout's reward",
    "agents": "environments of many turns, tool calls, games",
    "aggregation": "how token losses and answers are averaged",
    "clipping": "another bound on the ratio, or another gradient beyond it",
    "critic": "a learned value function",
    "curriculum": "tasks are chosen, weighted or given rollouts by their difficulty",
    "diffusion": "actions are denoising steps: flow matching, masked diffusion of text",
    "distillation": "a teacher model scores the policy's tokens",
    "entropy": "the policy's entropy is controlled, rewarded or used as a weight",
    "exploration": "several ways to an answer: pass@k, rare correct answers, diversity",
    "filtering": "learns from some of the groups, rollouts or tokens only",
    "hints": "hints, critiques or earlier attempts in the prompt",
    "importance-sampling": "another ratio or weight between policy and sampler",
    "kl": "another KL divergence, its estimator, its weight or its reference",
    "length": "brevity, token budgets, thinking or not, bias by length",
    "multimodal": "images as input or output",
    "off-policy": "stale rollouts, replay, demonstrations, an engine that differs",
    "preferences": "answers are compared with one another instead of scored",
    "process-reward": "turns, steps or tokens have rewards or advantages of their own",
    "reward": "another reward, or a combination of reward terms",
    "self-play": "the policy plays with or against itself",
    "sft": "imitation of demonstrations or of the policy's best answers",
    "tree": "rollouts of a group share prefixes",
    "unsupervised": "neither reference answers nor a verifier",
}
"""The vocabulary of `Paper.tags`, each tag with its meaning."""


SOURCE_KINDS: Mapping[str, str] = {
    "code": "the code that the authors released, its run scripts before its defaults",
    "paper": "the paper",
    "third_party": "a review, or an implementation by other people",
    "abstract": "the abstract alone",
    "memory": "no document that could be opened",
}
"""What a formula was taken from, the most reliable kind first."""

REAL_MODEL = "real model"
LANGUAGE_MODEL = "language model made on the spot"
SMALL_ENVIRONMENT = "small environment"
FORMULA_ONLY = "formula only"
LEVELS: Mapping[str, str] = {
    REAL_MODEL: "a published pretrained model was trained or asked",
    LANGUAGE_MODEL: "a small language or vision-language model, trained for the experiment",
    SMALL_ENVIRONMENT: "a table of logits, or a scripted policy, in an environment made for it",
    FORMULA_ONLY: "numbers worked by hand and properties: no policy was trained for the claim",
}
"""How far the evidence about a paper's claim goes, the furthest first."""

ONE_UPDATE = "there is one update per step"
MATCHED_ENGINE = "there is one update per step and the engine's log-probabilities are the trainer's"
SAME_POLICY = "policy and environment are the same"


PLACE = re.compile(r"tests/[\w/]+\.py::test_\w+|docs/[\w/]+\.md#[\w-]+")
ALLOWED_PLACES = "tests/….py::test_name, or docs/page.md#anchor"


@dataclass(frozen=True)
class Source:
    """The document from which a method's formula and defaults were taken.

    Args:
        kind: One of `SOURCE_KINDS`.
        place: Where in the document: equations, sections, or repository and file.

    Raises:
        ConfigError: The kind is not in `SOURCE_KINDS`, or a field is no text.
    """

    kind: str
    place: str

    def __post_init__(self) -> None:
        _check_types(self)
        if self.kind not in SOURCE_KINDS:
            hint = suggest(self.kind, SOURCE_KINDS)
            raise ConfigError(f"Source.kind: {self.kind!r} is no kind of source. {hint}")


@dataclass(frozen=True)
class Paper:
    """The record of a module that implements a paper: its `PAPER`, written in literals.

    Name, claim, authors, year and arXiv number of a method are in the first line of the file's
    docstring, and the slots that the method changes are computed from it. Everything else is
    declared here. A module has one record, of one or several rows of the catalogue.

    Args:
        title: Title of the paper.
        use: When to choose this method, in a sentence.
        tags: Subjects of the method, 1 to 4 names of `TAGS`.
        trl: The options by which TRL implements it, and the differences.
        verl: The same for verl.
        checked: How the implementation was checked: "golden" numbers by hand, the
            "properties" of `grupo methods check`, a "reference" implementation, a "run".
        example: A call that works, where arguments are required.
        catalogue: Ids of the rows of the project's catalogue that the module implements.
        source: What the formula and the defaults were taken from; None before the audit.
        plan: Where the number of updates per step comes from, in a sentence: the run script or the
            section, with the batch and minibatch sizes there.
        missing: What the paper has and the method has not: variants, stages, schedules, rewards.
        deviations: Where the method departs from its source on purpose, and why.
        audit: How a second reader compared the file with its source.
        equals_grpo_when: Condition under which the gradient is that of GRPO with the same KL
            divergence and mean over tokens: `ONE_UPDATE`, `MATCHED_ENGINE` or `SAME_POLICY`; ""
            if the method differs under its own update plan. `grupo methods check` checks it.
        kind: Part of the library that the paper is about, a name of `KINDS`.
        shown: Tests and tables of the paper's claim, whether it holds there or not:
            `tests/….py::test_name` or `docs/page.md#anchor`.

    Raises:
        ConfigError: A tag is not in `TAGS`, the kind is not in `KINDS`, a place is neither a test
            nor a heading, or a field has another type.
    """

    title: str
    use: str = ""
    tags: tuple[str, ...] = ()
    trl: str = ""
    verl: str = ""
    checked: tuple[str, ...] = ()
    example: str = ""
    catalogue: tuple[str, ...] = ()
    source: Source | None = None
    plan: str = ""
    missing: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    audit: str = ""
    equals_grpo_when: str = ""
    kind: str = "method"
    shown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_types(self)
        check_tags(self.tags, where="Paper.tags")
        check_kind(self.kind, where="Paper.kind")
        for place in self.shown:
            if not PLACE.fullmatch(place):
                raise ConfigError(f"Paper.shown: {place!r}. Allowed: {ALLOWED_PLACES}.")


def _check_types(record: Source | Paper) -> None:
    """Raise `ConfigError` for a field that holds neither a text, a tuple of texts nor a source."""
    for field in fields(record):
        value = getattr(record, field.name)
        name = f"{type(record).__name__}.{field.name}"
        if isinstance(field.default, tuple):
            if not (isinstance(value, tuple) and all(isinstance(item, str) for item in value)):
                raise ConfigError(f"{name}: {value!r}. Allowed: a tuple (…,) of strings.")
        elif field.name == "source":
            if not (value is None or isinstance(value, Source)):
                raise ConfigError(f"{name}: {value!r}. Allowed: Source(…) or None.")
        elif not isinstance(value, str):
            raise ConfigError(f"{name}: {value!r}. Allowed: a string.")


def check_tags(tags: Iterable[str], where: str) -> None:
    """Check that all tags are in the vocabulary.

    Args:
        tags: Tags to check.
        where: Field or option that holds them, for the message.

    Raises:
        ConfigError: A tag is not in `TAGS`.
    """
    for tag in tags:
        if tag not in TAGS:
            raise ConfigError(f"{where}: {tag!r} is no tag. {suggest(tag, TAGS)}")


def check_kind(kind: str, where: str) -> None:
    """Check that a kind is in the vocabulary.

    Args:
        kind: Kind to check.
        where: Field or option that holds it, for the message.

    Raises:
        ConfigError: The kind is not in `KINDS`.
    """
    if kind not in KINDS:
        raise ConfigError(f"{where}: {kind!r} is no kind of paper. {suggest(kind, KINDS)}")
