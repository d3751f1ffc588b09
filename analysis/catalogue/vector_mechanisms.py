"""Mechanisms for vectors by name: what a sweep, a figure or a plan asks for, made into a mechanism that keeps the promise."""

import math
from dataclasses import dataclass, fields

from ...arguments import check_choice, check_integer, check_real
from ...design.contracts.norm_ball import NormBall
from ...design.contracts.vector_epsilon import EPSILON_HIGH, EPSILON_LOW
from ...design.contracts.vector_protocol import VectorMeanProtocol
from ...design.local import sqkr, vector_skellam
from ...design.local.privunit import PrivUnitMechanism
from ...design.local.vector_calibration import calibrate_vector_table
from ...design.local.vector_cldp import cldp_mechanism
from ...design.local.vector_gaussian import VectorGaussianMechanism
from ...design.local.vector_laplace import VectorLaplaceMechanism
from ...design.local.vector_table import DITHERINGS, VectorTableMechanism
from ...design.tables.lookup_table import LookupTable
from ...solvers.accounting.gaussian_privacy import LARGEST_DELTA
from ...solvers.bounds import privacy_constraint
from ..calibration.table_cache import TableCache

SKELLAM_BITS = 16
# Tables are designed with the same random starts in every sweep, so that a cache serves them all.
DESIGN_SEED = 0


@dataclass(frozen=True)
class MechanismSpec:
    """A mechanism and its parameters; those that belong to another mechanism are errors.

    Attributes
    ----------
    name : str
        ``"mvu"``: a table for each coordinate; ``"cldp"``, ``"laplace"``, ``"privunit"``, ``"sqkr"``: purely private; ``"gaussian"``,
        ``"skellam"``: noise with a delta above 0.
    bits_in, bits_out : int or None
        For mvu, and needed there: bits of the input grid and of a coordinate's letter, 1 to 9.
    metric : str or None
        For mvu: metric privacy that the table itself is designed for, such as ``"l1"``; None for local privacy. The guarantee of the vector
        is the same in kind whatever the table's.
    dithering : str or None
        For mvu: ``"systematic"`` (what None becomes) or ``"rejection"``.
    bits : int or None
        For skellam: bits of a coordinate, 16 if None. For sqkr: bits of the whole message; None leaves them to the mechanism.

    Raises
    ------
    ValueError
        If there is no such mechanism, or a parameter is missing, out of range, or not one of its own.

    Examples
    --------
    >>> print(MechanismSpec("mvu", bits_in=5, bits_out=3, metric="l1"))
    mvu (bits_in 5, bits_out 3, metric l1)
    """

    name: str
    bits_in: int | None = None
    bits_out: int | None = None
    metric: str | None = None
    dithering: str | None = None
    bits: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no mechanism can be built from, and fill in defaults."""
        check_choice("name", self.name, PARAMETERS)
        own = PARAMETERS[self.name]
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value is not None and field.name not in own:
                raise ValueError(
                    f"{field.name} is no parameter of {self.name}: it has {', '.join(own) if own else 'none'}; got {field.name} = {value!r}"
                )
        if self.name == "mvu":
            for side in ("bits_in", "bits_out"):
                if getattr(self, side) is None:
                    raise ValueError(f"{side} is missing: mvu needs bits_in and bits_out")
                object.__setattr__(self, side, check_integer(side, getattr(self, side), low=1, high=9))
            object.__setattr__(self, "metric", privacy_constraint.metric_name(self.metric))
            dithering = DITHERINGS[0] if self.dithering is None else self.dithering
            object.__setattr__(self, "dithering", check_choice("dithering", dithering, DITHERINGS))
        if self.name == "skellam" and self.bits is None:
            object.__setattr__(self, "bits", SKELLAM_BITS)
        if self.bits is not None:
            low, high = BITS[self.name]
            object.__setattr__(self, "bits", check_integer("bits", self.bits, low=low, high=high))

    def __str__(self) -> str:
        """Return the mechanism in words.

        Returns
        -------
        str
            Its name, and the parameters that are set; dithering only where it is not the usual one.
        """
        usual = (None, DITHERINGS[0])
        named = [f"{field.name} {value}" for field in fields(self)[1:] if (value := getattr(self, field.name)) not in usual]
        return f"{self.name} ({', '.join(named)})" if named else self.name


# The parameters of each mechanism, and the norms of balls that it is for; None: of every norm.
PARAMETERS: dict[str, tuple[str, ...]] = {
    "mvu": ("bits_in", "bits_out", "metric", "dithering"),
    "cldp": (),
    "laplace": (),
    "gaussian": (),
    "skellam": ("bits",),
    "sqkr": ("bits",),
    "privunit": (),
}
NORMS: dict[str, tuple[float, ...]] = {"cldp": (1.0, 2.0, math.inf), "skellam": (2.0,), "sqkr": (2.0,), "privunit": (2.0,)}
BITS = {"skellam": (vector_skellam.FEWEST_BITS, vector_skellam.MOST_BITS), "sqkr": (1, sqkr.MOST_BITS)}
EPSILONS = {"sqkr": (privacy_constraint.EPSILON_LOW, privacy_constraint.EPSILON_HIGH)}
NEED_DELTA = ("gaussian", "skellam")


def check_design(spec: MechanismSpec, ball: NormBall, epsilon: float, delta: float) -> None:
    """Refuse a mechanism that cannot be asked for this, before anything is computed.

    Parameters
    ----------
    spec : MechanismSpec
        The mechanism.
    ball : NormBall
        Where the clipped vectors lie.
    epsilon, delta : float
        Guarantee that is asked for.

    Raises
    ------
    ValueError
        If epsilon or delta is out of range, delta is 0 where the mechanism needs more, or the mechanism is not for balls of this norm.
    """
    low, high = EPSILONS.get(spec.name, (EPSILON_LOW, EPSILON_HIGH))
    check_real("epsilon", epsilon, low=low, high=high)
    check_real("delta", delta, low=0.0, high=LARGEST_DELTA)
    if delta == 0 and spec.name in NEED_DELTA:
        raise ValueError(f"delta must be above 0 for {spec.name}, got {delta!r}")
    norms = NORMS.get(spec.name)
    if norms is not None and ball.norm not in norms:
        raise ValueError(f"norm must be {' or '.join(f'{norm:g}' for norm in norms)} for {spec.name}, got {ball.norm:g}")
    if spec.name == "mvu" and spec.bits_in == 1 and math.isfinite(ball.norm):
        raise ValueError(f"bits_in must be at least 2 for mvu on a ball of norm {ball.norm:g}, got {spec.bits_in}")


def build_mechanism(
    spec: MechanismSpec, ball: NormBall, epsilon: float, delta: float, cache: TableCache | None = None
) -> VectorMeanProtocol:
    """Build the mechanism of a name that keeps a promise for one message: replace-one adjacency, local trust model.

    Parameters
    ----------
    spec : MechanismSpec
        The mechanism.
    ball : NormBall
        Where the clipped vectors lie.
    epsilon, delta : float
        The promise. A purely private mechanism keeps it with delta = 0, whatever was asked for.
    cache : TableCache or None
        Where designed tables are looked for and kept; None to design them again.

    Returns
    -------
    VectorMeanProtocol
        The mechanism; its own `guarantee` is at most (epsilon, delta).

    Raises
    ------
    ValueError
        If the mechanism cannot be asked for this (`check_design`).
    InfeasibleError
        If no such mechanism exists, for example because the bits are too few.
    ConvergenceError
        If a design fails.
    """
    check_design(spec, ball, epsilon, delta)
    match spec.name:
        case "mvu":
            return _table_mechanism(spec, ball, epsilon, delta, cache)
        case "cldp":
            return cldp_mechanism(epsilon, ball)
        case "laplace":
            return VectorLaplaceMechanism(epsilon, ball)
        case "gaussian":
            return VectorGaussianMechanism(epsilon, delta, ball)
        case "skellam":
            return vector_skellam.skellam_mechanism(epsilon, delta, ball, spec.bits or SKELLAM_BITS)
        case "sqkr":
            return sqkr.sqkr_mechanism(epsilon, ball) if spec.bits is None else sqkr.SQKRMechanism(epsilon, spec.bits, ball)
        case _:
            return PrivUnitMechanism(epsilon, ball)


def _table_mechanism(spec: MechanismSpec, ball: NormBall, epsilon: float, delta: float, cache: TableCache | None) -> VectorMeanProtocol:
    # What PARAMETERS asks for is there.
    bits_in, bits_out, dithering = spec.bits_in or 0, spec.bits_out or 0, spec.dithering or DITHERINGS[0]

    def design() -> LookupTable:
        return calibrate_vector_table(epsilon, delta, ball, bits_in, bits_out, spec.metric, dithering=dithering, seed=DESIGN_SEED).table

    def mechanism_of(table: LookupTable) -> VectorTableMechanism:
        return VectorTableMechanism(table, ball, delta=delta, dithering=dithering)

    def is_asked_for(table: LookupTable) -> bool:
        # The guarantee is computed from the table: what is in the file can cost accuracy, and never break a promise.
        same = (table.bits_in, table.bits_out, table.metric) == (bits_in, bits_out, spec.metric)
        return same and mechanism_of(table).guarantee.epsilon <= epsilon

    if cache is None:
        return mechanism_of(design())
    specification: dict[str, str | int | float | None] = {
        "design": "calibrate_vector_table",
        "epsilon": epsilon,
        "delta": delta,
        "dimension": ball.dimension,
        "norm": ball.norm if math.isfinite(ball.norm) else "inf",
        "clip_norm": ball.clip_norm,
        "bits_in": bits_in,
        "bits_out": bits_out,
        "metric": spec.metric,
        "dithering": dithering,
        "seed": DESIGN_SEED,
    }
    return mechanism_of(cache.fetch(specification, design, is_asked_for))
