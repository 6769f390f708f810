"""Facts about a method's paper that cannot be derived from its docstring or code."""

from collections.abc import Iterable, Mapping

from grupo.core.component import component
from grupo.core.errors import ConfigError, suggest

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

ONE_UPDATE = "there is one update per step"
MATCHED_ENGINE = "there is one update per step and the engine's log-probabilities are the trainer's"
SAME_POLICY = "policy and environment are the same"


@component
class Source:
    """The document from which a method's formula and defaults were taken.

    Args:
        kind: One of `SOURCE_KINDS`.
        place: Where in the document: equations, sections, or repository and file.

    Raises:
        ConfigError: The kind is not in `SOURCE_KINDS`.
    """

    kind: str
    place: str

    def __post_init__(self) -> None:
        if self.kind not in SOURCE_KINDS:
            hint = suggest(self.kind, SOURCE_KINDS)
            raise ConfigError(f"Source.kind: {self.kind!r} is no kind of source. {hint}")


@component
class Paper:
    """The record of a method file.

    Name, claim, authors, year and arXiv number are in the first line of the file's docstring, and
    the slots that the method changes are computed from it. Everything else is declared here.

    Args:
        title: Title of the paper.
        use: When to choose this method, in a sentence.
        tags: Subjects of the method, 1 to 4 names of `TAGS`.
        trl: The options by which TRL implements it, and the differences.
        verl: The same for verl.
        checked: How the implementation was checked: "golden" numbers by hand, the
            "properties" of `grupo methods check`, a "reference" implementation, a "run".
        example: A call that works, where arguments are required.
        catalogue: Ids of the rows of the project's catalogue that the method implements.
        source: What the formula and the defaults were taken from; None before the audit.
        plan: Where the number of updates per step comes from, in a sentence: the run script or the
            section, with the batch and minibatch sizes there.
        missing: What the paper has and the method has not: variants, stages, schedules, rewards.
        deviations: Where the method departs from its source on purpose, and why.
        audit: How a second reader compared the file with its source.
        equals_grpo_when: Condition under which the gradient is that of GRPO with the same KL
            divergence and mean over tokens: `ONE_UPDATE`, `MATCHED_ENGINE` or `SAME_POLICY`; ""
            if the method differs under its own update plan. `grupo methods check` checks it.

    Raises:
        ConfigError: A tag is not in `TAGS`.
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

    def __post_init__(self) -> None:
        check_tags(self.tags, where="Paper.tags")


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
