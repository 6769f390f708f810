"""Pairs of answers and labelled answers: the data of preference losses and of reward models.

Compared: that a pair is two given answers behind the task's prompt, the chosen one first, which is
marked by its reward; that a labelled answer is one, and that its steps are its text; that the
policy generates nothing; and the six rows of the self-improving loss.
"""

from collections.abc import Callable

from tests.reference.rollouts_plain.record import (
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    reference,
)

DPO = "arXiv:2305.18290, section 4: a data set of prompts with a preferred and another answer"
LIKE_DPO = "the pairs of DPO, by the method's record"


def _given(prompt: str, text: str, reward: float | None) -> Trained:
    return Trained(prompt, (forced(text, trained=True),), reward)


def pair(q: Question, policy: Policy, reward: Reward) -> list[Trained]:
    chosen = _given(q.prompt, q.columns["chosen"], 1.0)
    return [chosen, _given(q.prompt, q.columns["rejected"], 0.0)]


reference("dpo", DPO)(pair)
for name in ("bco", "bradley_terry", "cdpo", "gepo", "hinge", "ipo", "ln_dpo", "mpo"):
    reference(name, LIKE_DPO)(pair)
for name in ("nca", "orpo", "robust_dpo", "simpo"):
    reference(name, LIKE_DPO)(pair)


@reference("modpo", "arXiv:2310.03708 by the record: the environment scores the margin")
def modpo(q: Question, policy: Policy, reward: Reward) -> list[Trained]:
    return [r.with_terms(margin=reward(r.text)) for r in pair(q, policy, reward)]


@reference(
    "srpo_self_improving",
    "arXiv:2406.01660 by the record: log-ratios of each answer alone and as a revision of each",
)
def srpo_self_improving(
    q: Question, policy: Policy, reward: Reward, *, revise: Callable[[str, str], str]
) -> list[Trained]:
    texts = (q.columns["chosen"], q.columns["rejected"])
    plain = [_given(q.prompt, text, None) for text in texts]
    revised = [_given(revise(q.prompt, before), text, None) for text in texts for before in texts]
    return [*plain, *revised]


@reference("ovm", "arXiv:2311.09724 by the record: an answer and whether it is right")
def ovm(q: Question, policy: Policy, reward: Reward) -> list[Trained]:
    return [_given(q.prompt, q.columns["completion"], float(q.columns["label"]))]


@reference(
    "prm_lessons",
    "arXiv:2501.07301 by the record: an answer is left out if labels and judge disagree",
)
def prm_lessons(
    q: Question, policy: Policy, reward: Reward, *, judged: str, separator: str
) -> list[Trained]:
    wrong = [i for i, label in enumerate(q.columns["labels"], 1) if not label]
    if judged and q.columns[judged] != (wrong[0] if wrong else 0):
        return []
    steps = q.columns["completions"]
    last = len(steps) if not wrong else wrong[0]  # steps behind the first wrong one have no label
    ends = [len(separator.join(steps[:i])) + len(separator) for i in range(1, len(steps))]
    ends.append(len(separator.join(steps)) - 1)  # before the last token
    values = {f"value{ends[i]}": float(q.columns["labels"][i]) for i in range(last)}
    return [_given(q.prompt, separator.join(steps), float(not wrong)).with_terms(**values)]
