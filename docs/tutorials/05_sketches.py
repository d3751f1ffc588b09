"""
Sketches: shorter messages in a secure sum
==========================================

When noise exceeds the signal, a vector need not be sent in full: a sketch of it is as good.
"""

# %%
# One hundred clients hold vectors of 65,536 coordinates, and epsilon is 2. The sketch is a public linear map to fewer coordinates. The
# server decodes the sum of the sketches once.

import matplotlib.pyplot as plt

import quietbits

ball = quietbits.NormBall(dimension=2**16, norm=2.0)
task = quietbits.Task(ball, clients=100, epsilon=2.0, delta=1e-5, adjacency="add-or-remove-one")
whole = quietbits.build_mechanism("distributed-discrete-gaussian", task, {"bits": 16})
sizes = [2**power * 30 for power in range(3, 12)]
sketched = [
    quietbits.build_mechanism(
        "sketched-discrete-gaussian", task, {"bits": 16, "sketch_dimension": size}
    )
    for size in sizes
]
print(sketched[0].guarantee)

# %%
# A sketch costs an error that all clients of a round share. It averages out over rounds, because each round has a new sketch.

rounds = 100
for label, mechanism in (("whole vectors", whole), (f"{sizes[6]} coordinates", sketched[6])):
    error = mechanism.error()
    size = mechanism.bits_per_client / 8000
    print(
        f"{label}: {size:.1f} kB, error {error.of_mean(100):.2f} in one round, {error.of_mean(100, rounds=rounds):.3f} over {rounds}"
    )

# %%
# The figure shows the error over 100 rounds against the size of a message. The answer zero, without any message, has an error of at most 1.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
kilobytes = [mechanism.bits_per_client / 8000 for mechanism in sketched]
axes.plot(
    kilobytes,
    [mechanism.error().of_mean(100, rounds) for mechanism in sketched],
    "o-",
    label="sketches",
)
axes.plot(
    whole.bits_per_client / 8000, whole.error().of_mean(100, rounds), "s", label="whole vectors"
)
axes.axhline(1.0, color="0.4", linestyle=":", label="answer zero")
axes.set(
    xlabel="kilobytes of a message",
    ylabel="squared error over 100 rounds",
    xscale="log",
    yscale="log",
)
axes.legend()
plt.show()
