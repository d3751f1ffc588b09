"""Conformance trials of the mechanisms of quietbits.

The trials have cheap options, and exceptions for single mechanisms.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tiny_sketches import ITEM_SKETCHES, SKETCHES, SKETCHES_OF_ONE

from quietbits.analysis.conformance import mechanism_cases
from quietbits.analysis.conformance.mechanism_cases import Case, Trial
from quietbits.design.contracts.registry import Entry, Values

# Options that make an entry cheap; the other options have their defaults.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "mvu": {"bits_in": 2, "bits_out": 1, "metric": "l1"},
    "bitwise-randomised-response": {"bits": 2},
    "generalised-randomised-response": {"bits": 2},
    "minimal-random-coding": {"message_bits": 5},
    "minimal-random-coding-plain": {"message_bits": 5},
    "projunit": {"projected": 2},
    "fast-projunit": {"projected": 2},
    "shuffled-mvu": {"bits_in": 2, "bits_out": 3},
    "shuffled-randomised-response": {"bits": 2},
    "cpsgd": {"bits": 10},
    "poisson-binomial": {"bits": 4},
    "distributed-discrete-laplace": {"bits": 9},
    "split-and-mix": {"bits": 250},
    "central-gaussian": {"bits": 8},
    "exact-histogram": {"code": "identity"},
    "subsampled-gaussian": {"coordinate_share": 0.9},
    **SKETCHES,
    **ITEM_SKETCHES,
}
# Options that make an entry cheap for 200 clients.
OPTIONS_OF_MANY: Mapping[str, Mapping[str, Any]] = {"cpsgd": {"bits": 14}, "poisson-binomial": {"bits": 9}}
# Parameters that calibration needs and a task lacks; a number is a vector of one coordinate.
GIVEN: Mapping[str, Mapping[str, Any]] = {
    "dp-rec": {"population": 1000, "clients_per_round": 10, "index_bits": 42},
}
# Mechanisms whose error may grow with the bits. Finer tables have more pairs of inputs to hide, SQKR's randomised response has more
# symbols, and plain random coding reveals more with more candidates.
MORE_BITS_MAY_COST = (
    *("mvu", "bitwise-randomised-response", "generalised-randomised-response", "sqkr"),
    *("minimal-random-coding-plain", "shuffled-mvu", "shuffled-randomised-response"),
)
# Mechanisms that code messages one after the other, or solve a program to decode.
SLOW = (
    *("dp-rec", "minimal-random-coding", "minimal-random-coding-plain"),
    *("poisson-private-representation", "projunit", "fast-projunit", "rotating-simplex"),
    *("sparse-discrete-gaussian", "sparse-discrete-gaussian-frequencies"),
)
# Least shares of epsilon that an audit measures, if they are below a third. The guarantee is then a bound, or holds for the worst public
# points, or the audit uses only one direction of several coordinates.
AUDITED_SHARES = {
    "dp-rec": 0.15,
    "poisson-private-representation": 0.15,
    "sketched-poisson-binomial": 0.05,
    "sparse-discrete-gaussian": 0.2,
    "sparse-discrete-gaussian-frequencies": 0.15,
    "sketched-discrete-gaussian-frequencies": 0.25,
    "sketched-skellam-frequencies": 0.15,
    "exact-histogram": 0.3,
}
# Columns of messages that hold public randomness, which costs no bits.
SEEDED = ("minimal-random-coding", "minimal-random-coding-plain", "projunit", "fast-projunit", "rotating-simplex")
# Number of releases in the audit of a trusted server, which draws the noise of each release with a key of its own.
KEYED_REPETITIONS = 8000
# The last words of a message to a trusted server are a share of its own random numbers, which it needs nobody to send.
KEYED = ("central-gaussian", "central-laplace", "central-discrete-laplace", "central-staircase", "subsampled-gaussian")
PUBLIC_COLUMNS = {
    "sqkr": slice(None, -1),
    "recursive-hadamard-response": slice(1),
    **dict.fromkeys(SEEDED, slice(1)),
    **dict.fromkeys(KEYED, slice(-4, None)),
}


def of_account(mechanism: Any) -> Values:
    """Return the parameters of DP-REC's account, which is the account of a training."""
    return {"clip_ratio": mechanism.clip_ratio, "population": 1, "clients_per_round": 1, "index_bits": sum(mechanism.layout.group_bits)}


def trial_of(entry: Entry) -> Trial:
    """Return the conformance trial of a mechanism."""
    name = entry.name
    return Trial(
        options=OPTIONS.get(name, {}),
        options_of_many=OPTIONS_OF_MANY.get(name, {}),
        options_of_two=SKETCHES_OF_ONE.get(name, {}),
        given=GIVEN.get(name, {}),
        of_account=of_account if name == "dp-rec" else lambda _: {},
        more_bits_may_cost=name in MORE_BITS_MAY_COST,
        slow=name in SLOW,
        repetitions=KEYED_REPETITIONS if name in KEYED else None,
        audited_share=AUDITED_SHARES.get(name, Trial.audited_share),
        public_columns=PUBLIC_COLUMNS.get(name, slice(0)),
    )


def cases_of(entry: Entry) -> list[Case]:
    """Return the conformance cases of a mechanism."""
    return mechanism_cases.cases_of(entry, trial_of(entry))


def one_adjacency(entry: Entry) -> list[Case]:
    """Return a conformance case for each domain of a mechanism, with a single adjacency."""
    return mechanism_cases.one_adjacency(entry, trial_of(entry))


def cases(entries: Iterable[Entry]) -> list[Case]:
    """Return the conformance cases of several mechanisms."""
    return [case for entry in entries for case in cases_of(entry)]
