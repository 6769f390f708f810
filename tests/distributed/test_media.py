"""Ranks exchange the images that others lack once, and of those that all have the names alone."""

import numpy as np

from grupo.core.media import Image
from grupo.core.types import Group, Response, Rollout, Task
from grupo.distributed.exchange import exchange_groups, exchange_json
from grupo.distributed.phase import Phase
from grupo.testing.thread_ranks import run_ranks

SIZE = 160  # 77 kB: zlib does not find the copies of a picture, which lie further apart than 32 kB


def picture(seed):
    return Image.from_pixels(np.random.default_rng(seed).integers(0, 256, (SIZE, SIZE, 3), "uint8"))


def message(media):
    return ({"role": "user", "content": [{"type": "image", "image": media}]},)


def exchanged(num_ranks, work):
    sizes = []

    def counted(ranks):
        exchange = ranks.exchange

        def record(data, *args):
            sizes.append(len(data))
            return exchange(data, *args)

        ranks.exchange = record
        return work(ranks)

    return run_ranks(num_ranks, counted), sizes


def test_pictures_of_the_tasks_are_not_sent_and_those_of_observations_are_sent_once():
    tasks = [Task(f"task {i}", message(picture(i))) for i in range(2)]
    seen = [message(picture(10 + i)) for i in range(2)]

    def group(i):
        response = Response((1,), (-0.1,), text="a")
        rollout = Rollout(((tasks[i].prompt, response), (seen[i], response)), 0.5)
        return Group(tasks[i], (rollout,) * 4)

    def work(ranks):
        own = {ranks.rank: group(ranks.rank)}
        return exchange_groups(ranks, own, tasks, Phase.ROLLOUTS_GENERATED, "generate")

    results, sizes = exchanged(2, work)
    assert results == [[group(0), group(1)]] * 2
    one = len(picture(0).data)
    assert max(sizes) < 1.2 * one
    assert min(sizes) > 0.9 * one


def test_values_with_pictures_are_exchanged():
    results, _ = exchanged(
        2, lambda ranks: exchange_json(ranks, [picture(ranks.rank)], Phase.STEP_ENDED)
    )
    assert results == [[[picture(0)], [picture(1)]]] * 2
