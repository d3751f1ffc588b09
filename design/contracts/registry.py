"""Registry entries: what commands, sweeps, the planner and the conformance tests need to know of a mechanism."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...arguments import check_choice
from ...errors import InfeasibleError
from ...shown import Shown
from ...solvers.accounting.sampling import FixedSizeSampling, Sampling
from ...solvers.divergences.vector_composition import LARGEST_DIMENSION
from .domains import MOST_CATEGORIES, Categories, Domain, Interval
from .gaussian import central_gaussian_reference
from .mechanism import MOST_CLIENTS, Mechanism
from .norm_ball import LARGEST_CLIP_NORM, NormBall, parse_norm
from .options import BITS_ROUNDING
from .options import REQUIRED as REQUIRED
from .options import Option as Option
from .options import Values as Values
from .options import check_pairs as check_pairs
from .options import check_values as check_values
from .privacy import Privacy, PrivacyReport, Scalar
from .task import LARGEST_TARGET, SMALLEST_TARGET, Task, check_task

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes
    from ..tables.lookup_table import LookupTable


@dataclass(frozen=True, eq=False)
class Accounted:
    """A mechanism, or noise, as accounting sees it.

    Attributes
    ----------
    mechanism : str
        Which, in words, with its parameters.
    privacy : Privacy
        What it reveals.
    adjacency : str
        Which neighbours were asked for, or the usual ones.
    bits_per_client : float or None
        Bits of one message; None where they are not known from the parameters.
    details : mapping
        What the account rests on, and what else is known, by name.
    table : LookupTable or None
        The table that was designed, where calibration designs one.
    ball : NormBall or None
        Ball of the vectors whose mean is estimated, with `clients`: for the reference of a trusted server.
    clients : int or None
        Number of clients.
    """

    mechanism: str
    privacy: Privacy
    adjacency: str
    bits_per_client: float | None = None
    details: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))
    table: "LookupTable | None" = None
    ball: NormBall | None = None
    clients: int | None = None

    def report(self, delta: float, rounds: int = 1, sampling: Sampling | None = None) -> "AccountReport":
        """Ask all accounts; arguments as in `Privacy.report`."""
        return AccountReport(self, self.privacy.report(delta, self.adjacency, rounds, sampling))


@dataclass(frozen=True, eq=False, repr=False)
class AccountReport(Shown):
    """What `quietbits account` says: the answers of all accounts, and what they are about."""

    subject: Accounted
    privacy: PrivacyReport

    @property
    def line(self) -> str:
        """What it is about and what it reveals, in one line."""
        return f"{self.subject.mechanism}: {self.privacy.line}"

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per account, as `PrivacyReport.to_frame`."""
        return self.privacy.to_frame()

    def draw(self, axes: "Axes") -> None:
        """Draw epsilon by every account, as `PrivacyReport.draw`."""
        self.privacy.draw(axes)

    @property
    def epsilon(self) -> float:
        """The least of the proven accounts for the adjacency; infinite where nothing is proven."""
        return self.privacy.epsilon

    def epsilon_by(self, account: str | None) -> float:
        """As `PrivacyReport.epsilon_by`."""
        return self.privacy.epsilon_by(account)

    @property
    def central_squared_error(self) -> float | None:
        """Squared error of the mean of one round where a trusted server adds Gaussian noise, for the same privacy over the same rounds.

        None for sampled rounds, where that noise is another, where epsilon or delta is out of range, and where the vectors are not known.
        """
        ball, clients, privacy = self.subject.ball, self.subject.clients, self.privacy
        if ball is None or clients is None or privacy.sampling is not None:
            return None
        # Over T rounds the variance is T times as large.
        of_one = central_gaussian_reference(ball, clients, privacy.epsilon, privacy.delta, privacy.adjacency)
        return None if of_one is None else privacy.rounds * of_one

    def document(self) -> dict[str, Any]:
        """Return the report as JSON holds it: what is infinite is null."""
        details = {key: None if isinstance(value, float) and math.isinf(value) else value for key, value in self.subject.details.items()}
        head = {"mechanism": self.subject.mechanism, "bits_per_client": self.subject.bits_per_client}
        if self.subject.ball is not None:
            details["squared_error_gaussian"] = self.central_squared_error
        return head | details | self.privacy.document()


# What `Entry.on_real_numbers` says of a guarantee.
REAL_NUMBERS = (
    "the guarantee is of the mechanism on real numbers; noise in floating-point numbers reveals more in its low bits: "
    "a reference for comparisons, not for releases"
)


@dataclass(frozen=True)
class Target:
    """What calibration aims at.

    Attributes
    ----------
    epsilon, delta : float
        Of all rounds together.
    rounds : int
        Number of rounds in which the same client takes part.
    adjacency : str or None
        Which data sets are neighbours; None for the mechanism's usual ones.
    sampling : Sampling or None
        How the clients of a round are chosen.
    method : str or None
        Name of the account that is to keep the target; None for the least of the proven ones.
    """

    epsilon: float
    delta: float
    rounds: int = 1
    adjacency: str | None = None
    sampling: Sampling | None = None
    method: str | None = None

    @classmethod
    def of(cls, task: Task, mechanism: str | None = None) -> "Target":
        """Return a task's budget; delta must be above 0 for the mechanism that is named."""
        delta = task.delta if mechanism is None else task.check_delta(mechanism)
        return cls(task.epsilon, delta, task.rounds, task.adjacency, task.sampling)


Account = Callable[[Values, str | None, Sampling | None], Accounted]
"""Makes an `Accounted` from parameters, the adjacency that was asked for if any, and the sampling, which decides the usual adjacency.

The parameters have the ``delta`` of the question among them: some mechanisms depend on it.
"""


@dataclass(frozen=True, eq=False)
class Accountable:
    """Something with an account: a mechanism, or the noise or table inside one.

    Attributes
    ----------
    name, title : str
        On the command line, and in words.
    parameters : tuple of Option
        What `account` takes.
    account : callable
        The only computation of its privacy: a mechanism's own `privacy` is the same.
    given : tuple of Option
        What `solve` takes beside the target.
    solve : callable or None
        Finds the parameters with which all rounds stay within the target, and returns what `account` makes of them, with the parameters
        among its details; errs toward more privacy. None where there is nothing to find.
    close : bool
        Whether `solve` ends less than 1e-6 below the target: not where it finds whole numbers.
    private : bool
        Whether it keeps a budget. If not, a task's epsilon and delta are passed over, and its own epsilon is infinite.
    designs : bool
        Whether `solve` designs a lookup table (`Accounted.table`).
    pure : bool
        Whether `solve` keeps a budget whose delta is 0.
    adjacencies : tuple of str
        What it can be accounted for where that is more than the entry's mechanism is built for; empty for the same.
    """

    name: str
    title: str
    parameters: tuple[Option, ...]
    account: Account
    given: tuple[Option, ...] = ()
    solve: Callable[[Target, Values], Accounted] | None = None
    close: bool = True
    private: bool = True
    designs: bool = False
    pure: bool = False
    adjacencies: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Entry:
    """A mechanism in the registry.

    Attributes
    ----------
    name, title, paper : str
        On the command line, in words, and where it comes from.
    domains : tuple of type
        What clients may hold: `Interval`, `NormBall`, `Categories`.
    trust_model : str
        ``"local"``, ``"shuffled"``, ``"secure-sum"`` or ``"central"``.
    adjacencies : tuple of str
        What its guarantee can be stated for.
    accounts : tuple of str
        Names of its accounts.
    options : tuple of Option
        Design choices beside the task.
    calibrate : callable
        Returns the mechanism with the least error that keeps the task's budget; errs toward more privacy. Raises ``InfeasibleError``
        that says what is needed.
    accounting : Accountable
        `quietbits account` and `quietbits calibrate`; without one, those of the mechanism that `calibrate` builds (`derived_accounting`).
    norms : tuple of float or None
        Norms of the balls that it is for; None for every norm.
    candidates : callable
        Design choices worth trying for a task, where they trade bits or time for error; those that are not given have their defaults.
    populations : tuple of str or None
        Populations that its stated error is for; None for all.
    planned_with : tuple of str
        Options that say what its stated error is for, without which a plan cannot rank it.
    lower_bound : callable
        A proven bound on the squared error of every mechanism for the task that meets the bound's hypotheses; None where there is none.
    on_real_numbers : bool
        Whether the guarantee is of a mechanism on real numbers, whose noise is in floating-point numbers here: their low bits reveal more
        (Mironov 2012, *On significance of the least significant bits for differential privacy*), so it is for comparisons, not releases.
    """

    name: str
    title: str
    paper: str
    domains: tuple[type, ...]
    trust_model: str
    adjacencies: tuple[str, ...]
    accounts: tuple[str, ...]
    options: tuple[Option, ...]
    calibrate: Callable[[Task, Values], Mechanism]
    accounting: Accountable = None  # type: ignore[assignment]  # never None once the entry is made
    norms: tuple[float, ...] | None = None
    lower_bound: Callable[[Task], float | None] = lambda _: None
    candidates: Callable[[Task], Sequence[Values]] = lambda _: ({},)
    populations: tuple[str, ...] | None = None
    planned_with: tuple[str, ...] = ()
    on_real_numbers: bool = False

    def __post_init__(self) -> None:
        """Derive the accounting that was left out."""
        if self.accounting is None:
            object.__setattr__(self, "accounting", derived_accounting(self))

    @property
    def private(self) -> bool:
        """That of its accounting."""
        return self.accounting.private

    def build(self, task: Task, values: Values = MappingProxyType({})) -> Mechanism:
        """Return the mechanism for a task, from design choices that are checked and filled in; refuse what is not offered.

        A message of more than `Task.most_message_bits` is refused; a number of bits that is not given is made to keep to it.
        """
        return self.built(task, values).mechanism

    def built(self, task: Task, values: Values = MappingProxyType({})) -> "Built":
        """Return what `build` does, with the design choices that were given or follow from the task's number of bits."""
        if not isinstance(check_task(task).domain, self.domains):
            offered = " or ".join(domain.__name__ for domain in self.domains)
            raise InfeasibleError(f"domain must be of the kind {offered} for {self.name}, got {task.domain}")
        task.check_adjacency(self.name, self.adjacencies)
        if self.trust_model == "local" and task.sampling is not None:
            reason = "the server sees who reports, so that sampling does not amplify the guarantee"
            raise InfeasibleError(f"sampling must be left out in the local trust model, got {task.sampling}: {reason}")
        if task.most_message_bits is None:
            return Built(self.calibrate(task, check_values(self.name, self.options, values)), dict(values))
        return self._built_within(task, values, task.most_message_bits)

    def check_bits(self, task: Task, values: Values) -> None:
        """Refuse a task that allows fewer bits than the least that the options which are not given can be."""
        budgeted = (one for one in self.options if one.budget and one.name not in values)
        fewest = max((one.fewest_bits(task.dimension) for one in budgeted), default=0.0)
        if task.most_message_bits is not None and fewest > task.most_message_bits * BITS_ROUNDING:
            raise InfeasibleError(self._too_long(task, fewest))

    def _built_within(self, task: Task, values: Values, most: float) -> "Built":
        """Return the mechanism whose message has at most the task's bits."""
        budgeted = [one for one in self.options if one.budget and one.name not in values]

        def built(allowed: float) -> Built:
            usual = {one.name: one.within(allowed, task.dimension) for one in budgeted}
            filled = {**usual, **values}
            try:
                return Built(self.calibrate(task, check_values(self.name, self.options, filled)), filled)
            except InfeasibleError as error:
                # Which names a number that nobody typed, unless the task's is the same.
                typed = (task.bits, task.message_bits)
                derived = [name for name, value in usual.items() if value not in typed and str(error).startswith(f"{name} must be")]
                raise InfeasibleError(f"{error}, the most that {_typed_bits(task)} allows") if derived else error from None

        self.check_bits(task, values)
        found = built(most)
        excess = found.mechanism.bits_per_client / most
        if excess > BITS_ROUNDING and budgeted:
            # Padded messages have more coordinates than the vectors.
            found = built(most / excess)
            excess = found.mechanism.bits_per_client / most
        if excess > BITS_ROUNDING:
            raise InfeasibleError(self._too_long(task, found.mechanism.bits_per_client))
        return found

    def _too_long(self, task: Task, sent: float) -> str:
        """Return how many bits a task has to allow for a message of `sent` bits, in the words in which it allows too few."""
        if task.bits is None:
            return f"message_bits must be at least {_rounded_up(sent)} for {self.name}, got {task.message_bits:g}"
        coordinates = f"{task.dimension:,} coordinate{'s' if task.dimension > 1 else ''}"
        return (
            f"bits must be at least {_rounded_up(sent / task.dimension)} a coordinate for {self.name}, got {task.bits:g}: its message has "
            f"{sent:,.6g} bit{'s' if sent != 1 else ''} for {coordinates}"
        )

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON holds it."""
        return {
            "name": self.name,
            "title": self.title,
            "paper": self.paper,
            "domains": [domain.__name__ for domain in self.domains],
            "norms": None if self.norms is None else [str(norm) if math.isinf(norm) else norm for norm in self.norms],
            "trust_model": self.trust_model,
            "adjacencies": list(self.adjacencies),
            "accounts": list(self.accounts),
            "account_adjacencies": list(self.accounting.adjacencies or self.adjacencies),
            "private": self.private,
            "on_real_numbers": self.on_real_numbers,
            "options": [option.document() for option in self.options],
            "parameters": [option.document() for option in self.accounting.parameters],
        }


def _typed_bits(task: Task) -> str:
    """Return the task's number of bits as it was typed."""
    return f"message_bits = {task.message_bits:g}" if task.bits is None else f"bits = {task.bits:g}"


def _rounded_up(bits: float) -> str:
    """Return a number of bits in four digits that are not below it."""
    unit = 10.0 ** (math.floor(math.log10(bits)) - 3)
    return f"{math.ceil(bits / unit * (1 - 1e-12)) * unit:.15g}"


@dataclass(frozen=True, eq=False)
class Built:
    """A mechanism, and the design choices that make it; those that are not listed have their defaults."""

    mechanism: Mechanism
    values: Values


def derived_accounting(entry: Entry) -> Accountable:
    """Return the accounting of an entry by the mechanism that it builds: for an epsilon of one round, or within a target over all rounds.

    Numbers are from the unit interval. The mechanism's scalar fields are details, its epsilon as ``epsilon_per_round``.
    """
    vectors, numbers, items = (domain in entry.domains for domain in (NormBall, Interval, Categories))
    usual_norm = 2.0 if entry.norms is None else entry.norms[0]
    size = (
        Option("dimension", int, "Number of coordinates.", None if numbers else REQUIRED, 1, LARGEST_DIMENSION, "coordinates"),
        Option("norm", str, "p of the ball of the vectors.", f"{usual_norm:g}", numeric=True),
        Option("clip", float, "Norm that vectors are clipped to.", 1.0, 1 / LARGEST_CLIP_NORM, LARGEST_CLIP_NORM, "vectors' units"),
    )
    alone = 1 if entry.trust_model == "local" else REQUIRED
    clients = Option("clients", int, "Number of clients.", alone, 1, MOST_CLIENTS, "clients", at_most="population")
    epsilon = Option("epsilon", float, "Epsilon of one round that the mechanism is built for.", low=SMALLEST_TARGET, high=LARGEST_TARGET)
    categories = Option("categories", int, "Number of items.", low=1, high=MOST_CATEGORIES)
    given = (*(size if vectors else ()), *((categories,) if items else ()), clients, *entry.options)

    def built(target: Target, values: Values) -> Accounted:
        adjacency = usual_adjacency(target.adjacency, target.sampling, entry.adjacencies)
        domain: Domain = Categories(values["categories"]) if items else Interval()
        if not items and values.get("dimension"):
            domain = NormBall(values["dimension"], parse_norm(values["norm"]), values["clip"])
        task = Task(domain, values["clients"], target.epsilon, target.delta, adjacency, rounds=target.rounds, sampling=target.sampling)
        mechanism = entry.calibrate(task, {option.name: values[option.name] for option in entry.options})
        own: dict[str, Any] = {one.name: getattr(mechanism, one.name) for one in fields(mechanism)} if is_dataclass(mechanism) else {}
        known = {name: value for name, value in {**values, **own}.items() if isinstance(value, str | float | int | bool)}
        details = {"epsilon_per_round" if name == "epsilon" else name: value for name, value in known.items()}
        return Accounted(entry.title, mechanism.privacy(), adjacency, mechanism.bits_per_client, details)

    def account(values: Values, adjacency: str | None, sampling: Sampling | None) -> Accounted:
        neighbours = usual_adjacency(adjacency, sampling, entry.adjacencies)
        return built(Target(values["epsilon"], values["delta"], adjacency=neighbours), values)

    def solve(target: Target, values: Values) -> Accounted:
        if target.method is not None:
            raise ValueError(f"method must be left out for {entry.name}, which is built for what is proven, got {target.method!r}")
        return built(target, values)

    pure = entry.trust_model == "local" and "pure" in entry.accounts
    return Accountable(entry.name, entry.title, (epsilon, *given), account, given, solve, close=False, pure=pure)


def usual_adjacency(adjacency: str | None, sampling: Sampling | None, adjacencies: tuple[str, ...]) -> str:
    """Return the adjacency that was asked for, or the one that the sampling asks for, or the mechanism's first one."""
    if adjacency is not None:
        return check_choice("adjacency", adjacency, adjacencies)
    if sampling is not None:
        return "replace-one" if isinstance(sampling, FixedSizeSampling) else "add-or-remove-one"
    return adjacencies[0]
