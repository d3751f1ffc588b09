"""The account of a composition: the privacy of all its parts together, and what each part assumes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...arguments import check_choice
from ...design.contracts.composition import compose, proven_adjacencies
from ...design.contracts.guarantee import ADJACENCIES
from ...design.contracts.privacy import PrivacyReport, Scalar
from ...design.contracts.registry import AccountReport, AccountSubject
from ...errors import InfeasibleError
from ...progress import OnStep, reporting, silent
from ...shown import Shown
from ...solvers.accounting.renyi_curve import check_delta
from ..catalogue.accounts import account_subject
from ..catalogue.registry import NOISE, REGISTRY
from .spec import AccountedPart, Composition

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes

REPLACE, _ = ADJACENCIES
ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "local": "no party is trusted: the server sees each message and its sender",
        "shuffled": "the server sees the messages without their senders, and{clients} draw theirs by the protocol",
        "secure-sum": "the server sees only the sum of a round, in which{clients} add their noise: epsilon is larger if some drop out",
        "central": "the server is trusted: others see what it releases",
    }
)


@dataclass(frozen=True, eq=False)
class PartReport:
    """A part of a composition by itself.

    Attributes
    ----------
    part : AccountedPart
        The part.
    subject : AccountSubject
        Its mechanism.
    privacy : PrivacyReport
        Its accounts after its own rounds, at the failure probability of the composition, for its own adjacency.
    adjacency : str
        Adjacency of the composition.
    """

    part: AccountedPart
    subject: AccountSubject
    privacy: PrivacyReport
    adjacency: str

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Conditions of the part's guarantee: trust, drop-outs, sampling, adjacency and accounts that do not count."""
        clients = " the clients" if self.subject.clients is None else f" all {self.subject.clients} clients"
        stated = [ASSUMPTIONS[self.privacy.trust_model].format(clients=clients)]
        if self.part.sampling is not None:
            stated.append(
                "nobody but the server learns who was sampled" if self.privacy.trust_model == "central" else "the sample is secret"
            )
        if self.privacy.adjacency != self.adjacency:
            stated.append(f"{self.privacy.adjacency} adjacency, counted for {self.adjacency} adjacency at twice the distance")
        if "on_real_numbers" in self.subject.details:
            stated.append("messages are real numbers: floating-point messages reveal more")
        for account in self.privacy.accounts:
            if not account.proven:
                stated.append(f"{account.name} does not count: it is not proven")
            elif account.assumes is not None:
                stated.append(f"{account.name} does not count: it assumes that {account.assumes}")
        return tuple(stated)

    def document(self) -> dict[str, Any]:
        """Return the part as a JSON document, with null for infinity."""
        document = self.privacy.document()
        del document["accounts"]
        head = {"name": self.part.name, "mechanism": self.subject.mechanism, "bits_per_client": self.subject.bits_per_client}
        return (
            head
            | {"parameters": {name: _plain(value) for name, value in self.part.parameters}}
            | document
            | {"assumptions": list(self.assumptions)}
        )


@dataclass(frozen=True, eq=False, repr=False)
class CompositionReport(Shown):
    """The privacy of a composition, by every account.

    Attributes
    ----------
    account : AccountReport
        The accounts of all parts together; its rounds are those of all parts.
    parts : tuple of PartReport
        Each part by itself.
    """

    account: AccountReport
    parts: tuple[PartReport, ...]

    @property
    def summary(self) -> str:
        """One line with the parts' number and the guarantee."""
        return self.account.summary

    def to_frame(self) -> "pd.DataFrame":
        """Return a data frame with one row per account, as `PrivacyReport.to_frame`."""
        return self.account.to_frame()

    def draw(self, axes: "Axes") -> None:
        """Draw epsilon by every account, as `PrivacyReport.draw`."""
        self.account.draw(axes)

    @property
    def privacy(self) -> PrivacyReport:
        """The accounts of all parts together."""
        return self.account.privacy

    @property
    def epsilon(self) -> float:
        """Upper bound on epsilon by the least proven account, infinite without such an account."""
        return self.account.epsilon

    def document(self) -> dict[str, Any]:
        """Return the report as a JSON document, with null for infinity."""
        return self.account.document() | {"parts": [part.document() for part in self.parts]}


def account_composition(
    composition: Composition, *, delta: float | None = None, adjacency: str | None = None, on_step: OnStep = silent
) -> CompositionReport:
    """Return the privacy of all parts of a composition together, by every account of `compose`.

    Parameters
    ----------
    composition : Composition
        The parts.
    delta : float or None
        Failure probability of all parts together, above 0 and below 1; without it only pure guarantees are finite.
    adjacency : str or None
        Adjacency of the guarantee; None for the one that all parts have, or for replace-one. Parts that state no adjacency have this one if
        their mechanism has it; others of add-or-remove-one adjacency count at twice the distance.
    on_step : callable
        ``on_step(done, total, text)``, called before each account of each part, and of all parts together, and at the end.

    Raises
    ------
    ValueError
        If a value is out of range; the message names the part.
    InfeasibleError
        If a part has no guarantee that counts for the adjacency, or every account is infinite.

    Examples
    --------
    >>> mean, training = AccountedPart.of("laplace", rounds=5, epsilon=0.1), AccountedPart.of("gaussian", rounds=20, noise_multiplier=10.0)
    >>> report = account_composition(Composition((mean, training)), delta=1e-6)
    >>> round(report.epsilon, 4), report.privacy.best.name, report.privacy.rounds
    (2.2196, 'pld', 25)
    """
    failure = 0.0 if delta is None else check_delta(delta)
    subjects, target = _subjects(composition.parts, failure, adjacency)
    together = _together(composition.parts, subjects, target)
    # Each account of all parts together takes about as long as an account of each part.
    before, each = sum(len(subject.privacy.accounts) for subject in subjects), len(subjects)
    total, furthest = before + each * len(together.privacy.accounts), 0

    def report_reached(done: int, text: str) -> None:
        nonlocal furthest
        furthest = max(furthest, done)
        on_step(furthest, total, text)

    parts = _parts(composition.parts, subjects, failure, target, report_reached)
    first = before

    def report_account(done: int, _: int, text: str) -> None:
        nonlocal first
        first = before + each * done
        report_reached(first, f"{text} of all parts")

    with reporting(lambda done, steps, text: report_reached(first + each * done // steps, text)):
        report = _reported(together, composition.parts, failure, report_account)
    report_reached(total, "done")
    if delta is None and math.isinf(report.epsilon):
        raise ValueError("delta must be given for parts without a pure guarantee: a number above 0 and below 1")
    report.privacy.check_anything_is_known()
    return CompositionReport(report, parts)


def account_after_each_part(composition: Composition, *, delta: float, adjacency: str | None = None) -> list[AccountReport]:
    """Return the account of the first part, of the first two, and so on; arguments as in `account_composition`."""
    subjects, target = _subjects(composition.parts, check_delta(delta), adjacency)
    counts = range(1, len(subjects) + 1)
    return [_reported(_together(composition.parts[:count], subjects[:count], target), composition.parts[:count], delta) for count in counts]


def _together(parts: Sequence[AccountedPart], subjects: Sequence[AccountSubject], adjacency: str) -> AccountSubject:
    """Return the subject of all parts together."""
    privacy = compose([(subject.privacy, part.rounds, part.sampling) for part, subject in zip(parts, subjects, strict=True)], adjacency)
    names = ", ".join(dict.fromkeys(part.name for part in parts))
    sampled: dict[str, Scalar] = (
        {} if all(part.sampling is None for part in parts) else {"drawn": "the clients of each part by its own sampling"}
    )
    return AccountSubject(f"{len(parts)} {'part' if len(parts) == 1 else 'parts'}: {names}", privacy, adjacency, details=sampled)


def _reported(together: AccountSubject, parts: Sequence[AccountedPart], delta: float, on_step: OnStep = silent) -> AccountReport:
    report = replace(together.privacy.report(delta, together.adjacency, on_step=on_step), rounds=sum(part.rounds for part in parts))
    return AccountReport(together, report)


def _parts(
    parts: Sequence[AccountedPart],
    subjects: Sequence[AccountSubject],
    delta: float,
    adjacency: str,
    report_reached: Callable[[int, str], None],
) -> tuple[PartReport, ...]:
    reports = []
    before = 0
    for number, (part, subject) in enumerate(zip(parts, subjects, strict=True), 1):
        proven = proven_adjacencies(subject.privacy, part.sampling)
        own = adjacency if adjacency in proven else proven[0]

        def on_step(done: int, _: int, text: str, *, before: int = before, number: int = number) -> None:
            report_reached(before + done, f"{text} of part {number}")

        privacy = subject.privacy.report(delta, own, part.rounds, part.sampling, on_step=on_step)
        reports.append(PartReport(part, subject, privacy, adjacency))
        before += len(subject.privacy.accounts)
    return tuple(reports)


def _subjects(parts: Sequence[AccountedPart], delta: float, adjacency: str | None) -> tuple[list[AccountSubject], str]:
    """Return the mechanisms of the parts, equal parts with the same mechanism, and the adjacency of the composition."""
    if adjacency is not None:
        check_choice("adjacency", adjacency, ADJACENCIES)
    made: dict[tuple[Any, ...], AccountSubject] = {}

    def subject(number: int, part: AccountedPart, neighbours: str | None) -> AccountSubject:
        key = (part.name, part.parameters, part.sampling, neighbours)
        if key not in made:
            try:
                made[key] = account_subject(part.name, dict(part.parameters), delta, neighbours, part.sampling)
            except InfeasibleError as error:
                raise InfeasibleError(f"part {number}, {part.name}: {error}") from error
            except ValueError as error:
                raise ValueError(f"part {number}, {part.name}: {error}") from error
        return made[key]

    numbered = list(enumerate(parts, 1))
    if adjacency is None:
        usual = {subject(number, part, part.adjacency).adjacency for number, part in numbered}
        adjacency = usual.pop() if len(usual) == 1 else REPLACE
    return [subject(number, part, _adjacency_of(part, adjacency)) for number, part in numbered], adjacency


def _adjacency_of(part: AccountedPart, target: str) -> str | None:
    """Return the part's own adjacency, or that of the composition if its mechanism and its sampling have it."""
    if part.adjacency is not None:
        return part.adjacency
    offered = NOISE[part.name].adjacencies if part.name in NOISE else REGISTRY[part.name].account_adjacencies
    return target if target in offered and (part.sampling is None or part.sampling.adjacency == target) else None


def _plain(value: Any) -> Scalar:
    """Return a parameter for JSON: paths and infinite numbers as texts."""
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if finite and (value is None or isinstance(value, str | float | int)) else str(value)
