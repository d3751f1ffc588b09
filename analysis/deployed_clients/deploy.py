"""`deploy`: the deployment of a mechanism of the registry that keeps a budget, or of a table."""

import os
from typing import Any

from ...arguments import check_listed
from ...design.contracts.registry import REAL_NUMBERS, check_pairs, check_values, usual_adjacency
from ...design.contracts.task import Budget
from ...design.deployment.deployment import Deployment
from ...design.tables.file import read_table
from ...design.tables.table_mean import TableMeanMechanism
from ...errors import InfeasibleError
from ..catalogue.accounts import plans_dropouts
from ..catalogue.registry import REGISTRY


def deploy(
    mechanism: str,
    *,
    epsilon: float,
    delta: float = 0.0,
    rounds: int = 1,
    adjacency: str | None = None,
    dropout: float = 0.0,
    name: str | None = None,
    valid_until: str | None = None,
    supersedes: str | None = None,
    **given: Any,
) -> Deployment:
    """Return the deployment of a mechanism that keeps a budget: the mechanism of `calibrate` with the same arguments.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism in the registry.
    epsilon, delta, rounds, adjacency, dropout
        Budget of all rounds together, as in `calibrate`.
    name, valid_until, supersedes
        Fields of `Deployment`.
    **given
        Size of the inputs and design choices, as in `calibrate`.

    Raises
    ------
    InfeasibleError
        If no parameters keep the budget, or the mechanism has no clients in other languages, such as a reference on real numbers.

    Examples
    --------
    >>> deployment = deploy("subset-selection", epsilon=2.0, categories=20, name="browser")
    >>> deployment.program.message_bits, deployment.epsilon
    (8, 2.0)
    """
    check_listed("mechanism", mechanism, list(REGISTRY), "quietbits deploy --help")
    entry = REGISTRY[mechanism]
    if entry.on_real_numbers:
        raise InfeasibleError(f"mechanism must be released as it is, got {mechanism}: {REAL_NUMBERS}")
    values = check_values(mechanism, entry.calibration_options, given)
    check_pairs(entry.calibration_options, values)
    neighbours = usual_adjacency(adjacency, None, entry.adjacencies)
    if dropout and not plans_dropouts(mechanism):
        raise ValueError(f"dropout must be 0 for {mechanism}, whose guarantee does not depend on the number of clients, got {dropout}")
    task = entry.task_of(values, Budget(epsilon, delta, neighbours, rounds, dropout=dropout))
    built = entry.mechanism_for(task, {option.name: values[option.name] for option in entry.options})
    return Deployment(built, mechanism, rounds, delta, name, valid_until, supersedes)


def deploy_table(
    table: str | os.PathLike[str],
    *,
    rounds: int = 1,
    name: str | None = None,
    valid_until: str | None = None,
    supersedes: str | None = None,
) -> Deployment:
    """Return the deployment of a lookup table's file, whose clients hold numbers of its interval.

    Each of the rounds spends the table's realised epsilon. Raises ``TableError`` if the table does not verify.
    """
    verified = read_table(table)
    return Deployment(TableMeanMechanism(verified), verified.mechanism, rounds, 0.0, name, valid_until, supersedes)
