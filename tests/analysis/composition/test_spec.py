"""Files of compositions.

Points under test: what a file says, the example, and errors that name the part and the key.
"""

from pathlib import Path
from typing import Any

import pytest

from quietbits.analysis.composition.spec import AccountedPart, Composition, load_composition, parse_composition
from quietbits.analysis.sweeps.example import example_specification
from quietbits.errors import DataError
from quietbits.solvers.accounting.sampling import FixedSizeSampling, PoissonSampling

LAPLACE: dict[str, Any] = {"name": "laplace", "epsilon": 0.1}
GAUSSIAN: dict[str, Any] = {"name": "gaussian", "noise_multiplier": 5.0, "trust_model": "central"}


def test_a_file_lists_parts() -> None:
    composition = parse_composition(
        {
            "part": [
                {**LAPLACE, "rounds": 10},
                {**GAUSSIAN, "sampling_probability": 0.1, "adjacency": "add-or-remove-one"},
                {**GAUSSIAN, "population": 100, "sample_size": 10},
            ]
        }
    )
    laplace, poisson, fixed = composition.parts
    assert (laplace.name, laplace.rounds, laplace.sampling, laplace.adjacency) == ("laplace", 10, None, None)
    assert dict(laplace.parameters) == {"epsilon": 0.1, "dimension": 1, "norm": "1"}
    assert (poisson.sampling, poisson.adjacency, poisson.rounds) == (PoissonSampling(0.1), "add-or-remove-one", 1)
    assert fixed.sampling == FixedSizeSampling(100, 10)
    assert laplace == AccountedPart.of("laplace", rounds=10, epsilon=0.1)


def test_a_list_makes_a_part_of_each_value() -> None:
    parts = parse_composition({"part": [{**LAPLACE, "epsilon": [0.1, 0.2], "rounds": [1, 2]}]}).parts
    assert [(dict(part.parameters)["epsilon"], part.rounds) for part in parts] == [(0.1, 1), (0.1, 2), (0.2, 1), (0.2, 2)]


def test_a_population_may_be_a_parameter() -> None:
    training = {"name": "dp-rec", "clip_ratio": 0.1, "population": 1000, "clients_per_round": 10, "index_bits": 12}
    (part,) = parse_composition({"part": [training]}).parts
    assert (dict(part.parameters)["population"], part.sampling) == (1000, None)
    with pytest.raises(ValueError, match=r"\[\[part\]\] number 1: sample_size is not a parameter of dp-rec"):
        parse_composition({"part": [{**training, "sample_size": 10}]})


def test_the_example_is_a_composition(tmp_path: Path) -> None:
    (tmp_path / "tasks.toml").write_text(example_specification("composition"), encoding="utf-8")
    composition = load_composition(tmp_path / "tasks.toml")
    assert len({part.name for part in composition.parts}) == 3
    assert {type(part.sampling) for part in composition.parts} == {type(None), PoissonSampling}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"epsilon": 0.1}, "name is missing: state the name of a mechanism"),
        (
            {"name": "laplac", "epsilon": 0.1},
            "mechanism must be a name that quietbits account --help lists, got 'laplac': did you mean laplace",
        ),
        ({"name": 3}, "name must be that of a mechanism, got 3"),
        ({"name": "laplace"}, "epsilon is missing: laplace needs epsilon"),
        ({**LAPLACE, "epsilon": -1.0}, "epsilon must be a number from"),
        ({**LAPLACE, "clip": 1.0}, "clip is not a parameter of laplace"),
        ({**LAPLACE, "rounds": 0}, "rounds must be a whole number from 1 to"),
        ({**LAPLACE, "rounds": []}, "rounds must have at least one value, got none"),
        ({**LAPLACE, "adjacency": "both"}, "adjacency must be one of replace-one, add-or-remove-one, got 'both'"),
        ({**GAUSSIAN, "sampling_probability": 2.0}, "sampling_probability must be a number from"),
        (
            {**GAUSSIAN, "sampling_probability": 0.5, "population": 9},
            "sampling_probability must be left out with population or sample_size",
        ),
        ({**GAUSSIAN, "population": 9}, "population and sample_size must be given together"),
        ({**GAUSSIAN, "population": 9, "sample_size": 10}, "sample_size must be a whole number from 1 to 9, got 10"),
    ],
)
def test_errors_name_the_part(part: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^\[\[part\]\] number 2: {message}"):
        parse_composition({"part": [LAPLACE, part]})


def test_files_that_are_no_compositions(tmp_path: Path) -> None:
    for text, message in (
        ("", r"part must be written as one or more blocks \[\[part\]\], got None"),
        ("part = 3", r"part must be written as one or more blocks \[\[part\]\], got 3"),
        ("delta = 1e-6", "delta is not a key of a composition: it has part"),
        ("[[part]", "the file is not TOML"),
    ):
        (tmp_path / "tasks.toml").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=f"tasks.toml: {message}"):
            load_composition(tmp_path / "tasks.toml")


def test_parts_are_checked_together() -> None:
    fixed = [{**GAUSSIAN, "population": population, "sample_size": 10} for population in (100, 200)]
    with pytest.raises(ValueError, match="population must be the same for all sampled parts, got 100 for part 1 and 200 for part 2"):
        parse_composition({"part": fixed})
    with pytest.raises(ValueError, match="parts must be from 1 to 1000, got 0"):
        Composition(())
    with pytest.raises(ValueError, match="number of combinations must be a whole number from 1 to 1000, got 1001"):
        parse_composition({"part": [{**LAPLACE, "rounds": list(range(1, 1002))}]})
