"""
Vectors: error against bits
===========================

Each of 2,000 clients holds a vector of 64 coordinates in the L2 unit ball. Every message must be private by itself.
"""

# %%
# ``build_mechanism`` builds a mechanism of the registry for a task. Each candidate below is private by itself at epsilon 4.

import matplotlib.pyplot as plt
import numpy as np

import quietbits

ball = quietbits.NormBall(dimension=64, norm=2.0)
task = quietbits.Task(ball, clients=2000, epsilon=4.0, delta=0.0, adjacency="replace-one")
tried = {
    "rotating-simplex": range(1, 7),
    "minimal-random-coding": range(2, 13, 2),
    "sqkr": range(1, 9),
}
built = {
    name: [quietbits.build_mechanism(name, task, {"message_bits": bits}) for bits in numbers]
    for name, numbers in tried.items()
}
reference = quietbits.build_mechanism("privunit", task)

# %%
# Two of them run on the same vectors. The predicted error is an upper bound on the expected error, from which a single round deviates.

rng = np.random.default_rng(0)
vectors = np.abs(rng.normal(size=(task.clients, 64)))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
for mechanism in (built["rotating-simplex"][-1], built["sqkr"][3]):
    result = quietbits.simulate_mean(mechanism, [vectors], rng)
    print(
        f"{mechanism.bits_per_client:g} bits: squared error {result.squared_error:.4f}, predicted {result.predicted_squared_error:.4f}"
    )

# %%
# The figure shows the error of the mean against the bits of a message. A handful of bits comes close to PrivUnit, which sends 64 floats and
# whose variance is the least that is possible.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, mechanisms in built.items():
    bits = [mechanism.bits_per_client for mechanism in mechanisms]
    axes.plot(
        bits,
        [mechanism.error().of_mean(task.clients) for mechanism in mechanisms],
        "o-",
        label=name,
    )
axes.axhline(
    reference.error().of_mean(task.clients),
    color="0.4",
    linestyle="--",
    label="privunit, 4096 bits",
)
axes.set(xlabel="bits of a message", ylabel="largest expected squared error", yscale="log")
axes.legend()
plt.show()
