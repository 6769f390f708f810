"""The sections of docs/real_runs.md: what is measured, and the texts beside the tables."""

from collections.abc import Callable, Mapping

from benchmarks.real_runs.commands import SUMS, VARIANTS, VLLM_PYTHON
from benchmarks.real_runs.comparing import Compared
from benchmarks.real_runs.exactness import Exported, KilledAndResumed
from benchmarks.real_runs.section import Result, Section
from benchmarks.real_runs.training import (
    Estimated,
    Training,
    finding_cell,
    kl_cell,
    score_cell,
)

GB = 1e9
SHORT = ("--evaluation.attempts", "1")  # evaluations of which nothing is shown
SICK = ("--steps", "12", *SHORT)
LORA = ("--policy.lora", "Lora(16)", "--learning-rate", "3e-4")
SERVER = f'Vllm(python="{VLLM_PYTHON}", server_options=("--no-enable-chunked-prefill",))'


def sums(*options: str) -> Training:
    """GRPO on sums of two digits with these options."""
    return Training((SUMS, *options))


def estimated(*options: str) -> Estimated:
    """Three steps on sums of two digits with these options."""
    return Estimated((SUMS, "--steps", "3", *SHORT, *options))


SCORES: Mapping[str, Callable[[Result], str]] = {
    "greedy before, %": score_cell("before", "greedy"),
    "greedy after, %": score_cell("after", "greedy"),
    "sampled after, %": score_cell("after", "sampled"),
    "pass@8 after, %": score_cell("after", "pass@8"),
    "steps": lambda r: str(r["steps"]),
    "generated tokens": lambda r: f"{r['tokens']:,.0f}",
}
ESTIMATES: Mapping[str, Callable[[Result], str]] = {
    "peak without libraries, GB": lambda r: f"{(r['peak'] - r['libraries']) / GB:.1f}",
    "estimated": lambda r: f"{r['estimated_peak'] / GB:.1f}",
    "step, s": lambda r: f"{r['step']:.1f}",
    "estimated step": lambda r: f"{r['estimated_step']:.1f}",
    "run, s": lambda r: f"{r['total']:.0f}",
    "estimated run": lambda r: f"{r['estimated_total']:.0f}",
    "mean answer, tokens": lambda r: f"{r['answer']:.1f}",
}

SECTIONS: Mapping[str, Section] = {
    "estimates": Section(
        "What `--dry-run` estimates",
        """
Three steps, with an evaluation before and after them, against what `--dry-run` prints for the same
command. The memory is the peak of the process (of each, if there are two) above that of
`--dry-run`, which loads the libraries alone, 0.6 GB. The estimated time takes all answers to reach
their limit, so that it is an upper one; the sampled answers here have 14 of 16 tokens. This
processor has no instructions for bfloat16: grupo says so and computes in float32. Long prompts
are tokenized for the estimates.
""",
        {
            "full": estimated(),
            "LoRA": estimated(*LORA),
            "bfloat16": estimated("--policy.dtype", "bfloat16"),
            "gradient checkpointing": estimated("--policy.gradient-checkpointing", "True"),
            "560 prompt tokens": Estimated((f"{VARIANTS}:LONG_PROMPTS", "--steps", "3", *SHORT)),
            "two processes": estimated("--ranks", "2"),
        },
        ESTIMATES,
    ),
    "learning_rate": Section(
        "Learning rate",
        """
All weights, and adapters of rank 16 on all linear layers, at three learning rates each. All weights
learn most at 1e-5, adapters about as much at 1e-4 as at 3e-4, where the doctor warns of a collapse
of the entropy. At 1e-3 the adapters learn nothing. `grupo train --model` chooses 1e-5 and 1e-4 for
models of up to 300 million parameters. LoRA learns about as much as full fine-tuning from about as
many tokens.
""",
        {
            **{f"full, {rate}": sums("--learning-rate", rate) for rate in ("3e-6", "1e-5", "3e-5")},
            **{
                f"LoRA, {rate}": sums("--policy.lora", "Lora(16)", "--learning-rate", rate)
                for rate in ("1e-4", "3e-4", "1e-3")
            },
        },
        SCORES,
    ),
    "trainings": Section(
        "Ways to train",
        """
The same model and tasks by other means. With two rewards, a right sum counts 1 and an answer of
digits alone 0.2: the second is learnt first, answers become shorter, and sums are learnt more
slowly. DPO trains on pairs of a right and a wrong answer, of 8 answers of the model to each of 400
tasks; these were generated before the steps and are not counted. Two processes share the rollouts
of each step. SFT shows right answers, the number alone, for 8 steps, and 16 steps of GRPO follow:
answers are short, and the score stays below that of 24 steps of GRPO alone. Asynchronous
generation, one step ahead of the updates, reaches about the score of synchronous generation; its
process had a peak of 11.2 GB, 2.3 times that of a synchronous run.
""",
        {
            "two rewards": Training((f"{VARIANTS}:TWO_REWARDS",)),
            "SFT, then GRPO": Training((f"{VARIANTS}:SFT_THEN_GRPO",), ("sft", "grpo")),
            "DPO on its own answers": Training((f"{VARIANTS}:PREFERENCES",), ("dpo",)),
            "asynchronous": sums("--max-staleness", "1"),
            "two processes": sums("--ranks", "2"),
            "vLLM on the CPU": sums("--policy.engine", SERVER),
        },
        SCORES,
    ),
    "resume": Section(
        "Kill and resume",
        """
A run is killed (SIGKILL) in the step after the third one and resumed from its last checkpoint, and
compared with a run that was not killed: SHA-256 of the weights and of the optimizer's state, and
every byte of the rollouts and of their responses.
""",
        {
            "full": KilledAndResumed((SUMS, "--steps", "6", "--save-every", "2", *SHORT), 3),
        },
        {
            "killed after step": lambda r: str(r["killed_after"]),
            "steps": lambda r: str(r["steps"]),
            "weights and optimizer": lambda r: _equal(r["equal_state"]),
            "rollouts and responses": lambda r: _equal(r["equal_journals"]),
        },
    ),
    "export": Section(
        "Export",
        """
`grupo export` writes a folder for transformers. The log-probabilities of 20 sampled answers by
`AutoModelForCausalLM` with its own eager attention are compared with those that the policy computes
for an update, and with those that the sampler reported, in nats. Adapters are merged.
""",
        {
            "full": Exported((SUMS, "--steps", "3", *SHORT)),
            "LoRA": Exported((SUMS, "--steps", "3", *SHORT, *LORA)),
        },
        {
            "answers": lambda r: str(r["answers"]),
            "tokens": lambda r: str(r["tokens"]),
            "policy, largest difference": lambda r: f"{r['largest']:.1e}",
            "sampler, largest difference": lambda r: f"{r['largest_of_sampler']:.1e}",
        },
    ),
    "compare": Section(
        "A comparison of methods",
        """
Two seeds and 8 steps show that the command works on this model. They conclude nothing about the two
methods.
""",
        {
            "grpo and dr_grpo": Compared(
                (
                    *(SUMS, "--method", "grpo(group_size=8, kl_coef=0.0)"),
                    *("--method", "dr_grpo(max_length=16, group_size=8)", "--budget", "steps=8"),
                    *("--seeds", "2", "--workers", "1", "--threads", "2", *SHORT),
                )
            ),
        },
        {},
    ),
    "doctor": Section(
        "The doctor",
        """
A healthy run and four sick ones, and the errors and warnings of `grupo doctor` about each. The
reward that can be cheated is the fraction of the sum's digits that occur anywhere in the answer;
its scores below are those of right answers, which it does not see. The sick runs have 12 steps, and
their evaluations one sampled answer to each task, but that of the cheated reward has 24.
The run of the last row leaves the reference policy by more than two nats per token and answers
nothing right any more.
""",
        {
            "healthy": sums("--learning-rate", "1e-5"),
            "learning rate 100 times as high": sums("--learning-rate", "1e-3", *SICK),
            "a reward that can be cheated": Training((f"{VARIANTS}:CHEATED", *SHORT)),
            "answers cut off": sums("--policy.max-new-tokens", "6", *SICK),
            "KL runaway": sums(
                "--method", "grpo(group_size=8, kl_coef=0.001)", "--learning-rate", "2e-4", *SICK
            ),
        },
        {
            "mean reward of the last 8 steps": lambda r: f"{r['reward']:.2f}",
            "sampled before, %": score_cell("before", "sampled"),
            "sampled after, %": score_cell("after", "sampled"),
            "KL at the end, nats per token": kl_cell,
            "errors and warnings of `grupo doctor`": finding_cell,
        },
    ),
}


def _equal(value: bool) -> str:
    return "equal" if value else "DIFFERENT"
