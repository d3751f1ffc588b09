"""
A trusted server: noise on a grid, and few bits
===============================================

A trusted server adds noise to the exact sum. It can do all that clients do in the other trust models, so its least error is a reference for
them. Its mechanisms draw whole numbers, because noise of floating-point numbers can reveal more than its guarantee says.
"""

# %%
# For numbers and delta 0, staircase noise has the least variance of all noise that does not depend on the data. The figure below shows its
# error beside that of discrete Laplace noise, which is nearly as good for a small epsilon.

import matplotlib.pyplot as plt

import quietbits

CLIENTS = 1000
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)


def errors_of(name: str) -> list[float]:
    """Return the largest expected squared errors of a mean of numbers."""
    tasks = [
        quietbits.Task(
            quietbits.Interval(), CLIENTS, epsilon=epsilon, delta=0.0, adjacency="replace-one"
        )
        for epsilon in EPSILONS
    ]
    return [quietbits.build_mechanism(name, task).error().of_mean(CLIENTS) for task in tasks]


staircase, laplace = errors_of("central-staircase"), errors_of("central-laplace")
print(
    f"at epsilon {EPSILONS[-1]:g}, Laplace noise has {laplace[-1] / staircase[-1]:.1f} times the error"
)

# %%
# All coordinates of a vector make a long message. ``subsampled-gaussian`` sends a few bits of a secret sample of coordinates, and the server
# adds Gaussian noise to their sum. The sample hides a client, too: the message shrinks more than the error grows.

ball = quietbits.NormBall(dimension=1024, norm=2.0)
task = quietbits.Task(ball, CLIENTS, epsilon=1.0, delta=1e-6, adjacency="add-or-remove-one")
exact = quietbits.build_mechanism("central-gaussian", task)
sampled = quietbits.build_mechanism("subsampled-gaussian", task)
for mechanism in (exact, sampled):
    error = mechanism.error().of_mean(CLIENTS)
    print(f"{mechanism.bits_per_client:g} bits: squared error {error:.4f}, {mechanism.guarantee}")
shorter = exact.bits_per_client / sampled.bits_per_client
worse = sampled.error().of_mean(CLIENTS) / exact.error().of_mean(CLIENTS)
print(f"{shorter:.0f} times shorter, with {worse:.1f} times the error")

# %%
# The figure shows the errors of the two mechanisms for numbers.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(EPSILONS, laplace, "s--", label="central-laplace")
axes.plot(EPSILONS, staircase, "o-", label="central-staircase")
axes.set(xlabel="epsilon", ylabel="largest expected squared error", yscale="log")
axes.legend()
plt.show()
