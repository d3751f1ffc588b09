"""CPU seconds of plans, and the plans' predictions against simulations of 50 random tasks.

The benchmark prints the time of a plan against a simulation of its first mechanism, the time of shuffled mechanisms' searches against
searches without an estimate, and the worst prediction of every mechanism.
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from shared.growth import slope
from shared.physical_limit import beside_limit
from shared.processor_time import seconds, timed

from quietbits.analysis.planner.agreement import compare_with_simulations, random_tasks
from quietbits.analysis.planner.check import check_mechanism
from quietbits.analysis.planner.plan import Plan, plan_task
from quietbits.design.contracts.domains import Interval
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Budget, Task
from quietbits.design.shuffled.calibration import local_epsilon, response_local_epsilon
from quietbits.design.shuffled.shuffled_items import shuffled_response_privacy

SIZES = {"example": (10_000, 1000), "huge": (10**6, 10**6)}
# These dimensions, with the example's clients, give the exponent of growth.
DIMENSIONS = (100, 10_000, 10**6)

# Clients and epsilon of a plan for numbers.
NUMBERS = (1000, 3.0)


def planning(clients: int, dimension: int, epsilon: float = 2.0) -> Callable[[], Plan]:
    """Return a run that plans a task."""
    return partial(plan_task, Task(NormBall(dimension, 2.0), clients, epsilon, 1e-5, "replace-one"))


def shuffled_searches() -> None:
    """Print the CPU seconds of shuffled local epsilons, against searches without an estimate, and those of a plan."""
    clients, epsilon = NUMBERS
    budget = Budget(epsilon, 1e-5, "replace-one")
    letters = [1 << bits for bits in range(1, 7)]

    def without_estimate() -> list[float]:
        return [local_epsilon(partial(shuffled_response_privacy, categories=count, clients=clients), budget) for count in letters]

    without = timed(without_estimate)[1]
    taken = timed(lambda: [response_local_epsilon(count, clients, budget) for count in letters])[1]
    print(f"local epsilons of {len(letters)} responses: {taken:.2f} CPU seconds, {taken / without:.3f} x that without an estimate")
    plan, everything = timed(lambda: plan_task(Task(Interval(), clients, epsilon, 1e-5, "replace-one"), timed=False))
    shuffled = timed(lambda: plan_task(plan.task, trust="shuffled", timed=False, seed=1))[1]
    print(f"numbers: {clients} clients: {everything:.1f} CPU seconds; {shuffled:.2f} for shuffled mechanisms that are searched again")


def main() -> None:
    """Print times, ratios and the agreement with simulations.

    The physical limit of a simulation, which a plan avoids, is to copy the clients' vectors, as fast as a million numbers.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=50, help="number of random tasks")
    tasks = parser.parse_args().tasks
    numbers = np.zeros(10**6)
    copied = seconds(numbers.copy, calls=20) / numbers.size
    for name, (clients, dimension) in SIZES.items():
        plan, planned = timed(planning(clients, dimension))
        print(
            f"{name}: {clients} clients, {dimension} coordinates: {planned:.1f} CPU seconds, {len(plan.feasible)} mechanisms, "
            f"{beside_limit(planned, copied * clients * dimension)} of a simulation"
        )
        if name == "example":
            once = timed(partial(check_mechanism, plan, plan.best[0]))[1]
            print(f"  {planned / once:.2f} x the time of simulating the first of them ({plan.best[0].name}) once")
    # The epsilon differs from the other plans': results of a task are cached.
    times = [seconds(planning(SIZES["example"][0], dimension, 2.1), 1) for dimension in DIMENSIONS]
    print(f"time grows with the {slope(DIMENSIONS, times):.2f}th power of the dimension")
    shuffled_searches()
    if not tasks:
        return
    comparison, taken = timed(lambda: compare_with_simulations(random_tasks(tasks)))
    print(f"{tasks} random tasks, {len(comparison)} mechanisms that can serve: {taken:.0f} CPU seconds")
    worst = comparison.loc[comparison.groupby("mechanism")["excess"].apply(lambda excess: excess.abs().idxmax())]
    for row in worst.sort_values("excess", key=abs, ascending=False).to_dict("records"):
        spread = row["standard_error"] / row["predicted_error"]
        print(f"  {row['mechanism']}: measured {100 * row['excess']:+.1f} % (s.e. {100 * spread:.1f} %) at {row['task']}")
    print(f"off by over 10 %: {int(comparison['off'].sum())} of {len(comparison)}")
    print(f"least error over its proven bound: {comparison['ratio_to_bound'].min():.4f}")


if __name__ == "__main__":
    main()
