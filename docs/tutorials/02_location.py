"""
Location: metric privacy
========================

Clients hold positions in a city. What must be hidden is where exactly a client is, not in which part of the city.
"""

# %%
# Metric privacy states that: two positions are harder to tell apart the closer they are. The table below keeps epsilon times the distance,
# for a coordinate from 0 to 1. Two coordinates, each through the table, keep epsilon times the L1 distance of two positions.

import matplotlib.pyplot as plt
import numpy as np

import quietbits

EPSILON = 8.0
metric = quietbits.design_mvu(epsilon=EPSILON, bits_in=4, bits_out=3, metric="l1")
print(metric.guarantee)

# %%
# For comparison, the local guarantee protects all pairs of positions alike. Each coordinate then has half of epsilon.

local = quietbits.design_mvu(epsilon=EPSILON / 2, bits_in=4, bits_out=2)
print(local.guarantee)

# %%
# The figure shows, for a client in the middle of the city, how likely each decoded coordinate is. Under metric privacy the message stays
# near the true position.

figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
for table, label in ((metric, "metric privacy"), (local, "local privacy")):
    row = len(table.weights) // 2
    letters = np.array([float(letter) for letter in table.alphabet])
    axes.vlines(
        letters,
        0,
        table.weights[row] / table.total,
        label=label,
        color="C0" if table is metric else "C1",
        linewidth=3,
    )
axes.set(xlabel="decoded coordinate", ylabel="probability")
axes.legend()
plt.show()

# %%
# The server averages the decoded positions of 2,000 clients, who are around three places.

rng = np.random.default_rng(0)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
places = np.array([[0.2, 0.3], [0.7, 0.25], [0.6, 0.8]])
for place in places:
    positions = np.clip(place + 0.05 * rng.normal(size=(2000, 2)), 0, 1)
    axes.plot(*positions[:200].T, ".", color="0.8", markersize=3)
    for table, marker in ((metric, "o"), (local, "s")):
        estimate = table.decode(table.encode(positions.ravel(), rng)).reshape(-1, 2).mean(axis=0)
        axes.plot(*estimate, marker, color="C0" if table is metric else "C1", markersize=6)
        print(
            f"{table.guarantee.metric or 'local'}: distance from the true mean {np.linalg.norm(estimate - positions.mean(axis=0)):.3f}"
        )
axes.set(
    xlim=(0, 1),
    ylim=(0, 1),
    aspect="equal",
    title="clients in grey, estimated means by metric (blue) and local (orange) privacy",
)
plt.show()
