"""Groups whose rollouts differ by their prompt, their beginning or how they are sampled.

Compared: the number of rollouts of each kind, their order, the forced beginnings with whether they
are trained, the prompt that each rollout is trained behind, and its mark.
"""

from collections.abc import Sequence

from tests.reference.rollouts_plain.record import (
    Part,
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    merged,
    reference,
    sample,
)

Rollouts = list[Trained]


def _begun(q: Question, policy: Policy, reward: Reward, start: str, *, trained: bool) -> Trained:
    """An answer that begins with a forced text."""
    rest = policy(q.prompt + start).text
    parts = merged([forced(start, trained=trained), Part(rest)])
    return Trained(q.prompt, parts, reward(start + rest))


@reference(
    "hbpo",
    "ZJU-REAL/HBPO, vllm_rollout_spmd-hierarchical.py: eight beginnings, each budget twice, n / 8"
    " answers to each; the beginning is a part of the trained response",
)
def hbpo(q: Question, policy: Policy, reward: Reward, *, size: int = 16) -> Rollouts:
    group = []
    for budget in (512, 512, 1024, 1024, 2048, 2048, 2560, 2560):
        start = f"<think> I will answer the question with {budget} tokens"
        for _ in range(size // 8):
            rollout = _begun(q, policy, reward, start, trained=True)
            group.append(rollout.with_terms(budget=float(budget)))
    return group


@reference("hgpo_hybrid", "arXiv:2505.14631, section 3.1 and eq. 5: N / 2 answers of each mode")
def hgpo_hybrid(q: Question, policy: Policy, reward: Reward, *, size: int = 4) -> Rollouts:
    group = []
    for tag, mode in (("<think>", 1.0), ("<no_think>", 0.0)):
        for _ in range(size // 2):
            group.append(_begun(q, policy, reward, tag, trained=True).with_terms(mode=mode))
    return group


@reference("tldr", "arXiv:2505.07961, abstract; the levels in the prompt are our reading")
def tldr(
    q: Question, policy: Policy, reward: Reward, *, suffixes: Sequence[str], size: int = 12
) -> Rollouts:
    group = []
    for level, suffix in enumerate(suffixes):
        part = sample(q.prompt + suffix, policy, reward, size // len(suffixes))
        group += [rollout.with_terms(level=float(level)) for rollout in part]
    return group


@reference("gcpo", "arXiv:2506.07160 by the record: parts that are told to construct, or not to")
def gcpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    starts: Sequence[tuple[float, str]],
    size: int = 8,
) -> Rollouts:
    """Without `starts`, a group of equal rollouts."""
    if not starts:
        return sample(q.prompt, policy, reward, size)
    group = []
    for value, start in starts:
        for _ in range(size // len(starts)):
            rollout = _begun(q, policy, reward, start, trained=False)
            group.append(rollout.with_terms(instructed=value))
    return group


@reference(
    "adaptthink",
    "arXiv:2505.13417, section 3.2: the first token is drawn with probability 1/2, which is its old"
    " probability; the draws are given. The reference accuracy is a column, as the record says",
)
def adaptthink(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    draws: Sequence[int],
    texts: tuple[str, str] = ("</think>", "Alright"),
) -> Rollouts:
    group = []
    for start in draws:
        rest = policy(q.prompt + texts[start]).text
        parts = merged([Part(texts[start], moved=True), Part(rest)])
        terms = {"start": float(start), "reference": q.columns["pass_rate"]}
        group.append(Trained(q.prompt, parts, reward(texts[start] + rest), terms))
    return group


@reference(
    "aepo",
    "arXiv:2510.08141 by the record: every group has tempered rollouts beside its own; hot while"
    " the last entropy is at most the target, else cold",
)
def aepo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    size: int = 5,
    extra: int = 2,
) -> Rollouts:
    tempered = sample(q.prompt, policy, reward, extra)  # the order of the calls is ours
    plain = sample(q.prompt, policy, reward, size)
    return [
        *(r.with_terms(temperature_scaled=0) for r in plain),
        *(r.with_terms(temperature_scaled=1) for r in tempered),
    ]


@reference("remax", "liziniu/ReMax, step3_rlhf_finetuning/remax_trainer.py; algorithm 1")
def remax(q: Question, policy: Policy, reward: Reward, *, greedy: str, size: int = 1) -> Rollouts:
    """`greedy`: the greedy answer, which is scored and not trained."""
    return [r.with_terms(greedy=reward(greedy)) for r in sample(q.prompt, policy, reward, size)]


@reference(
    "ps_grpo",
    "arXiv:2510.04392 by the record: as many answers to each paraphrase, all in one group",
)
def ps_grpo(
    q: Question, policy: Policy, reward: Reward, *, paraphrases: Sequence[str], size: int = 4
) -> Rollouts:
    return [r for text in paraphrases for r in sample(text, policy, reward, size)]
