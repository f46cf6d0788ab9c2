"""Losses by name are those with their defaults, and unknown names are refused in one sentence."""

import numpy as np
import pytest
from tests.conftest import targets

import bifactor as bf
from bifactor.errors import InputError
from bifactor.losses.named import LOSSES, loss_of

ROWS, COLS = np.divmod(np.arange(30), 5)


def entries(loss):
    """Every entry of a 6×5 matrix, with values that the loss can have."""
    rng = np.random.default_rng(0)
    return bf.operators.Entries(ROWS, COLS, (6, 5)), targets(loss, rng.standard_normal(30), rng)


@pytest.mark.parametrize("name", LOSSES)
def test_a_name_is_the_loss_with_its_defaults(name):
    default = getattr(bf.losses, name.title().replace("_", ""))()
    assert loss_of(name) == default
    operator, y = entries(default)
    named, plain = bf.Problem(name, operator, y), bf.Problem(default, operator, y)
    assert named.loss == plain.loss
    results = [bf.solve(problem, 1, rng=0, max_iter=5) for problem in (named, plain)]
    np.testing.assert_array_equal(results[0].U, results[1].U)


def test_a_loss_stays_itself():
    loss = bf.losses.Huber(0.3)
    assert loss_of(loss) is loss


def test_names_and_instances_mix_in_groups():
    operator, y = entries(bf.losses.Logistic())
    group = np.arange(30) % 2
    named = bf.Problem(["squared", "logistic"], operator, y, group=group)
    mixed = bf.Problem((bf.losses.Squared(), "logistic"), operator, y, group=group)
    plain = bf.Problem([bf.losses.Squared(), bf.losses.Logistic()], operator, y, group=group)
    assert named.loss == mixed.loss == plain.loss


@pytest.mark.parametrize("loss", ["Squared", "hinge", "", None, 3, bf.losses.Squared, np.ones(2)])
def test_what_is_no_loss_is_one_clear_error(loss):
    with pytest.raises(InputError, match=r"^loss=.* is neither one of squared, huber, .* nor a Loss\. Pass one"):
        loss_of(loss)
    with pytest.raises(InputError, match="is neither one of squared"):
        bf.Problem(loss, *entries(bf.losses.Squared()))
