import math
from dataclasses import replace

import pytest

from grupo.report.checks import Evidence, Finding
from grupo.report.checks.answers import Answers
from grupo.report.checks.evidence import Files, alike
from grupo.report.checks.finding import Place
from grupo.report.doctor import diagnose

HEALTHY = {
    "reward/mean": lambda i: 0.3 + 0.01 * i,
    "reward/std": lambda i: 0.4,
    "reward/right": lambda i: 0.3 + 0.01 * i,
    "groups/signal": lambda i: 0.6,
    "groups/learned": lambda i: 8.0,
    "rollouts/truncated": lambda i: 0.05,
    "length/mean": lambda i: 50.0 + i % 3,
    "length/max": lambda i: 90.0,
    "entropy": lambda i: 1.0 - 0.01 * i,
    "kl/ref": lambda i: 0.001 * i,
    "loss": lambda i: 0.01,
    "gradient/norm": lambda i: 0.5 + 0.1 * (i % 2),
    "gradient/nonfinite": lambda i: 0.0,
    "mismatch/mean": lambda i: 1e-7,
    "mismatch/max": lambda i: 1e-5,
    "advantage/push": lambda i: 0.9,
    "mask/foreign": lambda i: 0.0,
    "mask/missing": lambda i: 0.0,
    "update/size": lambda i: 1e-3,
    "update/changed": lambda i: 1.0,
    "lr": lambda i: 1e-5,
    "staleness": lambda i: 0.0,
    "budget": lambda i: 2048.0,
    "share/sample": lambda i: 0.6,
    "share/judge": lambda i: 0.01,
    "time/step": lambda i: 4.0,
    "time/judge": lambda i: 0.1,
}
MIXED = (0.0, 1.0, 0.0, 1.0)


def run(count=40, groups=(), held_out=None, **changes) -> Evidence:
    """A healthy run of so many steps, but for the metrics named with _ in place of /."""
    names = {name.replace("/", "_"): name for name in HEALTHY}
    course = HEALTHY | {names[name]: change for name, change in changes.items()}
    steps = tuple({"step": i, **{n: f(i) for n, f in course.items()}} for i in range(count))
    found = groups or [Answers(i, MIXED, 4, 4) for i in range(count)]
    return Evidence(steps, tuple(found), {"held_out": held_out} if held_out else {})


def flat(rewards, texts=4, count=40) -> list[Answers]:
    """Groups of mixed rewards first, and then of these only."""
    half = [Answers(i, MIXED, 4, 4) for i in range(count // 2)]
    return half + [Answers(i, rewards, texts, 4) for i in range(count // 2, count)]


def every(count=40, **more) -> list[Answers]:
    """Groups of mixed rewards, the same but for what is said of them."""
    made = Answers(0, MIXED, 4, 4, task="sum", rollouts=(0, 1, 2, 3))
    return [replace(made, step=i, **more) for i in range(count)]


def scores(share: float) -> dict:
    spans = {n: [share - 0.1, share + 0.1] for n in ("greedy", "sampled")}
    return {"greedy": share, "sampled": share, "intervals": spans}


def names(evidence: Evidence) -> list[str]:
    return [finding.name for finding in diagnose(evidence)]


def one(evidence: Evidence) -> Finding:
    (finding,) = diagnose(evidence)
    return finding


@pytest.mark.parametrize("count", [3, 12, 40, 300])
def test_a_healthy_run_has_no_finding(count):
    assert diagnose(run(count)) == []


SICK = {
    "reward always zero": run(
        reward_mean=lambda i: 0.0, reward_std=lambda i: 0.0, reward_right=lambda i: 0.0
    ),
    "no signal, all right": run(groups=flat((1.0,) * 4), groups_signal=lambda i: 0.6 * (i < 30)),
    "no signal, all wrong": run(groups=flat((0.0,) * 4), groups_signal=lambda i: 0.6 * (i < 30)),
    "nothing learned from": run(groups_learned=lambda i: 8.0 * (i % 4 > 0)),
    "reward part never changes: right": run(reward_right=lambda i: 0.0),
    "identical answers": run(groups=flat(MIXED, texts=1)),
    "no gradient": run(gradient_norm=lambda i: 0.0),
    "loss is zero": run(loss=lambda i: 3e-9),
    "gradient not finite": run(gradient_nonfinite=lambda i: 0.5 * (i in (3, 7))),
    "gradient explodes": run(gradient_norm=lambda i: 0.5 if i < 30 else 6.0),
    "sampler and trainer disagree": run(mismatch_mean=lambda i: 0.02),
    "KL grows without bound: kl/ref": run(kl_ref=lambda i: 0.001 * i * i),
    "entropy collapse": run(entropy=lambda i: 1.0 if i < 30 else 0.05),
    "answers cut off": run(rollouts_truncated=lambda i: 0.05 if i < 30 else 0.35),
    "reward fell back": run(reward_mean=lambda i: 0.3 + 0.02 * (i if i < 20 else 40 - i)),
    "longer without reward": run(
        length_mean=lambda i: 50.0 + 2 * i, reward_mean=lambda i: 0.3 + 0.01 * (i % 2)
    ),
    "failed rewards": run(groups=[Answers(i, MIXED, 5, 5, ("it hung",)) for i in range(40)]),
    "reward never differs": run(
        groups=[Answers(i, (0.5,) * 4, 4, 4) for i in range(40)],
        reward_mean=lambda i: 0.5,
        reward_std=lambda i: 0.0,
        groups_signal=lambda i: 0.0,
    ),
    "NaN rewards": run(groups=every(nameless=(2,))),
    "not a number": run(entropy=lambda i: math.nan if i == 7 else 1.0),
    "wrong mask": run(mask_missing=lambda i: 0.25 * (i == 3)),
    "pushed the wrong way": run(advantage_push=lambda i: -0.8),
    "advantages against the reward": run(groups=every(advantages=(1.0, -1.0, 1.0, -1.0))),
    "weights do not change": run(update_changed=lambda i: 0.0),
    "learning rate too high": run(update_size=lambda i: 0.2),
    "stale weights": run(mismatch_mean=lambda i: 0.001 * i),
    "reward follows length": run(groups=every(lengths=(2.0, 5.0, 3.0, 6.0))),
    "answer in the prompt": run(groups=every(told=True)),
    "waiting for judges": run(share_judge=lambda i: 0.7),
    "a few long answers": run(length_max=lambda i: 500.0),
    "memory did not suffice": run(budget=lambda i: 2048.0 if i < 9 else 1024.0),
    "half written": replace(run(), files=Files(torn=("metrics.jsonl",))),
    "another version": replace(run(), files=Files(lacking=("`failed`",))),
    "nothing happens": replace(run(), files=Files(held=True, silent=81.0)),  # 20 x 4 s
    "stopped before its end": replace(run(), recipe={"steps": 50}),
    "steps lost": replace(run(), steps=run().steps[:9] + run().steps[10:]),
}


@pytest.mark.parametrize("name", SICK)
def test_each_sickness_is_found_and_nothing_else(name):
    finding = one(SICK[name])
    assert finding.name == name
    assert finding.causes
    assert finding.tries


def test_the_numbers_and_steps_are_said():
    assert "NaN or infinite at steps 3, 7;" in one(SICK["gradient not finite"]).seen
    assert "35% of the answers of 4 steps from 36 to 39" in one(SICK["answers cut off"]).seen
    assert "was 1 nats at 4 steps from 0 to 3 and is 0.05" in one(SICK["entropy collapse"]).seen
    assert "No group was learned from at 10 steps from 0 to 36 of 40" in (
        one(SICK["nothing learned from"]).seen
    )


def test_flat_groups_at_the_top_of_a_learned_run_are_no_reason_to_worry():
    done = run(
        groups=flat((1.0,) * 4),
        groups_signal=lambda i: 0.6 * (i < 30),
        reward_mean=lambda i: min(1.0, 0.3 + 0.03 * i),
        entropy=lambda i: 1.0 if i < 30 else 0.001,
    )
    assert [(f.name, f.severity) for f in diagnose(done)] == [("nothing left to learn", "note")]


def test_right_and_wrong_are_counted_apart():
    both = [Answers(i, (float(i % 4 > 0),) * 4, 4, 4) for i in range(40)]
    finding = one(run(groups=both, groups_signal=lambda i: 0.0))
    assert finding.name == "no signal, all right"
    assert "Of 10 recent groups that are flat, 8 are all right and 2 all wrong." in finding.seen


def test_a_mismatch_is_an_error_where_it_is_large():
    assert one(run(mismatch_mean=lambda i: 0.02)).severity == "warning"
    assert one(run(mismatch_mean=lambda i: 0.06)).severity == "error"
    assert one(run(mismatch_max=lambda i: 2.5 * (i == 3))).severity == "warning"
    assert names(run(mismatch_mean=lambda i: 0.009)) == []


def test_failures_are_counted_and_the_most_frequent_named():
    groups = [
        Answers(
            step=i,
            rewards=(0.0, 1.0),
            texts=4,
            count=4,
            failures=(f"task {i}, rollout 0: reward 'a' hung", f"task {i}, rollout 1: b{i}"),
        )
        for i in range(6)
    ]
    finding = one(run(groups=groups))
    assert finding.severity == "error"  # half of them
    assert "12 of 24 rollouts (50.0%) could not be judged, at 6 steps from 0 to 5" in finding.seen
    assert "Most often (6 x): reward 'a' hung" in finding.seen


def test_failures_that_were_given_a_reward_are_counted_too():
    groups = [Answers(i, MIXED, 4, 4, covered=i % 2) for i in range(10)]
    finding = one(run(groups=groups))
    assert finding.severity == "warning"
    assert "5 of 40 rollouts" in finding.seen
    assert "5 of them were given a reward all the same." in finding.seen


def test_a_part_that_is_always_earned_is_a_note():
    assert one(run(reward_right=lambda i: 1.0)).severity == "note"


def test_noise_is_no_fall():
    assert names(run(reward_mean=lambda i: 0.5 + 0.2 * (i % 3 - 1))) == []


def test_answers_that_grow_with_the_reward_are_fine():
    assert names(run(length_mean=lambda i: 50.0 + 2 * i)) == []


def test_a_held_out_share_that_fell_beyond_its_intervals_is_an_error():
    fell = run(held_out={"before": scores(0.6), "after": scores(0.3)})
    assert names(fell) == ["held-out share fell: greedy", "held-out share fell: sampled"]
    assert "60.0% of the held-out tasks at first, 30.0% now" in diagnose(fell)[0].seen
    assert names(run(held_out={"before": scores(0.6), "after": scores(0.5)})) == []


def test_the_worst_comes_first():
    sick = run(loss=lambda i: 0.0, rollouts_truncated=lambda i: 0.5, mismatch_mean=lambda i: 0.1)
    assert [f.severity for f in diagnose(sick)] == ["error", "warning", "note"]


def test_a_run_of_two_steps_is_too_short_and_its_failures_are_found_all_the_same():
    short = run(2, gradient_nonfinite=lambda i: 1.0, groups=[Answers(0, (1.0,), 2, 2, ("x",))])
    assert names(short) == ["failed rewards", "gradient not finite", "too short"]


def test_no_evidence_is_too_short():
    assert names(Evidence()) == ["too short"]


def test_a_run_that_goes_on_or_has_ended_was_not_stopped():
    going = replace(run(), recipe={"steps": 50}, files=Files(held=True, silent=79.0))
    assert diagnose(going) == []
    assert diagnose(replace(run(), recipe={"steps": 40})) == []
    assert diagnose(replace(run(), recipe={"steps": 50}, summary={"steps": 40})) == []


def test_adapters_are_named_where_they_are_all_that_is_trained():
    adapted = {"policy": {"lora": {"rank": 4}}}
    for still in (run(update_changed=lambda i: 0.0), run(gradient_norm=lambda i: 0.0)):
        assert names(replace(still, recipe=adapted)) == ["dead adapters"]


def test_weights_that_are_meant_to_be_older_are_not_stale():
    ahead = run(mismatch_mean=lambda i: 0.001 * i, staleness=lambda i: float(i > 0))
    assert names(ahead) == []
    always_off = run(mismatch_mean=lambda i: 0.02, staleness=lambda i: float(i > 0))
    assert names(always_off) == ["sampler and trainer disagree"]  # at step 0, which is fresh


def test_a_prompt_that_holds_every_answer_of_a_list_leaks_nothing():
    assert names(run(groups=every(told=True, told_other=True))) == []


def test_the_worst_action_is_named_by_step_group_rollout_and_token():
    off = run(mismatch_mean=lambda i: 0.02, mismatch_max=lambda i: 0.5 + (i == 3))
    where = {"mismatch/rollout": 2.0, "mismatch/action": 7.0, "mismatch/token": 11.0}
    steps = [m | where for m in off.steps]
    groups = [
        Answers(3, MIXED, task="b", learned=(0, 3)),
        Answers(3, MIXED, task="c", learned=(1,)),
    ]
    finding = one(replace(off, steps=tuple(steps), groups=tuple(groups)))
    assert finding.places == (Place(3, "c", 1, 7, 11),)  # b's two are 0 and 1
    assert str(finding.places[0]) == "step 3, task c, rollout 1, action 7, token 11"


def test_cut_rollouts_and_flat_groups_are_named():
    cut = run(groups=every(cut=(1, 3)), rollouts_truncated=lambda i: 0.5)
    assert one(cut).places == (Place(30, "sum", 1), Place(30, "sum", 3), Place(31, "sum", 1))


def test_correlations_are_within_groups():
    # deviations (-1, 1) with (-1, 1), and (-1, 1) with (2, -2): -2 / sqrt(4 x 10)
    groups = [
        Answers(0, (0.0, 2.0), lengths=(5.0, 7.0)),
        Answers(0, (8.0, 10.0), lengths=(9.0, 5.0)),
    ]
    assert alike(groups, "lengths") == pytest.approx(-2 / math.sqrt(40))
    assert math.isnan(alike([Answers(0, (1.0, 1.0), lengths=(2.0, 3.0))], "lengths"))


def test_one_mismatch_on_the_way_is_no_weight_that_is_stale():
    assert names(run(mismatch_mean=lambda i: 0.04 * (i == 38))) == []


def test_groups_of_one_have_nothing_to_differ_in():
    alone = [Answers(i, (1.0,), 1, 1) for i in range(40)]
    same = {"reward_mean": lambda i: 1.0, "reward_std": lambda i: 0.0}
    assert names(run(groups=alone, groups_signal=lambda i: math.nan, **same)) == []
