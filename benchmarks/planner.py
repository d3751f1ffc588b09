"""Speed and accuracy of plans: the example and a huge task in CPU seconds, and predictions against simulations over 50 random tasks.

Prints the ratio of a plan's time to that of simulating its mechanisms once, and the worst prediction of every mechanism.
"""

import argparse
import time

from quietbits.analysis.planner.agreement import compare_with_simulations, random_tasks
from quietbits.analysis.planner.check import check_mechanism
from quietbits.analysis.planner.plan import plan_task
from quietbits.design.contracts.norm_ball import NormBall
from quietbits.design.contracts.task import Task

SIZES = {"example": (10_000, 1000), "huge": (10**6, 10**6)}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=50, help="number of random tasks")
    tasks = parser.parse_args().tasks
    for name, (clients, dimension) in SIZES.items():
        task = Task(NormBall(dimension, 2.0), clients, 2.0, 1e-5, "replace-one")
        start = time.process_time()
        plan = plan_task(task)
        planned = time.process_time() - start
        print(f"{name}: {clients} clients, {dimension} coordinates: {planned:.1f} CPU seconds, {len(plan.feasible)} mechanisms")
        if name == "example":
            start = time.process_time()
            check_mechanism(plan, plan.best[0])
            once = time.process_time() - start
            print(f"  {once / planned:.2f} times as long to simulate the first of them ({plan.best[0].name})")
    if not tasks:
        return
    start = time.process_time()
    found = compare_with_simulations(random_tasks(tasks))
    print(f"{tasks} random tasks, {len(found)} mechanisms that can serve: {time.process_time() - start:.0f} CPU seconds")
    worst = found.loc[found.groupby("mechanism")["excess"].apply(lambda excess: excess.abs().idxmax())]
    for row in worst.sort_values("excess", key=abs, ascending=False).to_dict("records"):
        spread = row["standard_error"] / row["predicted_error"]
        print(f"  {row['mechanism']}: measured {100 * row['excess']:+.1f} % (s.e. {100 * spread:.1f} %) at {row['task']}")
    print(f"off by over 10 %: {int(found['off'].sum())} of {len(found)}")
    print(f"least error over its proven bound: {found['ratio_to_bound'].min():.4f}")


if __name__ == "__main__":
    main()
