"""
Secure sums: shared noise
=========================

Where a server sees only the sum of the messages, every client adds a little noise, and the total is what has to suffice.
"""

# %%
# One hundred clients hold vectors of 256 coordinates. Three mechanisms keep epsilon 1 with between 11 and 21 bits for each coordinate.

import matplotlib.pyplot as plt
import numpy as np

import quietbits

ball = quietbits.NormBall(dimension=256, norm=2.0)
task = quietbits.Task(ball, clients=100, epsilon=1.0, delta=1e-5, adjacency="add-or-remove-one")
numbers = range(11, 22, 2)
names = ("distributed-discrete-gaussian", "distributed-skellam", "cpsgd")
errors = {
    name: [
        quietbits.build_mechanism(name, task, {"bits": bits}).error().of_mean(task.clients)
        for bits in numbers
    ]
    for name in names
}
central = quietbits.central_gaussian_error(
    ball, task.clients, task.epsilon, task.delta, task.adjacency
)

# %%
# A simulated round agrees with the prediction. ``simulate_mean`` encodes, adds up modulo 2**bits, and decodes.

mechanism = quietbits.build_mechanism("distributed-skellam", task, {"bits": 14})
rng = np.random.default_rng(1)
vectors = rng.normal(size=(task.clients, ball.dimension))
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
result = quietbits.simulate_mean(mechanism, [vectors], rng)
print(mechanism.guarantee)
print(
    f"squared error {result.squared_error:.3f}, predicted {result.predicted_squared_error:.3f}, trusted server {central:.3f}"
)

# %%
# With enough bits the error is that of a trusted server's Gaussian noise, although no server is trusted with the vectors. The prediction
# includes rounding and leaves out sums that wrap around.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, marker in zip(names, "os^", strict=True):
    axes.plot(numbers, errors[name], f"{marker}-", label=name)
axes.axhline(central, color="0.4", linestyle="--", label="trusted server, Gaussian noise")
axes.set(xlabel="bits of a coordinate", ylabel="largest expected squared error", yscale="log")
axes.legend()
plt.show()
