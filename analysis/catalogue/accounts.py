"""`account` and `calibrate`: what anything in the registry reveals, and the parameters with which it keeps to a budget."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...arguments import check_listed
from ...design.contracts.gaussian import l2_radius
from ...design.contracts.registry import Accountable, Accounted, AccountReport, Target, check_pairs, check_values
from ...design.contracts.task import Task
from ...shown import GREY, Shown
from ...solvers.accounting.renyi_curve import check_delta
from ...solvers.accounting.sampling import Sampling
from .registry import REGISTRY, accountables

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Shown):
    """Parameters that keep to a target, and the report that they give; `report.subject.details` has them by name.

    The report is recomputed from the parameters. Its epsilon (by the target's method) is at most the target and, where it depends
    continuously on the parameters, less than 1e-6 below it.
    """

    name: str
    target: Target
    report: AccountReport

    @property
    def line(self) -> str:
        """The target and the report, in one line."""
        return f"target epsilon {self.target.epsilon:g}; {self.report.line}"

    def to_frame(self) -> "pd.DataFrame":
        """Return the report's accounts, as `PrivacyReport.to_frame`."""
        return self.report.to_frame()

    def draw(self, axes: "Axes") -> None:
        """Draw the report's accounts beside the target."""
        self.report.draw(axes)
        axes.axvline(self.target.epsilon, color=GREY, linestyle="--", label="target")
        axes.legend()

    @property
    def epsilon(self) -> float:
        """The proven epsilon of all rounds; infinite where nothing is proven."""
        return self.report.epsilon

    def __getitem__(self, name: str) -> Any:
        """Return a parameter that was found or given, by name."""
        return self.report.subject.details[name]

    @property
    def zero_squared_error(self) -> float | None:
        """The worst squared error of answering zero, which sends nothing; None where the ball of the vectors is not known."""
        return None if self.report.subject.ball is None else l2_radius(self.report.subject.ball) ** 2

    @property
    def lower_bound(self) -> float | None:
        """Bound on the worst squared error of one round of every mechanism for the target; errs downward.

        None where none is proven, or the ball or the number of clients is not known.
        """
        subject, target = self.report.subject, self.target
        entry = REGISTRY.get(self.name)
        if subject.ball is None or subject.clients is None or entry is None or entry.populations is not None:
            return None
        adjacency, rounds = self.report.privacy.adjacency, target.rounds
        task = Task(subject.ball, subject.clients, target.epsilon, target.delta, adjacency, rounds=rounds, sampling=target.sampling)
        return entry.lower_bound(task)

    def document(self) -> dict[str, Any]:
        """Return the calibration as JSON holds it."""
        beside = {"zero_squared_error": self.zero_squared_error, "lower_bound": self.lower_bound}
        return self.report.document() | beside | {"target_epsilon": self.target.epsilon, "target_method": self.target.method}


def account(
    name: str,
    *,
    delta: float | None = None,
    rounds: int = 1,
    adjacency: str | None = None,
    sampling: Sampling | None = None,
    **parameters: Any,
) -> AccountReport:
    """Return what a mechanism, a table or noise reveals after all rounds, by every account that there is.

    Parameters
    ----------
    name : str
        A mechanism of the registry, or ``"table"``, ``"vector"``, ``"binomial"``.
    delta : float or None
        Failure probability of all rounds together, above 0 and below 1; without it only pure guarantees say anything.
    rounds : int
        Number of rounds in which the same client takes part.
    adjacency : str or None
        Which data sets are neighbours; None for the only ones, or those that the sampling asks for, or the usual ones.
    sampling : PoissonSampling, FixedSizeSampling or None
        How the clients of a round are chosen, in secret.
    **parameters
        Those that `quietbits mechanisms NAME` lists.

    Raises
    ------
    ValueError
        If a name is not known, a value is missing or out of range, or two contradict each other, such as more clients than there are.
    InfeasibleError
        If no account says anything, though the mechanism is to keep a budget; the message has the reasons.

    Examples
    --------
    >>> report = account("gaussian", noise_multiplier=20.0, delta=1e-5, rounds=100)
    >>> round(report.epsilon, 4), report.privacy.best.name, round(report.epsilon_by("rdp"), 4)
    (1.9931, 'pld', 2.1659)
    """
    one = _named(name)
    failure = 0.0 if delta is None else check_delta(delta)
    values = check_values(name, one.parameters, parameters) | {"delta": failure}
    check_pairs(one.parameters, {**values, **_numbers(sampling)})
    report = _noted(name, one.account(values, adjacency, sampling)).report(failure, rounds, sampling)
    if not one.private:
        return report
    if delta is None and not any(math.isfinite(answer.bound.epsilon) for answer in report.privacy.accounts):
        raise ValueError(f"delta must be given for {name}, which has no pure guarantee: a number above 0 and below 1")
    report.privacy.check_anything_is_known()
    return report


def calibrate(
    name: str,
    *,
    epsilon: float,
    delta: float | None = None,
    rounds: int = 1,
    adjacency: str | None = None,
    sampling: Sampling | None = None,
    method: str | None = None,
    **given: Any,
) -> Calibration:
    """Return the parameters with which all rounds stay within (epsilon, delta); errs toward more privacy.

    Parameters
    ----------
    name, rounds, adjacency, sampling
        As in `account`.
    epsilon : float
        Privacy parameter of all rounds together, from 1e-5 to 10**4.
    delta : float or None
        Failure probability of all rounds together, above 0 and below 1; 0, or None, for what is built for a pure guarantee.
    method : str or None
        Name of the account that is to keep the target; None for the least of the proven ones.
    **given
        Parameters that are not to be found, such as ``clients``.

    Raises
    ------
    ValueError
        If a name is not known, there is nothing to find, or a value is missing or out of range.
    InfeasibleError
        If no parameters keep the target; the message says what is needed.

    Examples
    --------
    >>> found = calibrate("gaussian", epsilon=2.0, delta=1e-5, rounds=100)
    >>> round(found["noise_multiplier"], 3), 0 <= 2.0 - found.epsilon <= 1e-6
    (19.938, True)
    """
    one = _named(name)
    if one.solve is None:
        raise ValueError(
            f"mechanism must have parameters to calibrate, got {name!r}: design a table with quietbits design or calibrate vector"
        )
    if delta is None:
        if not one.pure:
            raise ValueError(f"delta must be given for {name}, which is not built for a pure guarantee: a number above 0 and below 1")
        delta = 0.0
    target = Target(epsilon, delta, rounds, adjacency, sampling, method)
    values = check_values(name, one.given, given)
    check_pairs(one.given, {**values, **_numbers(sampling)})
    subject = _noted(name, one.solve(target, values))
    return Calibration(name, target, subject.report(delta, rounds, sampling))


def _noted(name: str, subject: Accounted) -> Accounted:
    """Return what is accounted for with a note among the details if the guarantee is of real numbers; see `Entry.on_real_numbers`."""
    entry = REGISTRY.get(name)
    if entry is None or not entry.on_real_numbers:
        return subject
    return replace(subject, details={**subject.details, "on_real_numbers": True})


def _numbers(sampling: Sampling | None) -> dict[str, Any]:
    return {} if sampling is None else vars(sampling)


def _named(name: str) -> Accountable:
    known = accountables()
    check_listed("mechanism", name, known, "quietbits account --help")
    return known[name]
