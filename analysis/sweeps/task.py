"""A task of a sweep of means: a setting and a repetition.

The name states the task in full, and its random numbers derive from that name.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ...design.contracts.domains import Categories, Domain, Interval
from ...design.contracts.guarantee import Guarantee
from ...design.contracts.mechanism import Mechanism, SecureSumMechanism
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.privacy import Scalar
from ...design.contracts.registry import Entry, Option, Values, check_values
from ...design.contracts.task import Task, check_task
from ...shown import results_first
from ..catalogue.central_reference import central_squared_error
from ..catalogue.plug_ins import option_columns, provided_name, provider_columns, provider_folder
from ..catalogue.registry import BUILT_IN, REGISTRY, entry_named
from ..planner.bound import largest_bound
from ..random_streams import named_stream
from ..simulation.mean import simulate_mean
from ..simulation.populations import check_inputs, input_chunks

# Name of the option for the folder of designed tables, which changes no result and is no design choice.
CACHE = "cache"
# Metrics of a task, in the order of its rows; only modular sums have the last metric.
METRICS = (
    *("squared_error", "unclipped_squared_error", "predicted_squared_error", "worst_squared_error", "zero_squared_error", "clipped"),
    "wrapped_coordinates",
)
DOMAIN_KEYS = {Interval: "interval", NormBall: "ball", Categories: "categories"}
# Limits of the kept inputs of the last tasks, which hold ten repetitions of 16 megabytes each that all mechanisms share.
KEPT_INPUTS, KEPT_NUMBERS = 10, 2**21
# Cache size for texts of the last designs of a sweep.
DESIGNS_KEPT = 64
# Options whose names clash with another column, or are unclear in a table of all mechanisms.
COLUMN_OF = {"metric": "table_metric", "objective": "table_objective"}


def design_options(entry: Entry) -> tuple[Option, ...]:
    """Return the options of an entry that change its mechanism."""
    return tuple(option for option in entry.options if option.name != CACHE)


OPTION_COLUMNS = tuple(
    dict.fromkeys(COLUMN_OF.get(option.name, option.name) for entry in BUILT_IN.values() for option in design_options(entry))
)


@dataclass(frozen=True)
class MechanismChoice:
    """A mechanism of the registry, with its design choices.

    Attributes
    ----------
    name : str
        Name in the registry.
    options : tuple of (str, value)
        Design choices by name; missing choices get their defaults.
    provider : str or None
        Distribution with its version, or script, that provides the mechanism; None for quietbits itself.

    Examples
    --------
    >>> print(MechanismChoice.of("mvu", bits_in=5, bits_out=3, metric="l1"))
    mvu (bits_in 5, bits_out 3, metric l1)
    """

    name: str
    options: tuple[tuple[str, Scalar], ...] = ()
    provider: str | None = field(init=False, default=None)

    @classmethod
    def of(cls, name: str, **options: Scalar) -> "MechanismChoice":
        """Return the choice of a mechanism with options by name."""
        return cls(name, tuple(options.items()))

    def __post_init__(self) -> None:
        """Check the options, and fill in defaults and the provider."""
        entry = entry_named(self.name)
        object.__setattr__(self, "provider", REGISTRY.provider(self.name))
        object.__setattr__(self, "options", tuple(check_values(self.name, design_options(entry), dict(self.options)).items()))

    @property
    def entry(self) -> Entry:
        """The mechanism's entry in the registry.

        Raises DataError in a process without the entry, or with another provider of it.
        """
        return REGISTRY.provided(self.name, self.provider)

    def build(self, task: Task, cache: Path | None = None) -> Mechanism:
        """Return the mechanism for a task; designed tables are kept in the folder, if given."""
        values: Values = dict(self.options)
        keeps_tables = any(option.name == CACHE for option in self.entry.options)
        return self.entry.mechanism_for(task, {**values, CACHE: provider_folder(cache, self.provider)} if keeps_tables else values)

    def columns(self, taken: Collection[str]) -> dict[str, Scalar]:
        """Return the design choices as columns of a table whose other columns are `taken`.

        The columns include the design choices of all mechanisms of quietbits.
        """
        named = {COLUMN_OF.get(name, name): value for name, value in self.options}
        return dict.fromkeys(OPTION_COLUMNS) | option_columns(named, taken)

    def __str__(self) -> str:
        """Return the name with the bits and the options that differ from their defaults."""
        values: Values = dict(self.options)
        named = [
            f"{option.name} {values[option.name]}"
            for option in design_options(self.entry)
            if values[option.name] is not None and (option.unit == "bits" or values[option.name] != option.default)
        ]
        return f"{self.name} ({', '.join(named)})" if named else self.name


@dataclass(frozen=True)
class MeanDesign:
    """The design of a mechanism; tasks with the same design share the mechanism."""

    mechanism: MechanismChoice
    task: Task

    @property
    def text(self) -> str:
        """The design in canonical JSON."""
        return _design_text(self)


@lru_cache(maxsize=DESIGNS_KEPT)
def _design_text(design: MeanDesign) -> str:
    # The name omits default and inapplicable parameters, so that a new parameter does not rename other tasks.
    task, options = design.task, {key: value for key, value in design.mechanism.options if value is not None}
    record: dict[str, Any] = {
        DOMAIN_KEYS[type(task.domain)]: asdict(task.domain),
        "delta": task.delta,
        "epsilon": task.epsilon,
        "mechanism": {"name": design.mechanism.name, **options},
    }
    if task.adjacency != "replace-one":
        record["adjacency"] = task.adjacency
    if task.rounds > 1:
        record["rounds"] = task.rounds
    if task.dropout:
        record["dropout"] = task.dropout
    if task.bits is not None:
        record["bits"] = task.bits
    if task.message_bits is not None:
        record["message_bits"] = task.message_bits
    if task.sampling is not None:
        record["sampling"] = {type(task.sampling).__name__: asdict(task.sampling)}
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, eq=False)
class PreparedMean:
    """A mechanism, and the quantities that all of its rounds share.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism.
    stated : dict
        Columns of the guarantee, the message and the references, which are the same in all rows.
    """

    mechanism: Mechanism
    stated: dict[str, Scalar]


@dataclass(frozen=True)
class MeanTask:
    """A round of a mechanism on a draw of a population.

    Attributes
    ----------
    mechanism : MechanismChoice
        The mechanism.
    task : Task
        The mechanism's task.
    population : str
        Name of the population, as in `input_chunks`.
    nonzero : int or None
        Number of non-zero coordinates of a vector of ``"sparse"`` or ``"sparse-mean"``; None for their default, and for other populations.
    scale : float
        The population's scale, in clip norms, or in halves of the interval.
    repetition : int
        Number of this repetition, from 0.
    seed : int
        Root seed.
    """

    mechanism: MechanismChoice
    task: Task
    population: str
    nonzero: int | None = None
    scale: float = 1.0
    repetition: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a population that the domain does not have."""
        check_inputs(self.population, check_task(self.task).domain, self.nonzero)

    @property
    def design(self) -> MeanDesign:
        """Design of the mechanism."""
        return MeanDesign(self.mechanism, self.task)

    @property
    def domain(self) -> Domain:
        """Domain of the clients' inputs."""
        return self.task.domain

    @property
    def data_name(self) -> str:
        """Name of the random stream of the inputs.

        All mechanisms, budgets, balls and intervals share the same draws.
        """
        kind = self.population if self.nonzero is None else f"{self.population}({self.nonzero})"
        clients, domain = self.task.clients, self.domain
        if isinstance(domain, Interval):
            return f"numbers: {kind}, clients {clients}, repetition {self.repetition}"
        if isinstance(domain, Categories):
            return f"items: {kind}, clients {clients}, categories {domain.size}, repetition {self.repetition}"
        return f"vectors: {kind}, clients {clients}, dimension {domain.dimension}, repetition {self.repetition}"

    @property
    def name(self) -> str:
        """The whole task except for its seed, in canonical JSON.

        The name includes the provider of a mechanism that is not of quietbits itself.
        """
        return provided_name(self.stream, self.mechanism.provider)

    @property
    def stream(self) -> str:
        """The task in canonical JSON, as name of the random stream of the mechanism.

        The stream is the same in all versions of a plug-in.
        """
        parts = {
            "clients": json.dumps(self.task.clients),
            "design": self.design.text,
            "nonzero": json.dumps(self.nonzero),
            "population": json.dumps(self.population),
            "repetition": json.dumps(self.repetition),
            "scale": json.dumps(self.scale),
        }
        return "{" + ",".join(f'"{key}":{value}' for key, value in parts.items()) + "}"

    @property
    def setting(self) -> str:
        """The task in words, without its repetition."""
        task, domain = self.task, self.domain
        data = self.population if self.nonzero is None else f"{self.population} ({self.nonzero} non-zero)"
        scale = "" if self.scale == 1 else f" of scale {self.scale:g}"
        rounds = "" if task.rounds == 1 else f" over {task.rounds} rounds"
        rounds += f", dropout {task.dropout:g}" if task.dropout else ""
        adjacency = "" if task.adjacency == "replace-one" else f", {task.adjacency}"
        match domain:
            case Interval():
                where = f"interval from {domain.low:g} to {domain.high:g}"
            case Categories():
                where = f"{domain.size} categories"
            case NormBall():
                where = f"dimension {domain.dimension}, L{domain.norm:g} ball of radius {domain.clip_norm:g}"
        return (
            f"{self.mechanism}, epsilon {task.epsilon:g}, delta {task.delta:g}{rounds}{adjacency}, "
            f"{task.clients} clients from {data}{scale}, {where}"
        )

    def prepare(self, cache: Path | None) -> PreparedMean:
        """Build the mechanism, and compute its guarantee."""
        task = self.task
        mechanism = self.mechanism.build(task, cache)
        # The mechanism caches this variance, so that workers need not compute it.
        _ = mechanism.variance_bound
        if task.rounds == 1 and task.sampling is None:
            guarantee = mechanism.guarantee
        else:
            guarantee = mechanism.privacy().report(task.delta, task.adjacency, task.rounds, task.sampling).guarantee
        asked = Guarantee(task.epsilon, task.adjacency, guarantee.trust_model, delta=task.delta)
        references: dict[str, Scalar] = {
            "lower_bound": largest_bound(self.mechanism.entry, task, mechanism),
            "central_error": central_squared_error(self.domain, task.clients, asked, task.rounds),
        }
        return PreparedMean(mechanism, _guaranteed(mechanism, guarantee, task.dimension) | references)

    def run(self, prepared: PreparedMean) -> list[dict[str, Scalar]]:
        """Simulate the mechanism on drawn inputs and return a row for each metric of `METRICS`."""
        few = self.task.clients * self.task.dimension <= KEPT_NUMBERS
        draw = _kept_inputs if few else _inputs
        inputs = draw(self.seed, self.data_name, self.population, self.domain, self.task.clients, self.scale, self.nonzero)
        stream = self.stream
        mechanism = prepared.mechanism.renewed(int(named_stream(self.seed, f"sketch: {stream}").integers(2**63)))
        result = simulate_mean(mechanism, inputs, named_stream(self.seed, f"messages: {stream}"))
        measured = asdict(result) | asdict(result.wrapping) if result.wrapping is not None else asdict(result)
        stated = self._asked() | prepared.stated
        head: dict[str, Scalar] = {"label": str(self.mechanism), "mechanism": self.mechanism.name}
        chosen = self.mechanism.columns({*head, *stated, "metric", "value"})
        common = head | chosen | stated | provider_columns(self.mechanism.provider)
        ordered = dict.fromkeys(results_first([*common, "metric", "value"])) | common
        return [ordered | {"metric": metric, "value": float(measured[metric])} for metric in METRICS if metric in measured]

    def _asked(self) -> dict[str, Scalar]:
        task, domain = self.task, self.domain
        ball = domain if isinstance(domain, NormBall) else None
        interval = domain if isinstance(domain, Interval) else None
        return {
            "epsilon": task.epsilon,
            "delta": task.delta,
            "adjacency": task.adjacency,
            "rounds": task.rounds,
            "dropout": task.dropout,
            "population": self.population,
            "nonzero": self.nonzero,
            "scale": self.scale,
            "clients": task.clients,
            "dimension": None if isinstance(domain, Categories) else task.dimension,
            "categories": domain.size if isinstance(domain, Categories) else None,
            "norm": None if ball is None else ball.norm,
            "clip_norm": None if ball is None else ball.clip_norm,
            "low": None if interval is None else interval.low,
            "high": None if interval is None else interval.high,
            "repetition": self.repetition,
            "seed": self.seed,
        }


def _guaranteed(mechanism: Mechanism, guarantee: Guarantee, dimension: int) -> dict[str, Scalar]:
    modular = mechanism if isinstance(mechanism, SecureSumMechanism) else None
    return {
        "realised_epsilon": guarantee.epsilon,
        "realised_delta": guarantee.delta,
        "trust_model": guarantee.trust_model,
        "bits_per_client": float(mechanism.bits_per_client),
        "bits_per_coordinate": mechanism.bits_per_client / dimension,
        "bias_bound": mechanism.bias_bound,
        "modulus": None if modular is None else modular.modulus,
        "padded_dimension": None if modular is None else modular.padded_dimension,
        "coordinate_wrap_probability": None if modular is None else modular.coordinate_wrap_probability,
        "wrap_probability": None if modular is None else modular.wrap_probability,
    }


def _inputs(
    seed: int, data_name: str, population: str, domain: Domain, clients: int, scale: float, nonzero: int | None
) -> Iterator[NDArray[Any]]:
    return input_chunks(population, domain, clients, named_stream(seed, data_name), scale=scale, nonzero=nonzero)


@lru_cache(maxsize=KEPT_INPUTS)
def _kept_inputs(*drawn: Any) -> tuple[NDArray[Any], ...]:
    """Return the inputs of `_inputs` read-only, from a cache."""
    chunks = tuple(_inputs(*drawn))
    for chunk in chunks:
        chunk.flags.writeable = False
    return chunks
