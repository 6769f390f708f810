"""Answers that are revised, continued or replayed: critiques, rubrics, drafts, triggers, teachers.

Compared: which answers are revised, the prompt of the revision, the place that it takes, the prompt
that it is trained behind, and which of its letters are trained.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.reference.rollouts_plain.record import (
    Part,
    Policy,
    Question,
    Reward,
    Trained,
    forced,
    merged,
    move,
    reference,
    sample,
)

Rollouts = list[Trained]


@reference(
    "critique_grpo",
    "zhangxy-2019/critique-GRPO, critique_vllm_rollout_spmd.py: generate_sequences and"
    " process_refinement_groups, critique_type simple_gt, n_prefix 1",
)
def critique_grpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    critique: Callable[[str, str, bool, str], str],
    size: int = 8,
) -> Rollouts:
    first = sample(q.prompt, policy, reward, size)
    second = [
        sample(critique(q.prompt, r.text, r.reward == 1, q.answer), policy, reward, 1)[0]
        for r in first
    ]
    best = max(second, key=lambda r: r.reward or 0.0)  # the first one among equals
    return [move(best, q.prompt), *first[1:]]


@reference(
    "rgr_grpo",
    "arXiv:2511.12344 by the record: one revision of the best rollout, in place of the worst if it"
    " is better than that",
)
def rgr_grpo(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    revise: Callable[[str, str], str],
    size: int = 8,
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    rewards = [r.reward or 0.0 for r in group]
    if max(rewards) >= 0.999:
        return group
    best, worst = rewards.index(max(rewards)), rewards.index(min(rewards))
    revision = sample(revise(q.prompt, group[best].text), policy, reward, 1)[0]
    if (revision.reward or 0.0) > rewards[worst]:
        group[worst] = move(revision, q.prompt)
    return group


@reference(
    "r3",
    "arXiv:2601.19620, sections 3.1 and 3.2 by the record: a task whose remembered rollouts earn"
    " less than a threshold gets a second group that sees a failure",
)
def r3(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    remembered: Sequence[tuple[str, float]],
    reflect: Callable[[str, str], str],
    size: int = 8,
) -> Rollouts:
    group = [r.with_terms(saw_failure=0) for r in sample(q.prompt, policy, reward, size)]
    if not remembered or sum(x for _, x in remembered) / len(remembered) >= 0.25:
        return group
    failure = next(text for text, x in remembered if x <= 0)
    second = sample(reflect(q.prompt, failure), policy, reward, size)
    return [*group, *(r.with_terms(saw_failure=1) for r in second)]


@reference(
    "pdr",
    "arXiv:2510.01123 by the record: one round, drafts and workspace shared by the group, and"
    " drafts not trained. Whether a group has a workspace is drawn: `has_workspace`",
)
def pdr(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    has_workspace: bool,
    summarise: Callable[[str, Sequence[str]], str],
    refine: Callable[[str, str], str],
    size: int = 8,
    drafts: int = 4,
    limit: int = 512,
) -> Rollouts:
    prompt = q.prompt
    if has_workspace:
        written = [policy(q.prompt).text for _ in range(drafts)]
        summary = policy(summarise(q.prompt, written), limit).text
        prompt = refine(q.prompt, summary)
    group = sample(prompt, policy, reward, size)
    return [r.with_terms(has_workspace=float(has_workspace)) for r in group]


TRIGGERS = ("\n\nWait", "\n\nWait, does it seem right?")  # for right and wrong answers
IF_RIGHT, IF_WRONG = "\n\nWait, let's double check", "\n\nWait, there might be a mistake"


@dataclass(frozen=True)
class Rethinking:
    """Draws for one rollout: whether it goes on, whether it is cut, and the trigger."""

    goes_on: bool
    is_cut: bool = False
    trigger: str = ""


def _cut(text: str) -> str:
    """The text before its last `Wait`, then before its last box, then its last empty line."""
    for mark in ("Wait", "\\boxed", "\n\n"):
        if mark in text:
            text = text[: text.rindex(mark)]
    return text


@reference(
    "vl_rethinker",
    "TIGER-AI-Lab/VL-Rethinker, openrlhf/trainer/ppo_utils/experience_maker.py: _generate_vllm,"
    " data_version force_append_wait; the draws are given. Failures of groups above 0.7 are"
    " continued and the cut before `answer` is left out, as the record says",
)
def vl_rethinker(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    draws: Sequence[Rethinking],
    size: int = 8,
    shortest: int = 31,
    longest: int = 1023,
    per_question: int = 2,
) -> Rollouts:
    group = sample(q.prompt, policy, reward, size)
    replaced = 0
    for i, draw in enumerate(draws):
        if not draw.goes_on or not group[i].finished:
            continue
        assert draw.trigger in (*TRIGGERS, IF_RIGHT if (group[i].reward or 0) > 0.5 else IF_WRONG)
        kept = _cut(group[i].text) if draw.is_cut else group[i].text
        start = kept + draw.trigger
        more = policy(q.prompt + start, longest + 1).text
        is_valid = shortest <= len(more) <= longest and reward(start + more) > 0.5
        if is_valid and replaced < per_question:
            replaced += 1
            parts = merged([Part(kept), forced(draw.trigger, trained=True), Part(more)])
            group[i] = Trained(q.prompt, parts, reward(start + more))
    return group


@reference(
    "thinktuning",
    "3rdAT/ThinkTuning, verl/recipe/thinktuning/fsdp_workers.py: guidance_sequences_recompute; the"
    " answers that a teacher reads are drawn among those that have ended: `chosen`",
)
def thinktuning(
    q: Question,
    policy: Policy,
    reward: Reward,
    *,
    chosen: Sequence[int],
    feedback: Callable[[str, str], str],
    size: int = 5,
) -> Rollouts:
    """The whole answer has the teacher's mask, the policy's part included."""
    group = sample(q.prompt, policy, reward, size)
    for i in chosen:
        if not group[i].finished:
            continue
        request = feedback(q.prompt, group[i].text)
        text = group[i].text + policy(request).text
        group[i] = replace(group[i], parts=(forced(text, trained=True),), reward=reward(text))
    return group
