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
