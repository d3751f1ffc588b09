"""Functions `account` and `calibrate`, for the privacy loss and parameters of entries."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...arguments import check_listed
from ...design.contracts.gaussian import l2_radius
from ...design.contracts.guarantee import JOINT_MODELS
from ...design.contracts.registry import AccountReport, AccountSubject, Option, Values, check_pairs, check_values, usual_adjacency
from ...design.contracts.task import Budget
from ...progress import OnStep, reporting, silent
from ...shown import GREY, Shown
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.accounting.sampling import Sampling
from .registry import NOISE, REGISTRY, accounted_names

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Shown):
    """Parameters that keep a budget, and their report.

    `report.subject.details` has the values of the parameters. The report is that of the mechanism that `build_mechanism` returns for the
    same task. Its epsilon, by the budget's method, is at most the budget's and, if it depends continuously on the parameters, usually less
    than 1e-6 below it.

    Attributes
    ----------
    name : str
        Name of the mechanism or noise.
    budget : Budget
        Budget of all rounds together.
    report : AccountReport
        The accounts.
    """

    name: str
    budget: Budget
    report: AccountReport

    @property
    def summary(self) -> str:
        """The budget and the report, in one line."""
        return f"budget epsilon {self.budget.epsilon:g}; {self.report.summary}"

    def to_frame(self) -> "pd.DataFrame":
        """Return the report's accounts as a table, as `PrivacyReport.to_frame` does."""
        return self.report.to_frame()

    def draw(self, axes: "Axes") -> None:
        """Draw the report's accounts and the budget."""
        self.report.draw(axes)
        axes.axvline(self.budget.epsilon, color=GREY, linestyle="--", label="budget")
        axes.legend()

    @property
    def epsilon(self) -> float:
        """The proven epsilon of all rounds; infinite without a proof."""
        return self.report.epsilon

    def __getitem__(self, name: str) -> Any:
        """Return a calibrated or given parameter by name."""
        return self.report.subject.details[name]

    @property
    def zero_squared_error(self) -> float | None:
        """Worst squared error of the estimate zero; None if the ball of the vectors is unknown."""
        return None if self.report.subject.ball is None else l2_radius(self.report.subject.ball) ** 2

    @property
    def lower_bound(self) -> float | None:
        """Lower bound on the worst squared error of one round; None without a proven bound."""
        entry, task = REGISTRY.get(self.name), self.report.subject.task
        return None if entry is None or task is None or entry.populations is not None else entry.lower_bound(task)

    def document(self) -> dict[str, Any]:
        """Return the calibration as a JSON document."""
        beside = {"zero_squared_error": self.zero_squared_error, "lower_bound": self.lower_bound}
        return self.report.document() | beside | {"target_epsilon": self.budget.epsilon, "target_method": self.budget.method}


def account(
    name: str,
    *,
    delta: float | None = None,
    rounds: int = 1,
    adjacency: str | None = None,
    sampling: Sampling | None = None,
    on_step: OnStep = silent,
    **parameters: Any,
) -> AccountReport:
    """Return the privacy loss of a mechanism, table or noise after all rounds, by every account.

    Parameters
    ----------
    name : str
        A mechanism of the registry, or ``"table"``, ``"vector"``, ``"binomial"``.
    delta : float or None
        Failure probability of all rounds together, above 0 and below 1; without it only pure guarantees are finite.
    rounds : int
        Number of rounds in which the same client takes part.
    adjacency : str or None
        Adjacency; None for the only adjacency, the sampling's adjacency, or the usual adjacency.
    sampling : PoissonSampling, FixedSizeSampling or None
        Secret choice of the clients of a round.
    on_step : callable
        ``on_step(done, total, text)``, called before each account and at the end.
    **parameters
        Parameters that `quietbits mechanisms NAME` lists.

    Raises
    ------
    ValueError
        If a name is unknown, a value is missing or out of range, or two values contradict each other, such as more clients of a round than
        clients.
    InfeasibleError
        If every account is infinite, though the mechanism must keep a budget; the message has the reasons.

    Examples
    --------
    >>> report = account("gaussian", noise_multiplier=20.0, delta=1e-5, rounds=100)
    >>> round(report.epsilon, 4), report.privacy.best.name, round(report.epsilon_by("rdp"), 4)
    (1.9931, 'pld', 2.1659)
    """
    check_listed("mechanism", name, accounted_names(), "quietbits account --help")
    failure = 0.0 if delta is None else check_delta(delta)
    subject = account_subject(name, parameters, failure, adjacency, sampling)
    report = AccountReport(subject, subject.privacy.report(failure, subject.adjacency, rounds, sampling, on_step=on_step))
    if name in REGISTRY and not REGISTRY[name].private:
        return report
    if delta is None and not any(math.isfinite(answer.bound.epsilon) for answer in report.privacy.accounts):
        raise ValueError(f"delta must be given for {name}, which has no pure guarantee: a number above 0 and below 1")
    report.privacy.check_anything_is_known()
    return report


def account_subject(
    name: str, parameters: Values, delta: float, adjacency: str | None = None, sampling: Sampling | None = None
) -> AccountSubject:
    """Return the accounting subject of a mechanism, a table or noise.

    Arguments are those of `account`.
    """
    options = account_options(name)
    values = check_values(name, options, parameters) | {"delta": delta}
    check_pairs(options, {**values, **_numbers(sampling)})
    return (NOISE if name in NOISE else REGISTRY)[name].account(values, adjacency, sampling)


def account_options(name: str) -> tuple[Option, ...]:
    """Return the parameters of `account` for a name."""
    return NOISE[name].parameters if name in NOISE else REGISTRY[name].account_options


def calibration_options(name: str) -> tuple[Option, ...]:
    """Return the options of `calibrate` for a name, without the budget."""
    return NOISE[name].given if name in NOISE else REGISTRY[name].calibration_options


def calibrates(name: str) -> bool:
    """Return whether a name has parameters to calibrate."""
    return NOISE[name].solve is not None if name in NOISE else name in REGISTRY and REGISTRY[name].private


def plans_dropouts(name: str) -> bool:
    """Return whether the mechanism's guarantee depends on the number of clients, so that `calibrate` takes a dropout."""
    return name in REGISTRY and REGISTRY[name].trust_model in JOINT_MODELS


def keeps_pure_budgets(name: str) -> bool:
    """Return whether `calibrate` keeps a budget whose delta is 0."""
    if name in NOISE:
        return NOISE[name].pure
    return REGISTRY[name].builds_pure


def calibrate(
    name: str,
    *,
    epsilon: float,
    delta: float | None = None,
    rounds: int = 1,
    adjacency: str | None = None,
    sampling: Sampling | None = None,
    method: str | None = None,
    dropout: float = 0.0,
    on_step: OnStep = silent,
    **given: Any,
) -> Calibration:
    """Return parameters with which all rounds keep to (epsilon, delta), rounded toward privacy.

    Parameters
    ----------
    name, rounds, adjacency, sampling
        Name, number of rounds, adjacency and sampling, as in `account`.
    epsilon : float
        Privacy parameter of all rounds together, from 1e-5 to 10**4.
    delta : float or None
        Failure probability of all rounds together, above 0 and below 1; 0, or None, for mechanisms with a pure guarantee.
    method : str or None
        Name of the account that must keep the budget; None for the smallest proven epsilon.
    dropout : float
        Largest share of the clients that may drop out (`Budget`); 0 for mechanisms whose guarantee does not depend on their number.
    on_step : callable
        ``on_step(done, total, text)``, called after each evaluation of the searches for parameters; totals are bounds or estimates, which
        fall.
    **given
        Fixed parameters, such as ``clients``.

    Raises
    ------
    ValueError
        If a name is unknown, no parameter is free, or a value is missing or out of range.
    InfeasibleError
        If no parameters keep the budget; the message states the requirement.

    Examples
    --------
    >>> calibration = calibrate("gaussian", epsilon=2.0, delta=1e-5, rounds=100)
    >>> round(calibration["noise_multiplier"], 3), 0 <= 2.0 - calibration.epsilon <= 1e-6
    (19.938, True)
    """
    check_listed("mechanism", name, accounted_names(), "quietbits account --help")
    if not calibrates(name):
        raise ValueError(
            f"mechanism must have parameters to calibrate, got {name!r}: design a table with quietbits design or calibrate vector"
        )
    if delta is None:
        if not keeps_pure_budgets(name):
            raise ValueError(f"delta must be given for {name}, which is not built for a pure guarantee: a number above 0 and below 1")
        delta = 0.0
    values = check_values(name, calibration_options(name), given)
    check_pairs(calibration_options(name), {**values, **_numbers(sampling)})
    neighbours = _usual_adjacency(name, values, sampling, method) if adjacency is None else adjacency
    budget = Budget(epsilon, delta, neighbours, rounds, sampling, method, dropout)
    if dropout and not plans_dropouts(name):
        raise ValueError(f"dropout must be 0 for {name}, whose guarantee does not depend on the number of clients, got {dropout}")
    with reporting(on_step):
        if name in NOISE:
            noise = NOISE[name]
            assert noise.solve is not None  # noqa: S101 - what `calibrates` says
            subject = noise.account({**values, **noise.solve(budget, values), "delta": delta}, budget.adjacency, sampling)
        else:
            subject = REGISTRY[name].calibrate(budget, values)
    return Calibration(name, budget, subject.report(delta, rounds, sampling))


def _usual_adjacency(name: str, values: dict[str, Any], sampling: Sampling | None, method: str | None) -> str:
    """Return the sampling's or the method's adjacency, or the mechanism's usual adjacency."""
    noise = NOISE[name] if name in NOISE else REGISTRY[name].noise
    if noise is not None and (noise.offered is not None or noise.adjacencies):
        return noise.usual_adjacency(values, sampling, method)
    if name not in REGISTRY:
        return "replace-one"
    # A server that sees each message sees its sender, so building refuses the sampling.
    chosen = None if REGISTRY[name].trust_model == "local" else sampling
    return usual_adjacency(None, chosen, REGISTRY[name].adjacencies)


def _numbers(sampling: Sampling | None) -> dict[str, Any]:
    return {} if sampling is None else vars(sampling)
