from grupo.losses import Likelihood
from grupo.testing import batch_of, moved


def test_likelihood_is_minus_logp_whatever_the_reward():
    batch = batch_of(group=[0, 0], reward=[1.0, -1.0], logp=-2.0)
    pi = moved(batch, [[0.5], [0.0]])
    loss = Likelihood()(pi, batch)
    loss.sum().backward()
    assert loss.tolist() == [[1.5], [2.0]]
    assert pi.logp.grad is not None
    assert pi.logp.grad.tolist() == [[-1.0], [-1.0]]
