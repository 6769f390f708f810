"""The settings of the claims: environments with what they show, budgets and update plans.

Chosen by looking at the oracle, the untrained policy and GRPO only: the oracle wins, GRPO learns,
and its metrics are far from their bounds. No arm of a claim was run before its setting was fixed.
"""

from collections.abc import Mapping
from dataclasses import replace

from grupo.algo.minibatches import Updates
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import Corridor, KeyPositions, ManyModes, PaddedAnswers

PADDED = PaddedAnswers(num_tasks=32, filler_logit=2.5, max_length=32)
KEYS = KeyPositions(num_tasks=32, max_keys=4)
CORRIDOR = Corridor(num_tasks=16, num_states=8, max_length=20)

ALL_SETTINGS = (
    Setting(
        "padded",
        "Answers of 2 to 5 necessary tokens within a limit of 32; filler tokens, which the policy"
        " prefers before training, have no effect.",
        PADDED,
        metric="short_success",
        steps=120,
        learning_rate=0.05,
    ),
    Setting(
        "padded_updates",
        "The padded answers with four updates per step. Clips keep the papers' values, also those"
        " of whole sequences, which are made for longer answers and smaller steps.",
        PADDED,
        metric="short_success",
        steps=40,
        learning_rate=0.05,
        updates=Updates(minibatches=4),
    ),
    Setting(
        "modes",
        "Four of 512 answers are correct, and in half of the tasks the policy's preferred answer is"
        " wrong: rare correct answers and several modes.",
        ManyModes(num_tasks=32, num_items=8),
        metric="pass_k",
        steps=100,
    ),
    Setting(
        "unlabelled",
        "The policy's preferred answer is correct in three quarters of the tasks; the arms of these"
        " claims read no reward.",
        ManyModes(num_tasks=32, num_items=8, trap_fraction=0.25, preference=2.0),
        metric="success",
        steps=60,
    ),
    Setting(
        "keys",
        "One to four key tokens of ten decide, at which the policy prefers a wrong one; one update"
        " per step.",
        KEYS,
        steps=100,
        learning_rate=0.05,
    ),
    Setting(
        "reuse",
        "The key tokens with two epochs of eight minibatches: 16 updates on each step's rollouts."
        " GRPO's clip acts on a fifth of the tokens. Clips keep the papers' values, also those of"
        " whole sequences, which are made for longer answers and smaller steps.",
        KEYS,
        steps=40,
        updates=Updates(epochs=2, minibatches=8),
    ),
    Setting(
        "engine",
        "The key tokens, sampled by an engine whose logits differ by noise of standard deviation 1"
        " from the trainer's; four updates per step.",
        KEYS,
        steps=60,
        learning_rate=0.05,
        updates=Updates(minibatches=4),
        engine_noise=1.0,
    ),
    Setting(
        "turns",
        "A walk of 8 states in at most 20 turns, rewarded at the end only; states are revisited.",
        CORRIDOR,
        steps=50,
        rollouts_per_step=64,
        learning_rate=0.05,
    ),
    Setting(
        "progress",
        "The walk with a reward for progress at each turn.",
        replace(CORRIDOR, step_outcome=0.0, step_progress=1.0),
        steps=50,
        rollouts_per_step=64,
        learning_rate=0.05,
    ),
    Setting(
        "tokens",
        "The walk as one answer of up to 20 tokens, with a reward at the end only.",
        replace(CORRIDOR, separate_turns=False),
        steps=80,
        rollouts_per_step=64,
        learning_rate=0.05,
    ),
    Setting(
        "difficulty",
        "64 tasks of one to six key tokens: some are solved at once, others almost never.",
        KeyPositions(num_tasks=64, max_keys=6),
        steps=160,
        learning_rate=0.05,
    ),
    Setting(
        "noisy",
        "The key tokens with a verifier that accepts a tenth of the wrong answers and rejects a"
        " fifth of the correct ones.",
        KeyPositions(num_tasks=32, max_keys=3, false_positive=0.1, false_negative=0.2),
        steps=120,
        learning_rate=0.05,
    ),
    Setting(
        "heavy_tail",
        "The key tokens with heavy-tailed noise on the reward (Student's t, 1.5 degrees of freedom,"
        " scale 0.1).",
        KeyPositions(num_tasks=32, max_keys=3, tail=0.1),
        steps=120,
        learning_rate=0.05,
    ),
    Setting(
        "terms",
        "The reward is the sum of correctness, which is rare, and of the format, which is easy.",
        KeyPositions(num_tasks=32, max_keys=4, term_weights=(1.0, 1.0, 0.0)),
        metric="both",
        steps=100,
        learning_rate=0.05,
    ),
    Setting(
        "judge",
        "The reward is the sum of correctness, format and a judge's score, which tokens without any"
        " effect on correctness raise.",
        KeyPositions(num_tasks=32, max_keys=4, term_weights=(1.0, 1.0, 1.0)),
        metric="success",
        steps=100,
        learning_rate=0.05,
    ),
)
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in ALL_SETTINGS}
