"""Compositions as files: TOML in, parts out, each checked before any work begins."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...arguments import check_choice, check_integer, check_listed
from ...design.contracts.composition import MOST_PARTS, check_one_population
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.options import check_pairs, check_values
from ...design.contracts.privacy import Scalar
from ...files import MEGABYTE, read_toml
from ...solvers.accounting.renyi_curve import MOST_ROUNDS
from ...solvers.accounting.sampling import Sampling, stated_sampling
from ..catalogue.accounts import account_options
from ..catalogue.registry import accounted_names
from ..sweeps.specification import check_keys, read_blocks

SAMPLING_KEYS = ("sampling_probability", "population", "sample_size")


@dataclass(frozen=True)
class AccountedPart:
    """A mechanism of a composition, with its rounds.

    Attributes
    ----------
    name : str
        Name in `account`.
    parameters : tuple of (str, value)
        Its parameters, checked and complete.
    rounds : int
        Number of rounds in which the same client takes part, or may be drawn.
    sampling : PoissonSampling, FixedSizeSampling or None
        Secret choice of the clients of a round.
    adjacency : str or None
        Adjacency of its accounts; None for that of the composition, if it has one.

    Raises
    ------
    ValueError
        If the name is unknown, or a value is missing or out of range.

    Examples
    --------
    >>> AccountedPart.of("laplace", rounds=10, epsilon=0.1).parameters[0]
    ('epsilon', 0.1)
    """

    name: str
    parameters: tuple[tuple[str, Scalar], ...] = ()
    rounds: int = 1
    sampling: Sampling | None = None
    adjacency: str | None = None

    def __post_init__(self) -> None:
        """Check the part and complete its parameters."""
        check_listed("mechanism", self.name, accounted_names(), "quietbits account --help")
        check_integer("rounds", self.rounds, low=1, high=MOST_ROUNDS)
        if self.adjacency is not None:
            check_choice("adjacency", self.adjacency, ADJACENCIES)
        options = account_options(self.name)
        values = check_values(self.name, options, dict(self.parameters))
        check_pairs(options, values | ({} if self.sampling is None else vars(self.sampling)))
        object.__setattr__(self, "parameters", tuple(values.items()))

    @classmethod
    def of(
        cls, name: str, *, rounds: int = 1, sampling: Sampling | None = None, adjacency: str | None = None, **parameters: Scalar
    ) -> "AccountedPart":
        """Return a part with parameters by name."""
        return cls(name, tuple(parameters.items()), rounds, sampling, adjacency)


@dataclass(frozen=True)
class Composition:
    """Mechanisms whose privacy losses add up, at least one.

    Raises
    ------
    ValueError
        If there are too few or too many parts, or samples are drawn from different populations.
    """

    parts: tuple[AccountedPart, ...]

    def __post_init__(self) -> None:
        """Check the parts together."""
        if not 1 <= len(self.parts) <= MOST_PARTS:
            raise ValueError(f"parts must be from 1 to {MOST_PARTS}, got {len(self.parts)}")
        check_one_population([part.sampling for part in self.parts])


def load_composition(path: str | os.PathLike[str], most_bytes: int = MEGABYTE) -> Composition:
    """Read a composition from a TOML file of at most the given size.

    A ``DataError`` names the file, the part and the wrong key.
    """
    return read_toml(path, parse_composition, most_bytes)


def parse_composition(document: Mapping[str, Any]) -> Composition:
    """Return the composition that a TOML document describes.

    Parameters
    ----------
    document : mapping
        The document, as `tomllib` returns it: blocks ``[[part]]`` with a ``name``, the parameters of `account`, ``rounds``, ``adjacency``,
        and ``sampling_probability`` or ``population`` and ``sample_size``. A list makes a part of each of its values.

    Examples
    --------
    >>> blocks = [{"name": "laplace", "epsilon": 0.1, "rounds": 10}, {"name": "gaussian", "noise_multiplier": 5}]
    >>> [(part.name, part.rounds) for part in parse_composition({"part": blocks}).parts]
    [('laplace', 10), ('gaussian', 1)]
    """
    check_keys("a composition", document, ("part",))
    return Composition(tuple(read_blocks(document.get("part"), _read_part, MOST_PARTS, block_name="part")))


def _read_part(name: str, values: dict[str, Any]) -> AccountedPart:
    check_listed("mechanism", name, accounted_names(), "quietbits account --help")
    # Mechanisms that sample clients themselves have the population as a parameter.
    own = {option.name for option in account_options(name)}
    sampling_keys = () if "population" in own else SAMPLING_KEYS
    sampling = stated_sampling(*(values.get(key) for key in SAMPLING_KEYS)) if sampling_keys else None
    parameters = {key: value for key, value in values.items() if key not in ("rounds", "adjacency", *sampling_keys)}
    return AccountedPart(name, tuple(parameters.items()), values.get("rounds", 1), sampling, values.get("adjacency"))
