"""The five questions of `grupo methods suggest`, and the answers to them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from grupo.util.errors import ConfigError, suggest


@dataclass(frozen=True)
class Question:
    """A question with a closed list of answers.

    Args:
        name: Field of `Answers` and option of the command line.
        text: The question.
        choices: The answers, each with its meaning.
        excluded: For a kind of policy, the answers that grupo cannot train it with.
    """

    name: str
    text: str
    choices: Mapping[str, str]
    excluded: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def help(self) -> str:
        """The question and its answers in one line."""
        return f"{self.text} {', '.join(self.choices)}."

    def allowed(self, policy: str) -> dict[str, str]:
        """The answers that exist for a kind of policy, each with its meaning."""
        excluded = self.excluded.get(policy, ())
        return {name: text for name, text in self.choices.items() if name not in excluded}


POLICY = Question(
    "policy",
    "What is trained?",
    {
        "language": "a causal language model, one answer per task (CausalLM)",
        "agents": "a language model in an environment of many turns or with tools (MultiTurn)",
        "diffusion-text": "a masked diffusion language model (MaskedDiffusion)",
        "images": "a flow-matching model of images (Flow)",
    },
)
REWARD = Question(
    "reward",
    "How are answers scored?",
    {
        "verifier": "correct or not: a verifier, unit tests, an exact match",
        "graded": "a number: a reward model, a judge, partial credit",
        "terms": "several reward terms that are added up",
        "comparisons": "two answers can be compared, a single one cannot be scored",
        "none": "not at all: there are no reference answers and no verifier",
    },
    {"images": ("none",)},
)
EXTRA = Question(
    "extra",
    "What else is there?",
    {
        "nothing": "prompts and rewards only",
        "solutions": "a worked solution for each task (a column `solution`)",
        "hints": "hints for each task (a column `hint` or `hints`)",
        "teacher": "a stronger model of the same kind with the same vocabulary",
    },
    {
        "diffusion-text": ("solutions", "hints", "teacher"),
        "images": ("solutions", "hints", "teacher"),
    },
)
PROBLEM = Question(
    "problem",
    "What goes wrong, or is expected to?",
    {
        "unknown": "nothing is known yet: a first run",
        "too-hard": "most groups have no correct answer",
        "too-easy": "most groups have correct answers only",
        "too-long": "answers grow, or are longer than they should be",
        "truncated": "many answers end at the token limit",
        "entropy": "the entropy collapses",
        "diversity": "pass@k falls while pass@1 rises, or all answers are alike",
        "drift": "the policy leaves its reference policy, or exploits the reward",
        "unstable": "updates are too large: ratios out of the clip range, exploding gradients",
        "mismatch": "the inference engine and the trainer disagree on log-probabilities",
        "credit": "one reward is shared by many tokens or turns",
        "noise": "the reward is noisy or cannot be trusted",
        "cost": "generation costs too much",
    },
    {"diffusion-text": ("mismatch",), "images": ("too-long", "truncated", "mismatch")},
)
SAMPLER = Question(
    "sampler",
    "Where are rollouts generated?",
    {
        "local": "in the trainer's process, with its newest weights",
        "engine": "by a vLLM server, whose log-probabilities differ a little",
        "stale": "ahead of the updates (max_staleness), or with several updates per step",
    },
    {"diffusion-text": ("engine",), "images": ("engine",)},
)
QUESTIONS = (POLICY, REWARD, EXTRA, PROBLEM, SAMPLER)


@dataclass(frozen=True)
class Answers:
    """One answer to each question; each is a key of the question's `choices`.

    Args:
        policy: What is trained.
        reward: How answers are scored.
        extra: What exists beside prompts and rewards.
        problem: What goes wrong.
        sampler: Where rollouts are generated.

    Raises:
        ConfigError: An answer is not among those that exist for the kind of policy.
    """

    policy: str
    reward: str
    extra: str
    problem: str
    sampler: str

    def __post_init__(self) -> None:
        for question in QUESTIONS:
            check_answer(question, getattr(self, question.name), self.policy)

    def __contains__(self, pair: tuple[str, str]) -> bool:
        """Whether a pair of question and answer is among the answers."""
        name, answer = pair
        return getattr(self, name) == answer


def check_answer(question: Question, answer: str, policy: str) -> None:
    """Raise `ConfigError` for an answer that does not exist for the kind of policy."""
    allowed = question.allowed(policy)
    if answer not in allowed:
        with_policy = f" with policy {policy!r}" * (answer in question.choices)
        raise ConfigError(f"{question.name}: {answer!r}{with_policy}. {suggest(answer, allowed)}")
