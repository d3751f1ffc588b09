"""
Numbers: a certified table
==========================

Each of 10,000 clients holds a number from 0 to 1 and sends two bits. The server estimates the mean.
"""

# %%
# ``design_mvu`` searches the table of least variance for four bits of input and two bits of message. The certificate is recomputed from the
# whole numbers of the table. Its gaps bound what another unbiased table of as many bits, and of any size, could gain.

import matplotlib.pyplot as plt
import numpy as np

import quietbits

table = quietbits.design_mvu(epsilon=2.0, bits_in=4, bits_out=2)
print(table.guarantee)
print(f"average variance {table.certificate.mean_variance:.4f}: {table.gaps}")

# %%
# A seeded generator makes the experiment repeatable. A release draws from ``quietbits.secure_words`` instead.

values = np.random.default_rng(1).beta(2, 5, 10_000)
messages = table.encode(values, np.random.default_rng(2))
print(f"true mean {values.mean():.3f}, estimate {table.decode(messages).mean():.3f}")

# %%
# Randomised response and Laplace noise keep the same epsilon. The figure shows the variance of one client's decoded message against the
# client's value: a designed table is better than both, for every value here.

grid = np.linspace(0, 1, 201)
task = quietbits.Task(
    quietbits.Interval(), clients=len(values), epsilon=2.0, delta=0.0, adjacency="replace-one"
)
compared = {
    "MVU, 2 bits": quietbits.TableMeanMechanism(table),
    "generalised randomised response, 2 bits": quietbits.build_mechanism(
        "generalised-randomised-response", task, {"bits": 2}
    ),
    "Laplace noise, 64 bits": quietbits.build_mechanism("laplace", task),
}
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, mechanism in compared.items():
    axes.plot(grid, mechanism.variance(grid), label=name)
axes.set(xlabel="value of the client", ylabel="variance of one message", ylim=(0, None))
axes.legend()
plt.show()
