"""The registry's entries of lookup tables, with a letter for each number or coordinate."""

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...design.contracts.calibration import over_rounds, per_round_epsilon
from ...design.contracts.domains import Interval
from ...design.contracts.mechanism import Mechanism
from ...design.contracts.norm_ball import NormBall, parse_norm
from ...design.contracts.privacy import Privacy
from ...design.contracts.registry import AccountSubject, Entry, InPlaceOfBudget, Noise, Option, Values, usual_adjacency
from ...design.contracts.task import Budget, Task
from ...design.local.vector_calibration import OBJECTIVES, calibrate_vector_table, check_renyi, improve_vector_table
from ...design.local.vector_table import DITHERINGS, VectorTableMechanism
from ...design.tables.file import read_table
from ...design.tables.lookup_table import LookupTable
from ...design.tables.mvu import design_mvu
from ...design.tables.randomised_response import LARGEST_BITS, bitwise_randomised_response, generalised_randomised_response
from ...design.tables.table_cache import TableCache
from ...design.tables.table_mean import TableMeanMechanism
from ...design.tables.table_privacy import table_privacy
from ...errors import InfeasibleError
from ...solvers.accounting.renyi_curve import check_order
from ...solvers.accounting.sampling import Sampling
from ...solvers.bounds.privacy_constraint import EPSILON_HIGH, EPSILON_LOW, metric_name
from ...solvers.divergences.vector_composition import vector_bounds
from .local import PURE_ACCOUNTS, REPLACE_ONE, scalar_lower_bound, unbiased_lower_bound
from .shared_options import CLIP, DIMENSION, NORM, tried_bits

# All tables are designed with the same random starts, so that a cache serves them all.
DESIGN_SEED = 0
# Epsilon of a round from which another bit of a coordinate may be worth its time, and number of coordinates from which tables of fine grids
# are slow.
GENEROUS, MANY_COORDINATES = 3.0, 2**16
# Interval of tables for vectors, which ignore it, because their grid is scaled to the ball.
UNUSED_INTERVAL = (-1.0, 1.0)
_FOR_NUMBERS = (
    "this table is designed for numbers: any two inputs differ by epsilon, so that a vector's epsilon grows with its coordinates; "
    "quietbits calibrate vector --metric l1 designs one for vectors of a ball"
)
PAPER = "Chaudhuri, Guo, Rabbat 2022, Privacy-aware compression for federated data analysis"

BITS_IN = Option("bits_in", int, "Bits of the grid that inputs are dithered to.", 5, 1, 9, "bits")
BITS_OUT = Option("bits_out", int, "Bits of one letter.", 3, 1, 9, "bits", budget="at most")
METRIC = Option("metric", str, "Metric privacy that the table is designed for: l1, l2 or l<p>; local privacy by default.", None)
DITHERING = Option("dithering", str, "How vectors are dithered.", DITHERINGS[0], choices=DITHERINGS)
OBJECTIVE = Option(
    "objective",
    str,
    "renyi: tables of least variance for the Rényi divergence by which vectors are accounted; for their metric by default.",
    None,
    choices=OBJECTIVES,
)
SEED = Option("seed", int, "Root seed of the solver.", DESIGN_SEED, 0, 2**63 - 1)
# In sweeps and trainings, "seed" names the experiment's seed.
DESIGN_SEED_OPTION = replace(SEED, name="design_seed", default=None, help=f"Root seed of the solver; {DESIGN_SEED} by default.")
CACHE = Option("cache", Path, "Folder where designed tables are kept; by default they are designed again.", None)
TABLE_EPSILON = Option(
    "table_epsilon", float, "Epsilon of the table, for its metric, in place of a budget.", None, EPSILON_LOW, EPSILON_HIGH, "nats"
)
RESPONSE_BITS = Option(
    "bits", int, "Bits of the number, its one coordinate: of the grid, and of a message.", 3, 1, LARGEST_BITS, "bits", budget="at most"
)
TABLE = Option("table", Path, "Lookup table, as JSON; it is verified first.")
ORDER = Option("order", float, "Rényi order above 1, or inf: show the divergence of one round there; none by default.", None)


def table_of(table: str | os.PathLike[str] | LookupTable) -> LookupTable:
    """Return a table, or load and verify it from a path."""
    if isinstance(table, LookupTable):
        return table
    if isinstance(table, str | os.PathLike):
        return read_table(table)
    raise ValueError(f"table must be a LookupTable or the path of one, got {table!r}")


def _mvu(task: Task, options: Values) -> Mechanism:
    cache = None if options["cache"] is None else TableCache(options["cache"])
    metric = metric_name(options["metric"])
    if isinstance(task.domain, Interval):
        if options["objective"] == "renyi":
            raise InfeasibleError("objective must be left out for a number, got 'renyi': it is for tables for vectors")
        epsilon, interval = per_round_epsilon(task.budget), task.interval("mvu")
        bits = (options["bits_in"], options["bits_out"])
        return TableMeanMechanism(_designed(cache, epsilon, *bits, metric, interval, _seed(options)))
    ball = _ball_of_tables(task, options)
    return _vector_table(task, ball, options, metric, cache)


def vector_table_of(task: Task, options: Values, table_epsilon: float) -> VectorTableMechanism:
    """Return a vector's mechanism with a table of the given epsilon for the table's metric.

    `options` are those of ``"mvu"``. The task's epsilon and rounds, and the objective, have no effect. The mechanism's account states its
    total privacy loss.
    """
    cache = None if options["cache"] is None else TableCache(options["cache"])
    bits, metric = (options["bits_in"], options["bits_out"]), metric_name(options["metric"])
    table = _designed(cache, table_epsilon, *bits, metric, UNUSED_INTERVAL, _seed(options))
    return VectorTableMechanism(table, _ball_of_tables(task, options), delta=task.delta, dithering=options["dithering"])


def _seed(options: Values) -> int:
    seed: int | None = options[DESIGN_SEED_OPTION.name]
    return DESIGN_SEED if seed is None else seed


def _ball_of_tables(task: Task, options: Values) -> NormBall:
    ball = task.ball("mvu")
    if options["bits_in"] == 1 and math.isfinite(ball.norm):
        raise InfeasibleError(f"bits_in must be at least 2 for mvu on a ball of norm {ball.norm:g}, got 1")
    return ball


def _designed(
    cache: TableCache | None, epsilon: float, bits_in: int, bits_out: int, metric: str | None, interval: tuple[float, float], seed: int
) -> LookupTable:
    def design() -> LookupTable:
        return design_mvu(epsilon, bits_in, bits_out, metric, seed=seed, interval=interval)

    if cache is None:
        return design()
    specification: dict[str, str | int | float | None] = {
        "design": "design_mvu",
        "epsilon": epsilon,
        "bits_in": bits_in,
        "bits_out": bits_out,
        "metric": metric,
        "low": interval[0],
        "high": interval[1],
        "seed": seed,
    }
    asked = (bits_in, bits_out, metric, epsilon, interval)
    return cache.fetch(
        specification, design, lambda table: (table.bits_in, table.bits_out, table.metric, table.epsilon, table.interval) == asked
    )


def _vector_table(task: Task, ball: NormBall, options: Values, metric: str | None, cache: TableCache | None) -> VectorTableMechanism:
    bits_in, bits_out, dithering = options["bits_in"], options["bits_out"], options["dithering"]
    epsilon, delta = task.epsilon, task.delta
    by_divergence = options["objective"] == "renyi"

    def design() -> LookupTable:
        if by_divergence:
            # The cache holds the initial table, or will hold it.
            best = _vector_table(task, ball, {**options, "objective": None}, metric, cache)
            return improve_vector_table(best, epsilon, task.rounds).table
        return calibrate_vector_table(
            epsilon,
            delta,
            ball,
            bits_in,
            bits_out,
            metric,
            dithering=dithering,
            rounds=task.rounds,
            seed=_seed(options),
            method=task.method,
        ).table

    def mechanism_of(table: LookupTable) -> VectorTableMechanism:
        return VectorTableMechanism(table, ball, delta=delta, dithering=dithering)

    def is_asked_for(table: LookupTable) -> bool:
        # Privacy is computed from the table, so the file's content can cost accuracy but never break a guarantee.
        same = (table.bits_in, table.bits_out, table.metric) == (bits_in, bits_out, metric)
        return same and mechanism_of(table).privacy().epsilon(delta, rounds=task.rounds, account=task.method) <= epsilon

    if by_divergence:
        check_renyi(delta, ball.norm, bits_in, bits_out)
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
        "metric": metric,
        "dithering": dithering,
        "seed": _seed(options),
    }
    if task.rounds > 1:
        specification["rounds"] = task.rounds
    if task.method is not None:
        specification["method"] = task.method
    if by_divergence:
        specification["objective"] = options["objective"]
    return mechanism_of(cache.fetch(specification, design, is_asked_for))


def account_number(table: LookupTable, order: float | None, adjacency: str | None) -> AccountSubject:
    """Return the accounting subject of a number's message, a letter of a table."""
    return _accounted(table, table_privacy(table), 1, 1.0, 1.0, order, adjacency, f"{table.mechanism} table")


def account_vector(mechanism: VectorTableMechanism, order: float | None, adjacency: str | None) -> AccountSubject:
    """Return the accounting subject of a vector's message, a letter of the table per coordinate.

    The distance between two inputs is the distance between their dithered vectors.
    """
    table, ball = mechanism.table, mechanism.ball
    subject = _accounted(
        table,
        mechanism.privacy(),
        ball.dimension,
        ball.norm,
        mechanism.input_distance,
        order,
        adjacency,
        f"{table.mechanism} table for {ball.dimension} coordinates, vectors of an L{ball.norm:g} ball",
    )
    details = {
        **subject.details,
        "norm": "inf" if math.isinf(ball.norm) else ball.norm,
        "clip": ball.clip_norm,
        "dithering": mechanism.dithering,
        **mechanism.facts(),
    }
    return replace(subject, details=details)


def _accounted(
    table: LookupTable,
    privacy: Privacy,
    dimension: int,
    norm: float,
    distance: float,
    order: float | None,
    adjacency: str | None,
    subject: str,
) -> AccountSubject:
    if order is not None:
        check_order(order)
    bounds = None if order is None else vector_bounds(table.weights, order, dimension, norm, distance)
    return AccountSubject(
        subject,
        privacy,
        usual_adjacency(adjacency, None, (table.adjacency,)),
        bits_per_client=float(dimension * table.bits_out),
        details={
            "rdp_order": order,
            "rdp_lp": None if bounds is None else bounds.linear_program,
            "rdp_greedy": None if bounds is None else bounds.greedy,
            "rdp_integer": None if bounds is None else bounds.integer,
            "dimension": dimension,
        },
    )


def _account_vector(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    ball = NormBall(values["dimension"], parse_norm(values["norm"]), values["clip"])
    mechanism = VectorTableMechanism(table_of(values["table"]), ball, dithering=values["dithering"])
    subject = account_vector(mechanism, values["order"], adjacency)
    # A table that calibration has designed has no file.
    of_numbers = not isinstance(values["table"], LookupTable) and mechanism.table.metric is None and ball.dimension > 1
    subject = replace(subject, table=mechanism.table if isinstance(values["table"], LookupTable) else None)
    return replace(subject, details={**subject.details, "advice": _FOR_NUMBERS if of_numbers else None})


def _account_mvu(values: Values, adjacency: str | None, sampling: Sampling | None) -> AccountSubject:
    if (values["dimension"] is None) != (values["norm"] is None):
        raise ValueError(f"dimension and norm must be given together, for a vector, got {values['dimension']!r} and {values['norm']!r}")
    account = _account_scalar if values["dimension"] is None else _account_vector
    return account(values, adjacency, sampling)


def _account_scalar(values: Values, adjacency: str | None, _: Sampling | None) -> AccountSubject:
    return account_number(table_of(values["table"]), values["order"], adjacency)


def _tables_tried(task: Task) -> list[Values]:
    """Return tables designed in seconds; vector tables with one bit out are in closed form."""
    generous = task.epsilon >= GENEROUS * math.sqrt(task.rounds)
    if isinstance(task.domain, Interval):
        tried: list[Values] = [{"bits_in": 5, "bits_out": 1}, {"bits_in": 4, "bits_out": 2}]
        if generous:
            tried.append({"bits_in": 3, "bits_out": 3})
    elif task.dimension > MANY_COORDINATES:
        tried = [{"bits_in": 6, "bits_out": 1}]
    else:
        tried = [{"bits_in": 7, "bits_out": 1}]
        norm = task.ball("mvu").norm
        if generous and math.isfinite(norm):
            tried.append({"bits_in": 5, "bits_out": 2, "metric": f"l{norm:g}"})
    return [options for options in tried if task.most_bits is None or options["bits_out"] <= task.most_bits]


def _response(design: Callable[..., LookupTable], name: str) -> Callable[[Task, Values], Mechanism]:
    def build(task: Task, options: Values) -> Mechanism:
        interval = task.interval(name)
        return over_rounds(
            task.budget, lambda epsilon: TableMeanMechanism(design(epsilon, options["bits"], interval=interval)), high=EPSILON_HIGH
        )

    return build


def _response_entry(name: str, title: str, design: Callable[..., LookupTable], *, formula: str, use: str) -> Entry:
    return Entry(
        name=name,
        title=title,
        paper=f"{PAPER}, section 3",
        domains=(Interval,),
        trust_model="local",
        adjacencies=REPLACE_ONE,
        accounts=PURE_ACCOUNTS,
        options=(RESPONSE_BITS,),
        build=_response(design, name),
        lower_bound=scalar_lower_bound,
        candidates=tried_bits(lambda _: range(1, 6)),
        formula=formula,
        use=use,
    )


def _solve_vector(budget: Budget, given: Values) -> Values:
    """Return a table for vectors, designed for the budget as by ``"mvu"``."""
    task, values = MVU.task_of({**given, "clients": 1}, budget), {**given, DESIGN_SEED_OPTION.name: given[SEED.name]}
    mechanism = MVU.mechanism_for(task, {option.name: values[option.name] for option in MVU.options})
    assert isinstance(mechanism, VectorTableMechanism)  # noqa: S101 - what that entry builds for vectors
    return {"table": mechanism.table, "order": None}


SCALAR_TABLE = Noise("table", "One number that goes through a table", (TABLE, ORDER), _account_scalar)
VECTOR_TABLE = Noise(
    "vector",
    "A vector whose coordinates go through the same table",
    (TABLE, DIMENSION, NORM, CLIP, DITHERING, ORDER),
    _account_vector,
    given=(DIMENSION, NORM, replace(BITS_IN, low=2), BITS_OUT, METRIC, OBJECTIVE, DITHERING, CACHE, CLIP, SEED),
    solve=_solve_vector,
)
MVU = Entry(
    name="mvu",
    title="MVU: a lookup table of least variance, for a number or for each coordinate of a vector",
    paper=PAPER,
    domains=(Interval, NormBall),
    trust_model="local",
    adjacencies=REPLACE_ONE,
    accounts=PURE_ACCOUNTS,
    options=(BITS_IN, BITS_OUT, METRIC, OBJECTIVE, DITHERING, DESIGN_SEED_OPTION, CACHE),
    build=_mvu,
    noise=replace(
        VECTOR_TABLE,
        name="mvu",
        title="MVU tables, for a number or for each coordinate of a vector",
        parameters=(
            TABLE,
            replace(DIMENSION, default=None, help="Number of coordinates of a vector; by default the table is for a number."),
            replace(NORM, help="p of the L_p norm of vectors, 1 or more, or inf; by default the table is for a number.", default=None),
            CLIP,
            DITHERING,
            ORDER,
        ),
        account=_account_mvu,
        given=(),
        solve=None,
    ),
    # The usual dithering causes no bias.
    lower_bound=unbiased_lower_bound,
    candidates=_tables_tried,
    in_place_of_budget=InPlaceOfBudget(TABLE_EPSILON, lambda task, options: vector_table_of(task, options, options[TABLE_EPSILON.name])),
    formula=(
        r"A value $x$ in $[0, 1]$ is rounded at random to a grid point $x_i = i/(B-1)$, $B = 2^{b_{\mathrm{in}}}$, whose mean is $x$. "
        r"The client sends letter $j$ of $2^{b_{\mathrm{out}}}$ with probability $P_{ij}$, and the server averages the letters' values "
        r"$a_j$. Table and values minimise $$\frac{1}{B} \sum_{i,j} P_{ij} (x_i - a_j)^2 \quad \text{with} \quad \sum_j P_{ij} = 1, "
        r"\quad \sum_j P_{ij} a_j = x_i, \quad P_{ij} \le e^{\varepsilon d(i, i')} P_{i'j},$$ where $d(i, i')$ is 1 for local privacy "
        r"and $(|i - i'|/(B-1))^p$ for metric privacy of the $L_p$ norm."
    ),
    use=(
        "Use it for numbers whose messages must be private by themselves and short: no unbiased table that its search finds has less "
        "average variance, and its certificate bounds what any other could gain. With `metric` it serves metric privacy, for example "
        "of locations. For vectors of the L2 ball, codes such as `rotating-simplex` have less error."
    ),
)
BITWISE = _response_entry(
    "bitwise-randomised-response",
    "Randomised response for each bit of a grid index",
    bitwise_randomised_response,
    formula=(
        r"Each of the $b$ bits of the grid index is sent with probability $e^{\varepsilon/b}/(1 + e^{\varepsilon/b})$ and flipped "
        r"otherwise. A received index $y$ is decoded to $$a_y = \frac12 + \left(\frac{y}{2^b - 1} - \frac12\right) "
        r"\frac{e^{\varepsilon/b} + 1}{e^{\varepsilon/b} - 1}.$$"
    ),
    use=(
        "Use it as the baseline of `mvu`, without any design. With one bit it is randomised response; with more bits each of them has "
        "a share of epsilon, which costs variance."
    ),
)
GENERALISED = _response_entry(
    "generalised-randomised-response",
    "Generalised randomised response on a grid",
    generalised_randomised_response,
    formula=(
        r"With $B = 2^b$, the grid index $i$ is sent with probability $e^\varepsilon/(e^\varepsilon + B - 1)$, and each other index "
        r"with $1/(e^\varepsilon + B - 1)$. A received index $j$ is decoded to $$a_j = \frac{\frac{j}{B-1}\,(e^\varepsilon + B - 1) - "
        r"\frac{B}{2}}{e^\varepsilon - 1}.$$"
    ),
    use=(
        "Use it where a table in closed form is wanted and epsilon is large for the number of bits. At small epsilon fewer bits, or "
        "`mvu`, have less variance."
    ),
)
ENTRIES = (MVU, BITWISE, GENERALISED)
NOISES = (SCALAR_TABLE, VECTOR_TABLE)
