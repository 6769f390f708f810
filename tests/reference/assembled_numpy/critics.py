"""Methods with a learned value function."""

import numpy as np

from tests.reference.assembled_numpy.case import Case
from tests.reference.assembled_numpy.formulas import (
    clipped_surrogate,
    token_mean,
)
from tests.reference.assembled_numpy.update import Update, reference


def last_action(mask):
    """True at the last action of each row."""
    columns = np.arange(mask.shape[1])
    return mask & (columns == mask.shape[1] - 1 - np.argmax(mask[:, ::-1], axis=1)[:, None])


def gae(reward, value, mask, gae_lambda, final_value=None):
    """Generalised advantage estimation with discount 1 over the actions of each row (n, T).

    `reward` is (n, T), `gae_lambda` and the value after the last action, 0 by default, are (n,).
    """
    advantage = np.zeros(value.shape)
    gae_lambda = np.broadcast_to(gae_lambda, len(value))
    for i in range(len(value)):
        following, total = 0.0 if final_value is None else final_value[i], 0.0
        for t in np.flatnonzero(mask[i])[::-1]:
            difference = reward[i, t] + following - value[i, t]
            total = difference + gae_lambda[i] * total
            advantage[i, t], following = total, value[i, t]
    return advantage


def actor_critic_loss(low, high, value_target, value_coef):
    """The clipped surrogate and the squared error of the value, which `value_target` computes."""

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, low, high)
        error = (pi["value"] - value_target(batch)) ** 2
        return token_mean(surrogate + value_coef * error, batch.mask)

    return loss


def outcome(case):
    """The reward of the rollout at its last action."""
    return case.reward[:, None] * last_action(case.mask)


@reference(
    "ppo", "arXiv:1707.06347, eq. 7, 9, 11 and 12; c1 has no effect where no parameters are shared"
)
def ppo(case: Case) -> Update:
    advantage = gae(outcome(case), case.signals["value"], case.mask, 0.95)
    loss = actor_critic_loss(0.2, 0.2, lambda batch: batch.advantage + batch.signals["value"], 1.0)
    return Update(advantage, loss, epochs=3)


@reference("vc_ppo", "arXiv:2503.01491, decoupled GAE, from memory")
def vc_ppo(case: Case) -> Update:
    advantage = gae(outcome(case), case.signals["value"], case.mask, 0.95)
    loss = actor_critic_loss(0.2, 0.2, lambda batch: batch.reward[:, None], 1.0)
    return Update(advantage, loss)


@reference(
    "ovm",
    "FreedomIntelligence/OVM, verifier_models.py: squared error of the value at every token, and"
    " the likelihood; the mean over tokens by the record",
)
def ovm(case: Case) -> Update:
    def loss(batch, pi):
        error = (pi["value"] - batch.reward[:, None]) ** 2
        return token_mean(error - pi["logp"], batch.mask)

    return Update(None, loss)


@reference(
    "vapo",
    "arXiv:2504.05118, length-adaptive and decoupled GAE, clip-higher, NLL of correct answers:"
    " its equations in the reviews xavierzhang2002.github.io and newfacade.github.io",
    code="vapo(lambda_length_scale=0.6)",
    terms={"correct": "binary"},
    reward="correct",
)
def vapo(case: Case) -> Update:
    gae_lambda = 1 - 1 / (0.6 * case.lengths)
    advantage = gae(outcome(case), case.signals["value"], case.mask, gae_lambda)
    policy_and_value = actor_critic_loss(0.2, 0.28, lambda batch: batch.reward[:, None], 1.0)

    def loss(batch, pi):
        correct = batch.mask & (batch.terms["correct"] == 1)[:, None]
        nll = -np.sum(pi["logp"] * correct) / max(correct.sum(), 1)
        return policy_and_value(batch, pi) + 0.1 * nll

    return Update(advantage, loss, minibatches=16)


CUT = (0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0)


EARLIER = np.zeros((15, 7))
EARLIER[[0, 3, 5, 8, 10], :2] = 1  # tokens of an earlier window


@reference(
    "t_ppo",
    "arXiv:2506.15050, EGAE and the separate losses, from memory",
    reward=tuple(np.array((0.3, 0, 1, 0, 0, 0.5, 0.2, 0, 0.7, 1, 0, 0.1, 0.9, 0, 0.6))),
    terms={"cut": CUT},
    signals={"off_context": EARLIER.tolist()},
)
def t_ppo(case: Case) -> Update:
    value = case.signals["value"]
    is_cut = case.terms["cut"] == 1
    last_value = (value * last_action(case.mask)).sum(1)
    reward = outcome(case) * ~is_cut[:, None]
    advantage = gae(reward, value, case.mask, 0.95, np.where(is_cut, last_value, 0.0))

    def loss(batch, pi):
        window = batch.mask & (batch.signals["off_context"] == 0)
        finished = batch.mask & (batch.terms["cut"] == 0)[:, None]
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.28) * window
        error = (pi["value"] - batch.reward[:, None]) ** 2 * finished
        return np.sum(surrogate + error) / window.sum()

    return Update(advantage, loss)


@reference(
    "optimal_token_baseline",
    "arXiv:2602.07078; verl, core_algos.py (compute_optimal_token_baseline_advantage), without its"
    " zero tail",
)
def optimal_token_baseline(case: Case) -> Update:
    squared_score = 1 - 2 * np.exp(case.old_logp) + case.signals["collision"]
    weight = np.cumsum(squared_score * case.mask, axis=1) * case.mask
    baseline = np.zeros(weight.shape)
    for g in np.unique(case.group):
        rows = case.group == g
        total = (weight[rows] * case.reward[rows][:, None]).sum(0)
        baseline[rows] = total / (weight[rows].sum(0) + 1e-8)

    def loss(batch, pi):  # the estimator of the gradient: a sum over the actions of a trajectory
        return -np.mean((pi["logp"] * batch.advantage * batch.mask).sum(1))

    return Update(case.reward[:, None] - baseline, loss)


CUTS = np.array([[1, 0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0]] * 5)


@reference(
    "spo_segment",
    "AIFrameResearch/SPO, math_episode_generator_with_mc_advantages.py (_compute_token_advantages),"
    " ppo_trainer.py (use_prob_mask, masked_whiten), trainers/ppo_MATH.jsonnet",
    code="spo_segment(below=0.3)",
    signals={
        "step/prefix_cut": CUTS.tolist(),
        "step/prefix_value": (np.random.default_rng(1).random((15, 7)).round(2) * CUTS).tolist(),
    },
)
def spo_segment(case: Case) -> Update:
    cut, value = case.signals["step/prefix_cut"], case.signals["step/prefix_value"]
    trained = case.mask & (np.exp(case.old_logp) < 0.3)
    advantage = np.zeros(case.mask.shape)
    for i in range(len(case.reward)):
        actions = np.flatnonzero(case.mask[i])
        starts = [t for t in actions if cut[i, t] == 1]
        values = [value[i, t] for t in starts] + [case.reward[i]]
        for k, start in enumerate(starts):
            end = starts[k + 1] if k + 1 < len(starts) else actions[-1] + 1
            segment = actions[(actions >= start) & (actions < end)]
            advantage[i, segment] = values[k + 1] - values[k]
    mean, variance = advantage[trained].mean(), advantage[trained].var(ddof=1)
    whitened = (advantage - mean) / np.sqrt(variance + 1e-8)

    def loss(batch, pi):
        mask = batch.mask & (np.exp(batch.old_logp) < 0.3)
        ratio = np.exp(pi["logp"] - batch.old_logp)
        return token_mean(clipped_surrogate(ratio, batch.advantage, 0.2, 0.2), mask)

    return Update(whitened * trained, loss, epochs=2, minibatches=8)


def anytime(budgets, traces, answers):
    """Reward terms and thinking of a group of AnytimeBudgets, whose second trace ends early."""
    rows = [(i, s, a) for i in range(traces) for s in range(budgets) for a in range(answers)]
    cut = [min(s, 1) if i == 1 else s for i, s, a in rows]
    thinking = np.zeros((len(rows), 7))
    for row, ((_, s, a), c) in enumerate(zip(rows, cut, strict=True)):
        thinking[row, :2] = a == 0 and c == s
    terms = {
        "trace_index": tuple(i for i, _, _ in rows),
        "budget_index": tuple(s for _, s, _ in rows),
        "cut_index": tuple(cut),
    }
    return terms, thinking


TERMS, THINKING = anytime(4, 2, 2)


@reference(
    "brpo",
    "sail-sg/AnytimeReasoner, brpo.py (compute_cot_advantage, compute_summary_advantage),"
    " core_algos.py (compute_policy_loss, just_mean)",
    code="brpo(traces=2, token_budgets=(4, 8, 12, 16), answers_per_budget=2, answer_tokens=3)",
    groups=(16,),
    reward="half",
    terms=TERMS,
    signals={"step/thinking": THINKING.tolist()},
)
def brpo(case: Case) -> Update:
    prior = np.array([1.0, 2.0, 3.0, 4.0]) / 10
    trace, budget, cut = (case.terms[f"{name}_index"] for name in ("trace", "budget", "cut"))
    score = np.array(
        [[case.reward[(trace == i) & (budget == s)].mean() for s in range(4)] for i in range(2)]
    )
    thought = np.zeros((2, 4))
    for i in range(2):
        for s in range(4):
            own = (score[i, s:] * prior[s:]).sum()
            others = (score[:, s:] * prior[s:]).sum(1).mean()
            recent = 2.0 ** np.arange(s)
            earlier = (score[i, :s] * recent).sum() / recent.sum() if s > 0 else 0.0
            thought[i, s] = own - (s * earlier * prior[s:].sum() + (4 - s) * others) / 4
    answer = case.reward - np.array(
        [case.reward[(trace == i) & (cut == c)].mean() for i, c in zip(trace, cut, strict=True)]
    )
    is_thinking = case.signals["step/thinking"] == 1
    of_thought = thought[trace.astype(int), cut.astype(int)]
    advantage = np.where(is_thinking, of_thought[:, None], answer[:, None])

    def loss(batch, pi):
        ratio = np.exp(pi["logp"] - batch.old_logp)
        surrogate = clipped_surrogate(ratio, batch.advantage, 0.2, 0.2)
        return np.sum(surrogate * batch.mask) / 2 / (16 + 4 * 2 * 3)

    return Update(advantage, loss, minibatches=2)


LABELLED = np.array([[i % 3 == 0, 0, 0, i % 2, 0, 0, 0] for i in range(15)], dtype=float)


@reference(
    "prm_lessons",
    "arXiv:2501.07301 by the record: cross-entropy at the ends of steps, summed in an answer",
    signals={
        "step/prefix_cut": LABELLED.tolist(),
        "step/prefix_value": (LABELLED * (np.arange(15)[:, None] % 4 / 3).round(2)).tolist(),
    },
)
def prm_lessons(case: Case) -> Update:
    def loss(batch, pi):
        q, label = pi["process"], batch.signals["step/prefix_value"]
        p = 1 / (1 + np.exp(-q))
        entropy = -label * np.log(p) - (1 - label) * np.log(1 - p)
        at = batch.signals["step/prefix_cut"] * batch.mask
        return np.sum(entropy * at) / len(batch.mask)

    return Update(None, loss)


@reference(
    "omegaprm",
    "arXiv:2406.06592 by the record: cross-entropy with the share of right completions",
    signals={
        "step/prefix_cut": LABELLED.tolist(),
        "step/prefix_value": (LABELLED * (np.arange(15)[:, None] % 5 / 4)).tolist(),
    },
)
def omegaprm(case: Case) -> Update:
    def loss(batch, pi):
        q, share = pi["process"], batch.signals["step/prefix_value"]
        entropy = np.log(1 + np.exp(q)) - share * q
        at = batch.signals["step/prefix_cut"] * batch.mask
        return np.sum(entropy * at) / len(batch.mask)

    return Update(None, loss)
