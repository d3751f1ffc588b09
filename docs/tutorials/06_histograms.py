"""
Histograms: frequencies of items
================================

Five thousand clients each hold an item of a list of 200, and the server estimates the frequency of every item.
"""

# %%
# In the local trust model each message is private by itself. In a secure sum the clients share the noise. Both keep epsilon 2.

import matplotlib.pyplot as plt
import numpy as np

import quietbits

items = quietbits.Categories(200)
common = {"clients": 5000, "epsilon": 2.0, "adjacency": "replace-one"}
local = quietbits.build_mechanism(
    "projective-geometry-response", quietbits.Task(items, delta=0.0, **common)
)
summed = quietbits.build_mechanism(
    "sketched-discrete-gaussian-frequencies", quietbits.Task(items, delta=1e-5, **common)
)
for mechanism in (local, summed):
    print(f"{mechanism.bits_per_client:,.0f} bits: {mechanism.guarantee}")

# %%
# Items follow Zipf's law. Each mechanism estimates frequencies with standard errors.

rng = np.random.default_rng(0)
shares = 1 / np.arange(1, 201)
held = rng.choice(200, size=5000, p=shares / shares.sum())
true = np.bincount(held, minlength=200) / 5000
estimates = {}
for label, mechanism in {"local": local, "secure sum": summed}.items():
    estimates[label] = mechanism.estimate(mechanism.aggregate(mechanism.encode(held, rng)), 5000)
    typical = np.sqrt(np.mean((estimates[label].frequencies - true) ** 2))
    print(
        f"{label}: root mean squared error {typical:.4f}, largest standard error {estimates[label].standard_errors.max():.4f}"
    )

# %%
# The figure shows the twenty commonest items, with one standard error each way.

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(np.arange(20), true[:20], "_", color="black", markersize=12, label="true frequency")
for shift, (label, estimate) in zip((-0.15, 0.15), estimates.items(), strict=True):
    axes.errorbar(
        np.arange(20) + shift,
        estimate.frequencies[:20],
        estimate.standard_errors[:20],
        fmt=".",
        label=label,
    )
axes.set(xlabel="item", ylabel="frequency", xticks=range(0, 20, 2))
axes.legend()
plt.show()
