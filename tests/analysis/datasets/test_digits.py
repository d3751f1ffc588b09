"""Tests of digits among clients.

Points under test: data are the same for every caller and order of requests, and recognisable after deformation.
"""

import itertools
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from quietbits.analysis.datasets.deformation import NUMBERS, Deformation, deformed
from quietbits.analysis.datasets.endless_images import counted_uniforms
from quietbits.analysis.datasets.federated_data import Cohort, FederatedData
from quietbits.analysis.datasets.named_data import digits_data
from quietbits.analysis.simulation import digit_gradients

MANY = 25_000_000


def sorted_rows(inputs: np.ndarray, labels: np.ndarray) -> list[tuple[float, ...]]:
    return sorted(tuple(row) for row in np.column_stack([inputs, labels]))


def assert_same(result: Cohort, data: FederatedData, clients: list[int]) -> None:
    alone = [data.client_examples(client) for client in clients]
    assert result.sizes.tolist() == [len(item) for item in alone]
    assert (result.examples.inputs == np.concatenate([item.inputs for item in alone])).all()
    assert (result.examples.labels == np.concatenate([item.labels for item in alone])).all()


@pytest.mark.parametrize("file", [digit_gradients.DIGITS_FILE, "sklearn/somewhere/else"])
def test_the_images_are_those_that_scikit_learn_loads(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digit_gradients, "DIGITS_FILE", file)
    # The unwrapped function loads the data without the cache, as a new process does.
    result, whole = digit_gradients.digits.__wrapped__(), load_digits()
    np.testing.assert_array_equal(result.images, whole.data / 16)
    np.testing.assert_array_equal(result.labels, whole.target)


def test_dealt_out_every_image_is_somebodys_once_and_the_rest_is_the_test() -> None:
    data = digits_data(100, seed=3)
    whole = load_digits()
    every = data.cohort(np.arange(100))
    inputs, labels = (np.concatenate([getattr(every.examples, name), getattr(data.test, name)]) for name in ("inputs", "labels"))
    assert sorted_rows(inputs, labels) == sorted_rows(whole.data / 16, whole.target)
    assert set(every.sizes) == {14, 15}
    shares = np.bincount(data.test.labels) / np.bincount(whole.target)
    assert shares.min() > 0.19
    assert shares.max() <= 0.2


@pytest.mark.parametrize("options", [{}, {"split": "dirichlet", "alpha": 0.3}, {"samples": 3}, {"split": "dirichlet", "samples": 3}])
def test_a_client_has_the_same_examples_in_any_company(options: dict) -> None:
    clients = MANY if "samples" in options else 50
    chosen = [clients - 1, 7, 7, 0]
    for population in (clients, clients + 1) if "samples" in options else (clients,):
        data = digits_data(population, seed=1, **options)
        assert_same(data.cohort(chosen), data, chosen)
        assert_same(data.cohort(chosen[1:]), digits_data(clients, seed=1, **options), chosen[1:])
    other = digits_data(clients, seed=2, **options)
    assert (other.client_examples(7).inputs[:3] != data.client_examples(7).inputs[:3]).any()


def test_as_many_clients_as_are_wanted_have_images_of_their_own() -> None:
    data = digits_data(MANY, seed=0)
    result = data.cohort(np.arange(MANY - 4000, MANY)).examples
    assert len(np.unique(result.inputs, axis=0)) == 4000
    assert result.inputs.min() >= 0
    assert result.inputs.max() <= 1
    assert np.bincount(result.labels).tolist() == pytest.approx([400] * 10, abs=100)


def test_memory_does_not_grow_with_the_clients() -> None:
    digits_data(1, seed=0)
    tracemalloc.start()
    assert len(digits_data(10**9, seed=0).cohort(np.arange(10**9 - 100, 10**9)).examples) == 100
    assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    tracemalloc.stop()


def test_deformed_digits_can_still_be_read_and_teach_what_digits_look_like() -> None:
    data = digits_data(MANY, seed=0)
    real, drawn = digits_data(1, seed=0).client_examples(0), data.cohort(np.arange(4000)).examples
    assert KNeighborsClassifier(1).fit(real.inputs, real.labels).score(drawn.inputs, drawn.labels) > 0.8
    assert KNeighborsClassifier(1).fit(drawn.inputs, drawn.labels).score(data.test.inputs, data.test.labels) > 0.95


def test_dirichlet_shares_have_their_alpha() -> None:
    for alpha in (0.05, 1.0, 100.0):
        dealt = digits_data(3000, seed=0, split="dirichlet", alpha=alpha, samples=50).cohort(np.arange(150))
        shares = np.stack([np.bincount(item, minlength=10) for item in dealt.examples.labels.reshape(150, 50)]) / 50
        # The mean sum of squared shares is (1 + alpha) / (1 + 10 alpha), and 50 draws of labels add their own variance.
        exact = (1 + alpha) / (1 + 10 * alpha)
        assert (shares**2).sum(axis=1).mean() == pytest.approx(exact + (1 - exact) / 50, rel=0.1)


def test_nothing_deformed_is_the_image_and_parts_of_a_deformation_are_what_they_say() -> None:
    image = np.random.default_rng(0).random((1, 6, 9))
    still = Deformation(degrees=0.0, scale=0.0, shift=0.0, bend=0.0)
    uniforms = np.random.default_rng(1).random((1, NUMBERS))
    assert deformed(image, uniforms, still) == pytest.approx(image, abs=1e-12)
    # The largest uniform numbers give the full rotation, or the full shift.
    ends = np.full((1, NUMBERS), 1.0)
    square = image[:, :, :6]
    turned = deformed(square, ends, Deformation(degrees=90.0, scale=0.0, shift=0.0, bend=0.0))
    assert turned[0] == pytest.approx(np.rot90(square[0], k=-1), abs=1e-9)
    shifted = deformed(image, ends, Deformation(degrees=0.0, scale=0.0, shift=2.0, bend=0.0))
    assert shifted[0, :4, :7] == pytest.approx(image[0, 2:, 2:], abs=1e-12)
    assert (shifted[0, 4:] == 0).all()
    assert (shifted[0, :, 7:] == 0).all()
    # Equal displacements of all knots shift the whole image.
    bent = deformed(image, ends, Deformation(degrees=0.0, scale=0.0, shift=0.0, bend=2.0))
    assert bent == pytest.approx(shifted, abs=1e-9)


def test_counted_numbers_are_uniform_and_unrelated() -> None:
    numbers = counted_uniforms(5, "test", np.arange(20_000), 4)
    # The test counts pairs of columns in a 10 by 10 grid: chi-square with 99 degrees of freedom exceeds 160 with probability 1e-4.
    for first, other in itertools.combinations(range(4), 2):
        cells = np.bincount((numbers[:, first] * 10).astype(int) * 10 + (numbers[:, other] * 10).astype(int), minlength=100)
        assert ((cells - 200) ** 2 / 200).sum() < 160
    # The numbers of successive clients are also independent.
    cells = np.bincount((numbers[:-1, 0] * 10).astype(int) * 10 + (numbers[1:, 0] * 10).astype(int), minlength=100)
    assert ((cells - 200) ** 2 / 200).sum() < 160
    assert (counted_uniforms(5, "other", np.arange(10), 4) != numbers[:10]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: digits_data(0, 0), "clients must be a whole number from 1 to 1000000000, got 0"),
        (lambda: digits_data(5, 0, split="writer"), "split must be one of iid, dirichlet, got 'writer'"),
        (lambda: digits_data(5, 0, alpha=0.0), "alpha must be a number from 0.01 to 1e+06, got 0.0"),
        (lambda: digits_data(5, 0, samples=0), "samples must be a whole number from 1 to 10000, got 0"),
        (lambda: digits_data(5, 0).client_examples(5), "client must be a whole number from 0 to 4, got 5"),
        (lambda: digits_data(5, 0, samples=1).client_examples(-1), "client must be a whole number from 0 to 4, got -1"),
        (lambda: digits_data(5, 0).cohort([0, 5]), "client must be a whole number from 0 to 4, got 5"),
        (lambda: digits_data(5, 0).cohort([0.5]), "clients must be a list of whole numbers, got an array of float64 of shape (1,)"),
        (lambda: digits_data(5, 0).cohort([]), "clients must be a list of whole numbers, got an array of float64 of shape (0,)"),
        (lambda: Deformation(degrees=181.0), "degrees must be a number from 0 to 180, got 181.0"),
        (lambda: Deformation(bend=-1.0), "bend must be a number from 0 to 8, got -1.0"),
    ],
)
def test_a_bad_argument_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        call()
    assert str(raised.value) == message
