"""Registry entries of mechanisms, for commands, sweeps, planner and tests."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...arguments import MOST_CATEGORIES, MOST_CLIENTS, check_choice
from ...errors import InfeasibleError
from ...shown import Shown
from ...solvers.accounting.sampling import FixedSizeSampling, Sampling
from .accounts import pure_privacy
from .calibration import LARGEST_PURE_EPSILON, per_round_epsilon
from .described_entry import REAL_NUMBERS as REAL_NUMBERS
from .described_entry import DescribedEntry
from .described_entry import InPlaceOfBudget as InPlaceOfBudget
from .domains import Categories, Domain, Interval
from .gaussian import central_gaussian_reference
from .mechanism import Mechanism
from .norm_ball import NormBall, parse_norm
from .options import BITS_ROUNDING, made, options_of, values_of
from .options import REQUIRED as REQUIRED
from .options import Option as Option
from .options import Values as Values
from .options import check_pairs as check_pairs
from .options import check_values as check_values
from .privacy import Privacy, PrivacyReport, Scalar
from .task import LARGEST_TARGET, SMALLEST_TARGET, Budget, Task, check_task

if TYPE_CHECKING:
    import pandas as pd

    from ...shown import Axes
    from ..tables.lookup_table import LookupTable


ROUND_EPSILON = Option("epsilon", float, "Pure privacy parameter of one round.", low=SMALLEST_TARGET, high=LARGEST_TARGET, unit="nats")
CLIENTS = Option("clients", int, "Number of clients.", low=1, high=MOST_CLIENTS, unit="clients", at_most="population")
# A placeholder for delta: accounts that are finite at delta = 0 do not depend on it.
ANY_DELTA = 1e-5
LOW = Option("low", float, "Low end of the interval of the clients' numbers.")
HIGH = Option("high", float, "High end of the interval of the clients' numbers.")
ORDER = Option("order", float, "Rényi order above 1, or inf: show the divergence of one coefficient there; none by default.", None)
# Options of which a domain of the clients needs one.
SIZES = ("categories", "dimension", "low", "high")
CATEGORIES = Option("categories", int, "Number of items.", low=1, high=MOST_CATEGORIES, unit="items")


@dataclass(frozen=True, eq=False)
class AccountSubject:
    """A mechanism, or noise without a mechanism, whose privacy accounts bound.

    Attributes
    ----------
    mechanism : str
        Name in words, with the parameters.
    privacy : Privacy
        Privacy of one round.
    adjacency : str
        Requested adjacency, or the usual adjacency without a request.
    bits_per_client : float or None
        Number of bits of one message; None if the parameters do not determine them.
    details : mapping
        Parameters and facts, by name.
    table : LookupTable or None
        The designed table, if calibration designs one.
    ball : NormBall or None
        Ball of the vectors whose mean is estimated; with `clients` it gives the reference error of a trusted server.
    clients : int or None
        Number of clients.
    task : Task or None
        The task of the mechanism; None for bare noise, and for a mechanism that is made from its parameters.
    """

    mechanism: str
    privacy: Privacy
    adjacency: str
    bits_per_client: float | None = None
    details: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))
    table: "LookupTable | None" = None
    ball: NormBall | None = None
    clients: int | None = None
    task: Task | None = None

    def report(self, delta: float, rounds: int = 1, sampling: Sampling | None = None) -> "AccountReport":
        """Return the report of all accounts; arguments are those of `Privacy.report`."""
        return AccountReport(self, self.privacy.report(delta, self.adjacency, rounds, sampling))


@dataclass(frozen=True, eq=False, repr=False)
class AccountReport(Shown):
    """The report of `quietbits account`: the bounds of all accounts, with their subject."""

    subject: AccountSubject
    privacy: PrivacyReport

    @property
    def summary(self) -> str:
        """One line with the subject and its privacy."""
        return f"{self.subject.mechanism}: {self.privacy.summary}"

    def to_frame(self) -> "pd.DataFrame":
        """Return a data frame with one row per account, as `PrivacyReport.to_frame`."""
        return self.privacy.to_frame()

    def draw(self, axes: "Axes") -> None:
        """Draw epsilon by every account, as `PrivacyReport.draw`."""
        self.privacy.draw(axes)

    @property
    def epsilon(self) -> float:
        """Upper bound on epsilon by the least proven account, infinite without such an account."""
        return self.privacy.epsilon

    def epsilon_by(self, account: str | None) -> float:
        """Return epsilon by one account, as `PrivacyReport.epsilon_by`."""
        return self.privacy.epsilon_by(account)

    @property
    def central_squared_error(self) -> float | None:
        """Squared error of the mean of one round under a trusted server's Gaussian noise.

        The noise gives the same privacy over the same rounds. None for sampled rounds, whose noise differs, for epsilon or delta out of
        range, and for unknown vectors.
        """
        ball, clients, privacy = self.subject.ball, self.subject.clients, self.privacy
        if ball is None or clients is None or privacy.sampling is not None:
            return None
        # The variance over T rounds is T times as large.
        of_one = central_gaussian_reference(ball, clients, privacy.epsilon, privacy.delta, privacy.adjacency)
        return None if of_one is None else privacy.rounds * of_one

    def document(self) -> dict[str, Any]:
        """Return the report as a JSON document, with null for infinity."""
        details = {key: None if isinstance(value, float) and math.isinf(value) else value for key, value in self.subject.details.items()}
        head = {"mechanism": self.subject.mechanism, "bits_per_client": self.subject.bits_per_client}
        if self.subject.ball is not None:
            details["squared_error_gaussian"] = self.central_squared_error
        return head | details | self.privacy.document()


Account = Callable[[Values, str | None, Sampling | None], AccountSubject]
"""Makes an `AccountSubject` from parameters, the adjacency that was asked for if any, and the sampling, which decides the usual adjacency.

The parameters have the ``delta`` of the question among them: some mechanisms depend on it.
"""


@dataclass(frozen=True, eq=False)
class Noise:
    """An account that needs few parameters: of bare noise, of a table's file, or of a training.

    Attributes
    ----------
    name, title : str
        Name on the command line, and title in words.
    parameters : tuple of Option
        Parameters of the account.
    account : callable
        Function that computes the privacy with the functions of the mechanism's own `privacy`.
    given : tuple of Option
        Options of `solve` beside the budget.
    solve : callable or None
        Function that returns parameters with which all rounds keep a budget, rounded toward more privacy; None without free parameters.
    parameters_of : callable or None
        Function that returns the parameters of a mechanism of the registry's entry; None if that mechanism lacks such parameters.
    pure : bool
        Whether `solve` keeps a budget whose delta is 0.
    adjacencies : tuple of str
        Adjacencies of the accounts if these are more than the entry's; empty for the same.
    offered : callable or None
        Function that returns the adjacencies, the usual adjacency first, if they depend on parameters, sampling or a budget's account.
    """

    name: str
    title: str
    parameters: tuple[Option, ...]
    account: Account
    given: tuple[Option, ...] = ()
    solve: Callable[[Budget, Values], Values] | None = None
    parameters_of: Callable[[Any], Values] | None = None
    pure: bool = False
    adjacencies: tuple[str, ...] = ()
    offered: Callable[[Values, Sampling | None, str | None], tuple[str, ...]] | None = None

    def usual_adjacency(self, budgeted: Values, sampling: Sampling | None, method: str | None) -> str:
        """Return the usual adjacency of a budget without one."""
        offered = self.adjacencies if self.offered is None else self.offered(budgeted, sampling, method)
        return usual_adjacency(None, sampling if len(offered) > 1 else None, offered)


@dataclass(frozen=True, eq=False)
class Entry(DescribedEntry):
    """A mechanism in the registry.

    Attributes
    ----------
    name, title, paper : str
        Name on the command line, title in words, and source.
    domains : tuple of type
        Domains of clients' inputs: `Interval`, `NormBall`, `Categories`.
    trust_model : str
        ``"local"``, ``"shuffled"``, ``"secure-sum"`` or ``"central"``.
    adjacencies : tuple of str
        Adjacencies of the guarantee.
    accounts : tuple of str
        Names of the accounts.
    options : tuple of Option
        Design choices beside the task.
    build : callable
        Function that returns the mechanism with the least error that keeps a task's budget, rounded toward more privacy. Raises
        ``InfeasibleError`` that states the requirement. `mechanism_for` checks the task and the options first.
    mechanism : type or None
        The class of the mechanism if its parameters determine it (`parameter`): `quietbits account` makes it from them. None for purely
        private mechanisms of the local trust model, which `account` builds for an epsilon of one round, and for mechanisms whose account is
        `noise`.
    noise : Noise or None
        The account that needs fewer parameters than the mechanism.
    private : bool
        Whether the mechanism keeps a budget. Otherwise a task's epsilon and delta have no effect, and the mechanism's epsilon is infinite.
    norms : tuple of float or None
        Norms of the balls that the mechanism accepts; None for every norm.
    candidates : callable
        Function that returns the design choices to try for a task, if they trade bits or time for error; missing choices have their
        defaults.
    populations : tuple of str or None
        Populations for which the stated error holds; None for all.
    planned_with : tuple of str
        Options that the stated error depends on, without which a plan cannot rank the mechanism.
    lower_bound : callable
        Function that returns a proven lower bound on the squared error of every mechanism for a task that meets the bound's hypotheses;
        None without a bound.
    predict : callable
        Function that returns the errors that `quietbits calibrate` predicts, beside the mechanism's facts, from the task and the design
        choices.
    on_real_numbers : bool
        Whether the guarantee is for noise on real numbers, so that the mechanism serves comparisons only: the low bits of floating-point
        noise reveal more (Mironov 2012, *On significance of the least significant bits for differential privacy*).
    in_place_of_budget : InPlaceOfBudget or None
        The parameter that a training may state in place of a budget; None for mechanisms that are built for budgets only.
    formula : str
        The law of a message and its decoding: sentences with LaTeX between dollar signs. Empty without a formula.
    use : str
        Advice on when to use the mechanism, in a few sentences; empty without advice.
    """

    name: str
    title: str
    paper: str
    domains: tuple[type, ...]
    trust_model: str
    adjacencies: tuple[str, ...]
    accounts: tuple[str, ...]
    options: tuple[Option, ...]
    build: Callable[[Task, Values], Mechanism]
    mechanism: type[Mechanism] | None = None
    noise: Noise | None = None
    private: bool = True
    norms: tuple[float, ...] | None = None
    lower_bound: Callable[[Task], float | None] = lambda _: None
    candidates: Callable[[Task], Sequence[Values]] = lambda _: ({},)
    populations: tuple[str, ...] | None = None
    planned_with: tuple[str, ...] = ()
    on_real_numbers: bool = False
    predict: Callable[[Task, Values], Values] = lambda *_: MappingProxyType({})
    in_place_of_budget: InPlaceOfBudget | None = None
    formula: str = ""
    use: str = ""

    def mechanism_for(self, task: Task, values: Values = MappingProxyType({})) -> Mechanism:
        """Return the mechanism for a task from design choices; missing choices have defaults.

        Raises ``InfeasibleError`` if the message exceeds `Task.most_message_bits`; a default number of bits stays within it.
        """
        return self.design_for(task, values).mechanism

    def design_for(self, task: Task, values: Values = MappingProxyType({})) -> "Design":
        """Return `mechanism_for`'s mechanism with the given choices and those derived from the bits."""
        if not isinstance(check_task(task).domain, self.domains):
            offered = " or ".join(domain.__name__ for domain in self.domains)
            raise InfeasibleError(f"domain must be of the kind {offered} for {self.name}, got {task.domain}")
        task.check_adjacency(self.name, self.adjacencies)
        if self.trust_model == "local" and task.sampling is not None:
            reason = "the server sees who reports, so that sampling does not amplify the guarantee"
            raise InfeasibleError(f"sampling must be left out in the local trust model, got {task.sampling}: {reason}")
        if task.most_message_bits is None:
            return Design(self._built(task, values), dict(values))
        return self._built_within(task, values, task.most_message_bits)

    def _built(self, task: Task, values: Values) -> Mechanism:
        """Return the mechanism, or raise InfeasibleError if its guarantee needs more clients than the task says remain."""
        mechanism = self.build(task, check_values(self.name, self.options, values))
        if self.private and mechanism.fewest_clients > task.survivors:
            needed = f"whose guarantee needs {mechanism.fewest_clients} of {task.clients} clients"
            raise InfeasibleError(f"dropout must be 0 for {self.name}, {needed}, got {task.dropout:g}")
        return mechanism

    def check_bits(self, task: Task, values: Values) -> None:
        """Raise InfeasibleError if a task allows fewer bits than the least defaults need."""
        budgeted = (option for option in self.options if option.budget and option.name not in values)
        fewest = max((option.fewest_bits(task.dimension) for option in budgeted), default=0.0)
        if task.most_message_bits is not None and fewest > task.most_message_bits * BITS_ROUNDING:
            raise InfeasibleError(self._too_long(task, fewest))

    def _built_within(self, task: Task, values: Values, most: float) -> "Design":
        """Return the mechanism whose message has at most the task's bits."""
        budgeted = [option for option in self.options if option.budget and option.name not in values]

        def built(allowed: float) -> Design:
            usual = {option.name: option.within(allowed, task.dimension) for option in budgeted}
            filled = {**usual, **values}
            try:
                return Design(self._built(task, filled), filled)
            except InfeasibleError as error:
                # Without this addition the error would name a number that the user did not type, unless the task has the same number.
                typed = (task.bits, task.message_bits)
                derived = [name for name, value in usual.items() if value not in typed and str(error).startswith(f"{name} must be")]
                raise InfeasibleError(f"{error}, the most that {_typed_bits(task)} allows") if derived else error from None

        self.check_bits(task, values)
        design = built(most)
        excess = design.mechanism.bits_per_client / most
        if excess > BITS_ROUNDING and budgeted:
            # Padded messages have more coordinates than the vectors.
            design = built(most / excess)
            excess = design.mechanism.bits_per_client / most
        if excess > BITS_ROUNDING:
            raise InfeasibleError(self._too_long(task, design.mechanism.bits_per_client))
        return design

    def _too_long(self, task: Task, sent: float) -> str:
        """Return the message that a task allows too few bits for a message of `sent` bits."""
        if task.bits is None:
            return f"message_bits must be at least {_rounded_up(sent)} for {self.name}, got {task.message_bits:g}"
        coordinates = f"{task.dimension:,} coordinate{'s' if task.dimension > 1 else ''}"
        return (
            f"bits must be at least {_rounded_up(sent / task.dimension)} a coordinate for {self.name}, got {task.bits:g}: its message has "
            f"{sent:,.6g} bit{'s' if sent != 1 else ''} for {coordinates}"
        )

    @property
    def account_adjacencies(self) -> tuple[str, ...]:
        """Adjacencies of the mechanism's accounts."""
        return (self.noise and self.noise.adjacencies) or self.adjacencies

    @property
    def builds_pure(self) -> bool:
        """Whether the mechanism is built for a pure guarantee, whose delta is 0."""
        return self.trust_model == "local" and "pure" in self.accounts

    @property
    def account_options(self) -> tuple[Option, ...]:
        """Parameters of `quietbits account`."""
        if self.mechanism is not None:
            orders = () if self.mechanism.divergences is Mechanism.divergences else (ORDER,)
            # A design choice of the entry has the same default in accounts.
            chosen = {option.name: option.default for option in self.options if not option.required and option.default is not None}
            declared = self._usual_norm(options_of(self.mechanism))
            return *(replace(option, default=chosen.get(option.name, option.default)) for option in declared), *orders
        if self.noise is not None:
            return self.noise.parameters
        clients = (replace(CLIENTS, default=1),) if Categories in self.domains else ()
        return () if not self.builds_pure else (ROUND_EPSILON, *self._size(required=False), *clients, *self.options)

    @property
    def calibration_options(self) -> tuple[Option, ...]:
        """Options of `quietbits calibrate` beside the budget.

        They are the options of `noise`, or those of the task and the design.
        """
        bare = () if self.noise is None or self.noise.solve is None else self.noise.given
        if any(option.required for option in bare):
            return bare
        alone: Any = 1 if self.trust_model == "local" else REQUIRED
        clients = replace(CLIENTS, default=alone)
        every = (*bare, *self._size(required=not bare and not self.has_bare_account), *self._ends, clients, *self.options)
        return tuple({option.name: option for option in reversed(every)}.values())[::-1]

    @property
    def has_bare_account(self) -> bool:
        """Whether `account` and `calibrate` need no dimension of the vectors."""
        return (self.noise is not None and self.noise.solve is not None) or (self.builds_pure and self.noise is None)

    def _size(self, *, required: bool) -> tuple[Option, ...]:
        """Return the options of the clients' domain; numbers are from the unit interval."""
        beside = replace(CATEGORIES, default=None, help="Number of items; without it, clients hold no items.")
        items = (CATEGORIES if self.domains == (Categories,) else beside,) if Categories in self.domains else ()
        if NormBall not in self.domains:
            return items
        ball = self._usual_norm(options_of(NormBall))
        needed = required and self.domains == (NormBall,)
        dimension = (
            {"default": REQUIRED} if needed else {"default": None, "help": "Number of coordinates; without it, no mechanism is built."}
        )
        return *(replace(option, **dimension) if option.name == "dimension" else option for option in ball), *items

    @property
    def _ends(self) -> tuple[Option, ...]:
        """Options of the interval's ends.

        The default is the unit interval, or no interval where clients may hold vectors instead.
        """
        if Interval not in self.domains:
            return ()
        usual = (None, None) if NormBall in self.domains else (0.0, 1.0)
        beside = "; without it, clients hold vectors." if NormBall in self.domains else "."
        ends = zip((LOW, HIGH), usual, strict=True)
        return tuple(replace(option, default=default, help=option.help.removesuffix(".") + beside) for option, default in ends)

    def _usual_norm(self, options: tuple[Option, ...]) -> tuple[Option, ...]:
        usual = "2" if self.norms is None else f"{self.norms[0]:g}"
        # A mechanism for items or numbers may declare the norm of its vectors.
        open_norm = [option.name == "norm" and (self.norms is not None or option.required) for option in options]
        return tuple(replace(option, default=usual) if is_open else option for option, is_open in zip(options, open_norm, strict=True))

    def account(self, values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
        """Return the mechanism of the parameters (`account_options`) as a subject of accounts.

        The values include ``delta``.
        """
        if self.mechanism is None and self.noise is not None:
            return self._noted(self.noise.account(values, adjacency, sampling))
        # A server that sees each message also sees its sender: the report refuses the sampling.
        neighbours = usual_adjacency(adjacency, None if self.trust_model == "local" else sampling, self.adjacencies)
        if self.mechanism is not None:
            mechanism = made(self.mechanism, {**values, "delta": values["delta"] or ANY_DELTA, "adjacency": neighbours})
            order = values.get(ORDER.name)
            return self.subject(mechanism, neighbours, {} if order is None else {"rdp_order": order, **mechanism.divergences(order)})
        if self.needs_size(values):
            return self.bare_subject(values["epsilon"], neighbours)
        # A purely private mechanism is built for the epsilon of one round.
        task = self.task_of(values, Budget(values["epsilon"], 0.0, neighbours))
        return self.subject(self.build(task, {option.name: values[option.name] for option in self.options}), neighbours, values)

    def needs_size(self, values: Values) -> bool:
        """Return whether the dimension of the vectors is missing.

        Without the dimension only the epsilon of one round is determined.
        """
        return NormBall in self.domains and values["dimension"] is None

    def bare_subject(self, epsilon: float, adjacency: str) -> AccountSubject:
        """Return a purely private mechanism with only the epsilon of one round."""
        details = {"epsilon_per_round": epsilon}
        return self._noted(
            AccountSubject(f"{self.title}, epsilon {epsilon:g} per round", pure_privacy(epsilon), adjacency, details=details)
        )

    def calibrate(self, budget: Budget, values: Values) -> AccountSubject:
        """Return the mechanism that keeps a budget, as a subject of accounts.

        The values are those of `calibration_options`. The subject has its task (`AccountSubject.task`). Without a dimension of the vectors
        the subject is bare noise, or the epsilon of one round.
        """
        sized = self.domains == (Categories,) or any(values.get(name) is not None for name in SIZES)
        if sized and self.noise is not None:
            self._check_bare(values)
        if not sized and self.has_bare_account:
            if self.noise is not None:
                assert self.noise.solve is not None  # noqa: S101 - what `has_bare_account` says
                parameters = {**values, **self.noise.solve(budget, values), "delta": budget.delta}
                return self._noted(self.noise.account(parameters, budget.adjacency, budget.sampling))
            if NormBall in self.domains:
                epsilon = per_round_epsilon(budget)
                if epsilon > LARGEST_PURE_EPSILON:
                    raise InfeasibleError(f"epsilon per round would have to be above {LARGEST_PURE_EPSILON:g}, got {epsilon:g}: add rounds")
                return self.bare_subject(epsilon, budget.adjacency)
        if not sized and self.domains[0] is NormBall:
            others = ", or categories for items" if Categories in self.domains else ""
            raise ValueError(f"dimension must be given for {self.name}, or low and high for numbers of an interval{others}, got neither")
        task = self.task_of(values, budget)
        chosen = {option.name: values[option.name] for option in self.options}
        mechanism = self.mechanism_for(task, chosen)
        if budget.method is not None:
            reached = mechanism.privacy().epsilon(budget.delta, budget.adjacency, budget.rounds, budget.sampling, budget.method)
            if reached > budget.epsilon:
                reason = f"which is built for what is proven, got {budget.method!r}"
                raise ValueError(f"method must be left out for {self.name}, {reason}: by that account epsilon is {reached:g}")
        unused = () if isinstance(task.domain, NormBall) else ("dimension", "norm", "clip")
        details = {name: value for name, value in values.items() if name not in unused and not (name in SIZES and value is None)}
        return replace(self.subject(mechanism, budget.adjacency, {**details, **self.predict(task, chosen)}), task=task)

    def _check_bare(self, values: Values) -> None:
        """Raise ValueError for options of bare noise if a mechanism is built for vectors."""
        for option in () if self.noise is None or self.noise.solve is None else self.noise.given:
            if values[option.name] != option.default:
                given = f"{option.name} must be left out where dimension is given"
                raise ValueError(f"{given}, got {values[option.name]!r}: it is for bare noise")

    def task_of(self, values: Values, budget: Budget) -> Task:
        """Return the task of a budget for clients of a stated domain."""
        domain: Domain = Interval()
        if values.get("categories") is not None:
            domain = Categories(values["categories"])
            if values.get("dimension") is not None:
                raise ValueError(f"dimension must be left out for items, got {values['dimension']}")
        elif NormBall in self.domains and values["dimension"] is not None:
            domain = NormBall(values["dimension"], parse_norm(values["norm"]), values["clip"])
        ends = {name: values[name] for name in ("low", "high") if values.get(name) is not None}
        if ends:
            if not isinstance(domain, Interval):
                other = "dimension" if isinstance(domain, NormBall) else "categories"
                raise ValueError(f"{other} must be left out for numbers of an interval, got {values[other]}")
            if len(ends) == 1:
                (name,) = {"low", "high"} - ends.keys()
                raise ValueError(f"{name} must be given with the interval's other end, {ends}")
            domain = Interval(**ends)
        kept = {item.name: getattr(budget, item.name) for item in fields(budget)}
        return Task(domain, values.get("clients", 1), **kept)

    def subject(self, mechanism: Mechanism, adjacency: str, values: Values = MappingProxyType({})) -> AccountSubject:
        """Return a mechanism as a subject of accounts, with parameters and facts as details."""
        ball = mechanism.domain if isinstance(mechanism.domain, NormBall) else None
        details = {**values, **self.parameters_of(mechanism), **mechanism.facts()}
        if ball is not None and "norm" in details:
            details["norm"] = "inf" if math.isinf(ball.norm) else ball.norm
        scalars = {name: value for name, value in details.items() if value is None or isinstance(value, str | float | int | bool)}
        return self._noted(
            AccountSubject(
                self.title,
                mechanism.privacy(),
                adjacency,
                mechanism.bits_per_client,
                {"epsilon_per_round" if name == "epsilon" else name: value for name, value in scalars.items()},
                getattr(mechanism, "table", None),
                ball,
                mechanism.joint_clients,
            )
        )

    def parameters_of(self, mechanism: Mechanism) -> dict[str, Any]:
        """Return the parameters of a mechanism of the entry, as `account` takes them."""
        if self.mechanism is not None:
            return values_of(mechanism.vector_mechanism)
        if self.noise is not None:
            return {} if self.noise.parameters_of is None else dict(self.noise.parameters_of(mechanism))
        return {field.name: getattr(mechanism, field.name) for field in fields(mechanism)} if is_dataclass(mechanism) else {}

    def _noted(self, subject: AccountSubject) -> AccountSubject:
        if not self.on_real_numbers:
            return subject
        return replace(subject, details={**subject.details, "on_real_numbers": True})

    def document(self) -> dict[str, Any]:
        """Return the entry as a JSON document."""
        return {
            "name": self.name,
            "title": self.title,
            "paper": self.paper,
            "use": self.use,
            "formula": self.formula,
            "domains": [domain.__name__ for domain in self.domains],
            "norms": None if self.norms is None else [str(norm) if math.isinf(norm) else norm for norm in self.norms],
            "trust_model": self.trust_model,
            "adjacencies": list(self.adjacencies),
            "accounts": list(self.accounts),
            "account_adjacencies": list(self.account_adjacencies),
            "private": self.private,
            "on_real_numbers": self.on_real_numbers,
            "options": [option.document() for option in self.options],
            "parameters": [option.document() for option in self.account_options],
        }


def _typed_bits(task: Task) -> str:
    """Return the task's number of bits as it was typed."""
    return f"message_bits = {task.message_bits:g}" if task.bits is None else f"bits = {task.bits:g}"


def _rounded_up(bits: float) -> str:
    """Return a number of bits in four digits, rounded up."""
    unit = 10.0 ** (math.floor(math.log10(bits)) - 3)
    return f"{math.ceil(bits / unit * (1 - 1e-12)) * unit:.15g}"


@dataclass(frozen=True, eq=False)
class Design:
    """A mechanism with the design choices that make it; unlisted choices have their defaults."""

    mechanism: Mechanism
    values: Values


def usual_adjacency(adjacency: str | None, sampling: Sampling | None, adjacencies: tuple[str, ...]) -> str:
    """Return the requested adjacency, else the sampling's, else the first of the mechanism."""
    if adjacency is not None:
        return check_choice("adjacency", adjacency, adjacencies)
    if sampling is not None:
        return "replace-one" if isinstance(sampling, FixedSizeSampling) else "add-or-remove-one"
    return adjacencies[0]
